"""Errors that name lines of kernels are told with the statements and their primitives."""

import json

import numpy as np
import pytest

import refcomp
from refcomp.driver.devices import rocm_emulator
from refcomp.foundation.errors import UserError
from refcomp.runtime.programs.kernel_lines import explain_lines

_KERNELS = """func k(A: f32[n], n: i64) {
  for g in range(2) blockIdx.x {
    for t in range(4) threadIdx.x {
      A@[g * 4 + t] = 1.0f32
    }
  }
}
"""
_ORIGINS = {"2": ["A", "i.outer", "split", "a.py:3"], "4": ["A", "", "", ""]}
_SOURCES = {"kernels": _KERNELS, "lines": json.dumps({"origins": _ORIGINS})}


def test_statements_and_what_is_around_them_are_told():
    error = UserError("wrong", why="out of bounds\n    made of kernels.ir:4, made of kernels.ir:4")
    explain_lines(error, _SOURCES)
    assert error.why.splitlines()[2:] == [
        "    kernels.ir:4 is A@[g * 4 + t] = 1.0f32 (stage A)",
        "      in for g in range(2) blockIdx.x { (stage A, axis i.outer, by split, at a.py:3)",
    ]


@pytest.mark.parametrize(
    ("why", "sources"),
    [("nothing", _SOURCES), ("kernels.ir:99", _SOURCES), ("kernels.ir:4", {}), (None, _SOURCES)],
)
def test_what_is_not_known_is_left_out(why, sources):
    error = UserError("wrong", why=why)
    explain_lines(error, sources)
    assert error.why == why


@pytest.mark.rocm
def test_findings_of_the_emulator_name_the_primitive():
    """Memory that nothing wrote, read by a kernel of a schedule."""
    a = refcomp.placeholder((64,), "float32", "A")
    b = refcomp.compute((64,), lambda i: a[i] + 1, name="B")
    s = refcomp.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 32)
    s[b].bind(outer, refcomp.thread_axis("blockIdx.x"))
    s[b].bind(inner, refcomp.thread_axis("threadIdx.x"))
    module = refcomp.build(s, [a, b], "rocm -mcpu=gfx942")
    device = rocm_emulator("gfx942")
    given, result = (refcomp.empty((64,), "float32", device) for _ in range(2))
    with pytest.raises(UserError, match="the emulator found errors in the kernel") as caught:
        module(given, result)
    told = str(caught.value)
    assert "what is stored depends on bits that nothing wrote" in told
    assert " is B@[" in told and "(stage B" in told
    assert "by bind" in told and "test_kernel_lines.py:" in told
    module(refcomp.array(np.ones(64, np.float32), device), result)

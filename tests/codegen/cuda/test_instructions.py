"""Instructions that nvcc makes of the printed text: all kernels in one file, compiled once."""

import re
from functools import cache

import numpy as np
import pytest

from refcomp.codegen.cuda.module import print_cuda
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.passes.align_arguments import align_arguments
from refcomp.toolchain import compile_source
from tests.codegen.cuda.host_kernels import HostKernels

COPY = """
func {name}(A: {dtype}[4096], B: {dtype}[4096] out) {{
  for t in range(32) threadIdx.x {{
    alloc S: {dtype}[4096] shared {{
      S@[ramp(t * {step}, 1, {lanes})] = A@[ramp(t * {step}, 1, {lanes})]
      barrier
      B@[ramp(t * {step}, 1, {lanes})] = S@[ramp(t * {step}, 1, {lanes})]
    }}
  }}
}}
"""
# name: (dtype, lanes, distance of threads, suffix of the instruction)
COPIES = {
    "floats": ("f32", 4, 4, r"v4\.[uf]32"),
    "pairs": ("f32", 2, 2, r"v2\.[uf]32"),
    "doubles": ("f64", 2, 2, r"(v4\.u32|v2\.[uf]64)"),
    "halves": ("f16", 8, 8, r"v4\.u32"),
    "bytes": ("i8", 16, 16, r"v4\.u32"),
    "few_bytes": ("u8", 4, 4, r"u32"),
    "odd_pairs": ("f32", 4, 6, r"v2\.[uf]32"),
    "unaligned": ("f32", 4, 5, r"[uf]32"),
}


def _copy(name: str) -> PrimFunc:
    dtype, lanes, step, _ = COPIES[name]
    kernel = parse_func(COPY.format(name=name, dtype=dtype, lanes=lanes, step=step))
    verify(kernel, "device")
    return align_arguments(kernel)


@cache
def _ptx() -> dict[str, str]:
    """Return the PTX of each kernel."""
    source = print_cuda([_copy(name) for name in COPIES])
    text = compile_source(source, {"arch": "sm_90"}, "ptx", description="cuda").data.decode()
    return dict(re.findall(r"(?s)\.entry (\w+)\((.*?)\n}\n", text))


@pytest.mark.nvcc
@pytest.mark.parametrize("name", COPIES)
def test_contiguous_lanes_are_one_access(name):
    suffix = COPIES[name][-1]
    ptx = _ptx()[name]
    for access in (r"ld\.global\.nc", r"st\.shared", r"ld\.shared", r"st\.global"):
        found = re.findall(rf"{access}\.([\w.]+)", ptx)
        assert found and all(re.fullmatch(suffix, text) for text in found), (access, found)


@pytest.mark.gcc
def test_wide_accesses_copy_all_lanes():
    kernels = [_copy(name) for name in COPIES]
    built = HostKernels(kernels)
    assert "load_wide<16, 16>" in built.text and "load_lanes<4>" in built.text
    rng = np.random.default_rng(5)
    for kernel, (_, lanes, step, _) in zip(kernels, COPIES.values(), strict=True):
        source = rng.integers(0, 99, 4096).astype(to_numpy(kernel.params[0].dtype))
        target = np.zeros_like(source)
        built.call(kernel, [source, target])
        places = np.add.outer(np.arange(32) * step, np.arange(lanes)).ravel()
        expected = np.zeros_like(source)
        expected[places] = source[places]
        np.testing.assert_array_equal(target, expected, err_msg=kernel.name)

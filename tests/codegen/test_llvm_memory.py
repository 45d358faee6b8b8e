"""Every shape of access on every dtype, compiled and run, against the interpreter."""

import copy
import ctypes
import mmap
from pathlib import Path

import numpy as np
import pytest

from refcomp.ir.parser import parse_func
from refcomp.oracle.interpret import interpret
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.host_kernels import Kernels, print_generic, same_bits


@pytest.mark.llvm
def test_accesses_agree_with_the_interpreter(tmp_path: Path):
    cases = [
        (access_kernel(*access, dtype), dtype) for dtype in DTYPES for access in accesses(dtype, 24)
    ]
    kernels = Kernels([func for func, _ in cases], tmp_path, passes="sroa")
    wrong = []
    for func, dtype in cases:
        expected, actual = access_arguments(dtype), access_arguments(dtype)
        interpret(func, expected)
        assert kernels.call(func, actual) == 0
        if not all(same_bits(a, e).all() for a, e in zip(actual, expected, strict=True)):
            wrong.append(func.name)
    assert not wrong


def _text(body, params="A: f32[64], B: f32[64] out, k: i64"):
    return print_generic([parse_func(f"func f({params}) {{ {body} }}")]).text


def test_each_shape_has_its_own_instructions():
    wide = _text("B@[ramp(k, 1, 16)] = A@[ramp(k, 1, 16)]")
    assert wide.count("load <16 x float>") == 1 and "masked" not in wide
    strided = _text("B@[ramp(k, 2, 4)] = A@[ramp(k, 2, 4)]")
    assert strided.count(" = load float") == 4 and strided.count("store float") == 4
    gathered = _text("B@[ramp(k, k, 4)] = A@[ramp(k, k, 4)]")
    assert "llvm.masked.gather.v4f32.v4p0" in gathered
    assert "llvm.masked.scatter.v4f32.v4p0" in gathered
    masked = _text("B@[ramp(k, 1, 4)] = A@[ramp(k, 1, 4) if ramp(k, 1, 4) < broadcast(9, 4)]")
    assert "llvm.masked.load.v4f32.p0" in masked and "store <4 x float>" in masked


def test_a_broadcast_read_is_one_scalar_read():
    text = _text("B@[ramp(0, 1, 16)] = broadcast(A@[k], 16)")
    assert text.count(" = load float") == 1
    assert "shufflevector <16 x float>" in text


@pytest.mark.llvm
def test_masked_lanes_are_not_touched(tmp_path: Path):
    """A masked access at the end of a page does not reach the next one."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + page), page, 0) == 0
    func = parse_func("""
    func f(A: f32[n], B: f32[n] out) {
      let mask: boolx16 = ramp(0, 1, 16) < broadcast(n, 16) {
        B@[ramp(0, 1, 16)] = A@[ramp(0, 1, 16) if mask] + broadcast(1.0f32, 16) if mask
      }
    }
    """)
    kernels = Kernels([func], tmp_path)
    last = np.frombuffer(memory, np.float32, 3, page - 12)
    last[:] = [1, 2, 3]
    result = np.zeros(3, np.float32)
    assert kernels.call(func, [copy.copy(last), result]) == 0
    assert kernels.call(func, [last, result]) == 0
    assert result.tolist() == [2, 3, 4]
    assert kernels.call(func, [result, last]) == 0
    assert last.tolist() == [3, 4, 5]
    assert libc.mprotect(ctypes.c_void_p(start + page), page, 3) == 0


def test_a_prefetch_is_a_hint_and_reads_nothing():
    text = _text("prefetch A[k + 1000] B@[0] = A@[k]")
    assert text.count("call void @llvm.prefetch.p0(ptr %") == 1
    assert text.count("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)") == 1
    assert text.count(" = load ") == 1

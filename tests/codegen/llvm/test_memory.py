"""Every shape of access on every dtype, compiled and run, against the interpreter."""

import copy
import ctypes
import mmap
from pathlib import Path

import numpy as np
import pytest

import refcomp
from refcomp.codegen.llvm.module import HostPrinter
from refcomp.ir.parser import parse_func
from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.access_cases import DTYPES, access_arguments, access_kernel, accesses
from tests.codegen.amdgpu.kernels import print_kernels
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
    strided = _text("B@[ramp(k, 3, 4)] = A@[ramp(k, 3, 4)]")
    assert strided.count(" = load float") == 4 and strided.count("store float") == 4
    every_other = _text("B@[ramp(k, 1, 4)] = A@[ramp(k, 2, 4)]")
    assert every_other.count(" = load <4 x float>") == 2
    # The second vector begins at element 3, so elements 4 and 6 are its second and fourth.
    assert "<4 x i32> <i32 0, i32 2, i32 5, i32 7>" in every_other
    gathered = _text("B@[ramp(k, k, 4)] = A@[ramp(k, k, 4)]")
    assert "llvm.masked.gather.v4f32.v4p0" in gathered
    assert "llvm.masked.scatter.v4f32.v4p0" in gathered
    masked = _text("B@[ramp(k, 1, 4)] = A@[ramp(k, 1, 4) if ramp(k, 1, 4) < broadcast(9, 4)]")
    assert "llvm.masked.load.v4f32.p0" in masked and "store <4 x float>" in masked


def test_part_of_a_register_is_one_masked_read():
    func = parse_func(
        "func f(A: f32[64], B: f32[64] out) { B@[ramp(0, 1, 7)] = A@[ramp(0, 1, 7)] }"
    )
    wide, narrow = (
        HostPrinter(triple="", layout="", vector_bits=bits).print_part([func]).text
        for bits in (256, 128)
    )
    mask = ", ".join(["i1 1"] * 7 + ["i1 0"])
    assert wide.count("call <8 x float> @llvm.masked.load.v8f32.p0") == 1 and f"<{mask}>" in wide
    assert "masked" not in narrow and "load <7 x float>" in narrow


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


@pytest.mark.llvm
@pytest.mark.parametrize("lanes", [2, 4, 7, 16])
def test_every_other_element_is_read_without_touching_what_follows(tmp_path, lanes):
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + page), page, 0) == 0
    body = f"B@[ramp(0, 1, {lanes})] = A@[ramp(0, 2, {lanes})]"
    func = parse_func(f"func f(A: f32[n], B: f32[{lanes}] out) {{ {body} }}")
    count = 2 * lanes - 1
    data = np.frombuffer(memory, np.float32, count, page - 4 * count)
    data[:] = np.arange(count)
    result = np.zeros(lanes, np.float32)
    assert Kernels([func], tmp_path).call(func, [data, result]) == 0
    assert result.tolist() == list(range(0, count, 2))
    assert libc.mprotect(ctypes.c_void_p(start + page), page, 3) == 0


def test_a_prefetch_is_a_hint_and_reads_nothing():
    text = _text("prefetch A[k + 1000] B@[0] = A@[k]")
    assert text.count("call void @llvm.prefetch.p0(ptr %") == 1
    assert text.count("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)") == 1
    assert text.count(" = load ") == 1


def _table_of_each_thread():
    """C[i] = T[(i * i) % 4, i % 3] of a T that each thread has, written and read as vectors."""
    a = refcomp.placeholder((4, 3), "int32", name="A")
    t = refcomp.compute((4, 3), lambda i, j: a[i, j] * 2, name="T")
    c = refcomp.compute((64,), lambda i: t[(i * i) % 4, i % 3], name="C")
    s = refcomp.create_schedule(c)
    thread, lane = s[c].split(c.op.axis[0], factor=2)
    s[c].bind(thread, refcomp.thread_axis("threadIdx.x"))
    s[c].vectorize(lane)
    s[t].compute_at(s[c], thread)
    s[t].set_scope("local")
    s[t].storage_align(t.op.axis[0], 5, 0)
    s[t].vectorize(s[t].split(s[t].fuse(*t.op.axis), factor=4)[1])
    return s, [a, c]


@pytest.mark.rocm
@pytest.mark.filterwarnings("ignore::refcomp.driver.kernel_resources.SlowKernelWarning")
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a", "gfx1100"])
def test_lanes_anywhere_in_private_memory_go_one_by_one(gpu):
    """LLVM moves the table to shared memory, where gathers and scatters did not follow it."""
    module = refcomp.build(*_table_of_each_thread(), f"rocm -mcpu={gpu}")
    text = module.imported_modules[0].get_source("llvm")
    assert "p5(<" not in text, "no vector of pointers to private memory"
    assert text.count("load i32, ptr addrspace(5)") == 2
    assert text.count("store i32") == 4
    values, device = np.arange(12, dtype=np.int32).reshape(4, 3), refcomp.rocm_emulator(gpu)
    a, c = (refcomp.array(x, device) for x in (values, np.zeros(64, np.int32)))
    module(a, c)
    i = np.arange(64)
    np.testing.assert_array_equal(c.asnumpy(), 2 * values[i * i % 4, i % 3])


def test_masked_lanes_anywhere_in_private_memory_have_conditions_of_their_own():
    at, where = "ramp(threadIdx.x, k, 2)", "ramp(threadIdx.x, 1, 2) < broadcast(k, 2)"
    body = f"""
    for threadIdx.x in range(4) threadIdx.x {{
      alloc T: i32[9] local align 64 {{
        for i in range(9) {{ T@[i] = A@[i] }}
        T@[{at}] = broadcast(7i32, 2) if {where}
        C@[ramp(threadIdx.x * 2, 1, 2)] = T@[{at} if {where}]
      }}
    }}"""
    func = parse_func(f"func f(A: i32[9], C: i32[8] out, k: i64) {{ {body} }}")
    text = print_kernels([func]).text
    assert "masked" not in text
    assert text.count("= phi i32") == 2, "reads"
    assert text.count("store i32 %") == 3, "writes of the loop, and of each lane"

"""Memory of threads and groups, barriers, updates and hints: as text, compiled, run on the host."""

import copy

import numpy as np
import pytest

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.atomic_cases import ATOMIC_KINDS, atomic_kernel
from tests.codegen.nvptx.kernels import (
    LLVMS,
    NvptxOnHost,
    assemble,
    compile_ptx,
    print_kernels,
    use_llvm,
)

DYNAMIC = """
func dynamic(A: f32[m], C: f64[m] out, m: i64, k: i64) {
  for t in range(m) threadIdx.x {
    alloc S: i8[m] shared { alloc T: f64[m, k] shared { alloc U: f32[m] shared {
      S@[t] = i8(t)
      T@[t * k + 1] = f64(A@[t])
      U@[t] = A@[t] + 1.0f32
      barrier
      C@[t] = T@[(m - 1 - t) * k + 1] + f64(S@[m - 1 - t]) + f64(U@[m - 1 - t])
    } } }
  }
}
"""


@pytest.mark.llvm
def test_updates_agree_with_the_interpreter(tmp_path):
    kernels = [atomic_kernel(*kind) for kind in ATOMIC_KINDS]
    simulation = NvptxOnHost(kernels, tmp_path)
    rng = np.random.default_rng(3)
    for kernel in kernels:
        dtype = to_numpy(kernel.buffers[0].dtype)
        values = rng.integers(0, 100, 8).astype(dtype)
        actual = [values, np.full(3, 7, dtype), np.zeros(2, dtype)]
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        simulation.call(kernel, actual)
        for ours, theirs in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, kernel.name)


@pytest.mark.llvm
@pytest.mark.nvcc
@pytest.mark.parametrize("llvm", LLVMS)
def test_updates_compile(llvm, monkeypatch):
    use_llvm(llvm, monkeypatch)
    ptx = compile_ptx([atomic_kernel(*kind) for kind in ATOMIC_KINDS], "sm_75")
    for instruction in ("atom.global.add.f64", "atom.shared.min.s64", "atom.global.cas.b32"):
        assert instruction in ptx
    # It would take subnormals for 0 in global memory.
    assert (
        "add.rn.f32" in ptx and "atom.global.add.f32" not in ptx and "red.global.add.f32" not in ptx
    )
    assemble(ptx, "sm_75")


@pytest.mark.llvm
def test_dynamic_buffers_begin_where_the_launch_says(tmp_path):
    kernel = parse_func(DYNAMIC)
    verify(kernel, "device")
    simulation = NvptxOnHost([kernel], tmp_path)
    for m, k in ((1, 2), (5, 2), (16, 3)):
        actual = [np.arange(m, dtype=np.float32) * 3, np.zeros(m), m, k]
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        simulation.call(kernel, actual, [256, 1024, 4096])
        np.testing.assert_array_equal(actual[1], expected[1])


def test_dynamic_buffers_are_the_last_parameters_in_order_of_allocation():
    text = print_kernels([parse_func(DYNAMIC)]).text
    assert text.count("@dynamic_shared = external addrspace(3) global [0 x i8], align 16") == 1
    assert "i64 %m, i64 %k, i64 %S.begin, i64 %T.begin, i64 %U.begin) #0 {" in text


def test_a_local_array_is_generic_until_llvm_moves_it():
    text = print_kernels(
        [parse_func("func f(A: i8[4] out) { alloc L: i8[3] local { A@[0] = L@[1] } }")]
    ).text
    assert "%L = alloca [3 x i8], align 16\n" in text


@pytest.mark.llvm
def test_a_prefetch_is_an_instruction_in_global_memory_only():
    kernel = parse_func("""
    func f(A: f32[64], B: f32[64] out) {
      alloc S: f32[4] shared {
        prefetch A[7]
        prefetch S[2]
        B@[0] = A@[7]
      }
    }
    """)
    assert print_kernels([kernel]).text.count("prefetch.global.L2") == 1
    assert compile_ptx([kernel]).count("prefetch.global.L2") == 1


@pytest.mark.llvm
def test_loops_are_unrolled_by_wish():
    text = """
    func f(A: f32[512], B: f32[8] out) {
      for t in range(8) threadIdx.x {
        for k in range(64) KIND { B@[t] = B@[t] + A@[t * 64 + k] }
      }
    }
    """
    kernel = parse_func(text.replace("KIND", "unrollable"))
    printed = print_kernels([kernel]).text
    assert "  br label %for.1.head, !llvm.loop !0\n" in printed
    assert '!0 = distinct !{!0, !{!"llvm.loop.unroll.enable"}}\n!1 = !{ptr @f, ' in printed
    assert "!nvvm.annotations = !{!1}\n" in printed
    assert compile_ptx([kernel]).count("add.rn.f32") == 64
    plain = parse_func(text.replace("KIND", ""))
    assert "llvm.loop" not in print_kernels([plain]).text

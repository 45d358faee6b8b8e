"""Memory of threads and groups, barriers and updates: as text, and run on the host."""

import copy
import re

import numpy as np
import pytest

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify
from refcomp.oracle.lockstep.interpret import interpret
from tests.codegen.amdgpu.kernels import (
    TOOLS_AND_GPUS,
    HostSimulation,
    compile_kernels,
    print_kernels,
    use_llvm,
)
from tests.codegen.atomic_cases import ATOMIC_KINDS, atomic_kernel

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
    simulation = HostSimulation(kernels, tmp_path)
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


@pytest.mark.rocm
@pytest.mark.parametrize(("llvm", "gpu"), TOOLS_AND_GPUS)
def test_updates_compile(llvm, gpu, monkeypatch):
    use_llvm(llvm, monkeypatch)
    compile_kernels([atomic_kernel(*kind) for kind in ATOMIC_KINDS], gpu)


def test_before_llvm_16_narrow_updates_are_tried():
    for operator, dtype in ATOMIC_KINDS:
        text = print_kernels([atomic_kernel(operator, dtype)], llvm=15).text
        is_narrow = dtype[1:] in ("8", "16")
        assert (text.count("cmpxchg") == 2) == (
            is_narrow or dtype in ("f16",) or (dtype[0] == "f" and operator != "add")
        )


@pytest.mark.llvm
def test_dynamic_buffers_lie_one_after_the_other(tmp_path):
    kernel = parse_func(DYNAMIC)
    verify(kernel, "device")
    simulation = HostSimulation([kernel], tmp_path)
    for m, k in ((1, 2), (5, 2), (16, 3)):
        actual = [np.arange(m, dtype=np.float32) * 3, np.zeros(m), m, k]
        expected = copy.deepcopy(actual)
        interpret(kernel, expected)
        simulation.call(kernel, actual)
        np.testing.assert_array_equal(actual[1], expected[1])


def test_dynamic_buffers_are_one_variable_without_a_size():
    text = print_kernels([parse_func(DYNAMIC)]).text
    assert text.count("@dynamic_shared = external addrspace(3) global [0 x i8], align 16") == 1
    places = re.findall(r"%([STU]) = getelementptr i8, ptr addrspace\(3\) @dynamic_shared", text)
    assert places == ["S", "T", "U"]
    assert text.count("smax.i64(i64 %") == 3  # no size is asked of the last one


def test_a_barrier_orders_memory_on_both_sides():
    text = print_kernels([parse_func("""
    func f(A: i8[4] out) { for t in range(4) threadIdx.x { barrier A@[t] = 1i8 } }
    """)]).text  # fmt: skip
    assert (
        '  fence syncscope("workgroup") release\n'
        "  call void @llvm.amdgcn.s.barrier()\n"
        '  fence syncscope("workgroup") acquire\n'
    ) in text

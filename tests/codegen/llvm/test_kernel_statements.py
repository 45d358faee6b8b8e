"""Memory of threads and groups, and updates, as every GPU has them in LLVM IR."""

from refcomp.ir.parser import parse_func
from tests.codegen.amdgpu.kernels import print_kernels
from tests.codegen.atomic_cases import ATOMIC_KINDS, atomic_kernel


def test_local_and_shared_buffers():
    text = print_kernels([parse_func("""
    func f(A: i8[4] out) {
      for t in range(4) threadIdx.x {
        alloc L: bool[3] local { alloc S: f64[5, 2] shared align 128 { alloc N: f32[0] shared {
          L@[0] = true  S@[t] = 1.0f64  A@[t] = i8(L@[0])
        } } }
      }
    }
    """)]).text  # fmt: skip
    assert "%L = alloca [3 x i8], align 16, addrspace(5)" in text
    assert "@f.S = internal addrspace(3) global [10 x double] undef, align 128" in text
    assert "@f.N = internal addrspace(3) global [1 x float] undef, align 16" in text


def test_an_update_is_one_instruction_where_there_is_one():
    for operator, dtype in ATOMIC_KINDS:
        text = print_kernels([atomic_kernel(operator, dtype)]).text
        is_tried = dtype == "f16" or (dtype[0] == "f" and operator != "add")
        assert text.count("atomicrmw") == (0 if is_tried else 2)
        assert text.count("cmpxchg") == (2 if is_tried else 0)
        assert text.count('syncscope("agent") monotonic') == (2 if is_tried else 1)

"""Parameters and indices of threads, as every GPU has them in LLVM IR."""

from refcomp.ir.parser import parse_func
from tests.codegen.amdgpu.kernels import print_kernels


def test_inputs_are_told_from_outputs():
    text = print_kernels([parse_func("func f(A: i8[4], B: i8[4] out) { B@[0] = A@[0] }")]).text
    assert "noalias readonly align 1 nonnull dereferenceable(4) %A, ptr" in text
    assert "noalias writeonly align 1 nonnull dereferenceable(4) %B)" in text


def test_indices_have_the_dtype_of_their_loop():
    text = print_kernels([parse_func("""
    func f(A: i8[4] out) {
      for t: i32 in range(4i32) threadIdx.x { A@[i64(t)] = 1i8 }
    }
    """)]).text  # fmt: skip
    assert "%t = call i32 @llvm.amdgcn.workitem.id.x(), !range !{i32 0, i32 4}" in text

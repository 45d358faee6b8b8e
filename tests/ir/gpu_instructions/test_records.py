"""Records of instructions: operands, counts, and the elements that a matrix load moves."""

from refcomp.foundation.dtype import F32, I32, as_dtype
from refcomp.ir.gpu_instructions.records import DotProduct, MatrixLoad
from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS

F16 = as_dtype("f16")


def test_a_dot_product_takes_two_registers_and_a_sum():
    product = DotProduct("name", as_dtype("i8"), I32)
    assert product.counts == (4, 4)
    assert product.operands == (as_dtype("i8"),) * 8 + (I32,)


def test_a_matrix_product_takes_its_fragments_and_a_number():
    product = GPU_INTRINSICS["llvm.nvvm.mma.m16n8k16.row.col.f32.f32"]
    assert product.counts == (8, 4)
    assert product.operands == (F16,) * 12 + (F32,) * 4 + (I32,)


def test_sums_of_f32_alone_round_after_each_product():
    rounded_once = {name: p for name, p in GPU_INTRINSICS.items() if hasattr(p, "rounds_once")}
    stepwise = [name for name, p in rounded_once.items() if not p.rounds_once]
    assert stepwise == [
        "llvm.amdgcn.mfma.f32.16x16x4f32",
        "llvm.amdgcn.mfma.f32.32x32x2f32",
    ]


def test_a_matrix_load_moves_each_element_to_one_thread():
    for is_transposed in (False, True):
        load = MatrixLoad("name", is_transposed, wave=32)
        fragment = load.fragment(F16)
        places = sorted(fragment.place(t, n) for t in range(32) for n in range(fragment.count))
        assert places == [(row, column) for row in range(32) for column in range(8)]


def test_a_matrix_load_fits_elements_of_its_width():
    plain, transposed = (MatrixLoad("name", flag, wave=32) for flag in (False, True))
    assert plain.fits(F16) and plain.fits(as_dtype("u8")) and not plain.fits(F32)
    assert transposed.fits(F16) and not transposed.fits(as_dtype("u8"))
    assert plain.row(F16) == 8 and plain.row(as_dtype("i8")) == 16

"""Instructions of NVIDIA GPUs: dot products of bytes, tensor cores, and loads of their factors.

The names are those of LLVM's intrinsics. Note [Matrix products of NVIDIA] says where elements lie,
and Note [Matrix loads] which thread gets which element. Note [Sums on tensor cores] says how far a
GPU's sums may be from the interpreter's.
"""

from __future__ import annotations

from refcomp.foundation.dtype import as_dtype
from refcomp.ir.gpu_instructions.records import (
    REGISTER_BITS,
    DotProduct,
    Fragment,
    MatrixLoad,
    MatrixPlace,
    MatrixProduct,
)

PREFIX = "llvm.nvvm."
_WARP = 32
_LOAD = f"{PREFIX}ldmatrix.sync.aligned.m8n8.x4"
_TF32_UNREAD_BITS = 13


def _matrix(
    name: str, dtypes: str, shape: str, capability: int, unread_bits: int = 0
) -> MatrixProduct:
    """Return a row of the table; `shape` are the rows of A, the columns of B, and the depth."""
    element, total = map(as_dtype, dtypes.split())
    rows, columns, depth = map(int, shape.split())
    per_register = REGISTER_BITS // element.bits
    blocks = rows // 8  # of 8 rows, each in a register of its own

    def place_in_a(thread: int, number: int) -> MatrixPlace:
        register, within = divmod(number, per_register)
        along, block = divmod(register, blocks)
        column = (along * 4 + thread % 4) * per_register + within
        return MatrixPlace(thread // 4 + block * 8, column)

    def place_in_b(thread: int, number: int) -> MatrixPlace:
        register, within = divmod(number, per_register)
        return MatrixPlace(
            (register * 4 + thread % 4) * per_register + within, thread // 4
        )

    def place_in_c(thread: int, number: int) -> MatrixPlace:
        block, within = divmod(number, 2)
        return MatrixPlace(thread // 4 + block * 8, thread % 4 * 2 + within)

    return MatrixProduct(
        name=f"{PREFIX}mma.{name}",
        element=element,
        sum=total,
        depth=depth,
        a=Fragment(rows * depth // _WARP, place_in_a),
        b=Fragment(columns * depth // _WARP, place_in_b),
        c=Fragment(rows * columns // _WARP, place_in_c),
        wave=_WARP,
        capability=capability,
        unread_bits=unread_bits,
    )


NVIDIA = (
    DotProduct(f"{PREFIX}idp4a.s.s", as_dtype("i8"), as_dtype("i32"), capability=61),
    DotProduct(f"{PREFIX}idp4a.u.u", as_dtype("u8"), as_dtype("u32"), capability=61),
    _matrix("m16n8k8.row.col.f32.f32", "f16 f32", "16 8 8", 75),
    _matrix("m8n8k16.row.col.s8", "i8 i32", "8 8 16", 75),
    _matrix("m8n8k16.row.col.u8", "u8 i32", "8 8 16", 75),
    _matrix("m16n8k16.row.col.f32.f32", "f16 f32", "16 8 16", 80),
    _matrix("m16n8k16.row.col.f16.f16", "f16 f16", "16 8 16", 80),
    _matrix("m16n8k16.row.col.bf16", "bf16 f32", "16 8 16", 80),
    _matrix("m16n8k8.row.col.tf32", "f32 f32", "16 8 8", 80, _TF32_UNREAD_BITS),
    _matrix("m16n8k32.row.col.s8", "i8 i32", "16 8 32", 80),
    _matrix("m16n8k32.row.col.u8", "u8 i32", "16 8 32", 80),
    MatrixLoad(f"{_LOAD}.b16", is_transposed=False, wave=_WARP, capability=75),
    MatrixLoad(f"{_LOAD}.trans.b16", is_transposed=True, wave=_WARP, capability=75),
)


def sum_error_bound(product: MatrixProduct, magnitude: float) -> float:
    """Return how far a tensor core's f32 sum may be from the exact sum.

    Args:
        product: the instruction.
        magnitude: the sum of the absolute values of all products and of the old sum.

    Example::

        >>> from refcomp.ir.gpu_intrinsics import GPU_INTRINSICS
        >>> from refcomp.ir.gpu_instructions.nvidia import sum_error_bound
        >>> product = GPU_INTRINSICS["llvm.nvvm.mma.m16n8k16.row.col.f32.f32"]
        >>> sum_error_bound(product, 1.0) == 17 * 2.0**-22
        True
    """
    return (product.depth + 1) * 2.0**-22 * magnitude


# Note [Matrix products of NVIDIA]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# D = A B + C, by a warp of 32 threads. Let t be the number of a thread in its warp, g = t // 4 and
# i = t % 4. A register has p elements: 4 of 8 bits, 2 of 16 bits, 1 of 32 bits. Element n of a
# thread is element e = n % p of register r = n // p.
#
# - A of 16 rows: row g + 8 (r % 2) and column (4 (r // 2) + i) p + e. A of 8 rows: row g and
#   column (4 r + i) p + e.
# - B: row (4 r + i) p + e and column g.
# - C and D: row g + 8 (n // 2) and column 2 i + n % 2.
#
# Source: PTX ISA, matrix fragments of mma.m16n8k16 and the other shapes. `.row.col` in a name says
# that neighbours in a register are neighbours in a row of A, and in a column of B.
#
# A factor of tf32 is an f32 whose low 13 bits are not read. So a number that is not a tf32 is
# truncated, as the hardware does it with the registers that it is given. PTX itself leaves the
# result undefined for such numbers.
#
# Note [Matrix loads]
# ~~~~~~~~~~~~~~~~~~~
# Thread t of a warp brings a row of 16 bytes, from shared memory. Rows 8 j to 8 j + 7 are matrix j.
# With p elements in 32 bits, i = t % 4 and e = n % p, element n of thread t belongs to matrix
# n // p. It is the element in row t // 4 and column i p + e; if transposed, in row i p + e and
# column t // 4. A matrix is 8 x 8 elements of 16 bits, or 8 x 16 elements of 8 bits.
#
# So four matrices, the quarters of a block of A, are just what a thread needs of A.
#
# Note [Sums on tensor cores]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~
# The interpreter rounds a sum of f16, bf16 or tf32 products once. NVIDIA does not say what a tensor
# core does. Measured (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores,
# PeerJ Computer Science, 2021): products are exact and subnormals are kept. The terms of a step are
# 4 or 8 products and the sum so far. They are shifted to the exponent of the greatest term and
# truncated: to the bits of f32 on the first GPUs, with at least 2 bits more on later ones. The sum
# of a step is truncated as well.
#
# Let S be the sum of all absolute values. A truncation errs by less than 2^-23 S. A step of b
# products has b + 2 truncations. So all steps together have at most 2 depth if b >= 2. That gives
# the bound (depth + 1) 2^-22 S, whatever the order and the size of the steps. It does not hold if
# the sum overflows, nor for sums of f16, which are rounded again.

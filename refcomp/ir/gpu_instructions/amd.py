"""Instructions of AMD GPUs: dot products, and matrix products by MFMA and WMMA.

Note [Matrix products of AMD] says where elements lie.
"""

from __future__ import annotations

from refcomp.foundation.dtype import as_dtype
from refcomp.ir.gpu_instructions.records import (
    DotProduct,
    Fragment,
    MatrixPlace,
    MatrixProduct,
)

PREFIX = "llvm.amdgcn."

# The GPUs with dot products, and those with matrix products (CDNA 1 to 4, in order).
_CDNA = ("gfx908", "gfx90a", "gfx94", "gfx95")
_RDNA = ("gfx1011", "gfx1012", "gfx103", "gfx11", "gfx120")
_DOT = ("gfx906", *_CDNA, *_RDNA)


def _matrix(
    name: str, dtypes: str, counts: str, gpus: tuple[str, ...], wave: int
) -> MatrixProduct:
    """Return a row of the table.

    `counts` are a thread's elements of a factor and of the sum, and the rows of C, which has as
    many columns.
    """
    element, total = map(as_dtype, dtypes.split())
    factors, sums, size = map(int, counts.split())
    is_wmma = name.startswith("wmma.")
    has_whole_rows = is_wmma and factors == size  # of gfx11

    def depth_at(thread: int, number: int) -> int:
        return number if has_whole_rows else thread // size * factors + number

    def row_at(thread: int, number: int) -> int:
        part = thread // size
        if has_whole_rows:
            return 2 * number + part
        if is_wmma:
            return part * sums + number
        # mfma: rows come in blocks of 4, and the parts of the wave take turns.
        block, row = divmod(number, 4)
        return block * (4 * wave // size) + part * 4 + row

    return MatrixProduct(
        name=f"{PREFIX}{name}",
        element=element,
        sum=total,
        depth=factors if has_whole_rows else factors * wave // size,
        a=Fragment(factors, lambda t, n: MatrixPlace(t % size, depth_at(t, n))),
        b=Fragment(factors, lambda t, n: MatrixPlace(depth_at(t, n), t % size)),
        c=Fragment(sums, lambda t, n: MatrixPlace(row_at(t, n), t % size)),
        wave=wave,
        gpus=gpus,
    )


AMD = (
    DotProduct(f"{PREFIX}sdot4", as_dtype("i8"), as_dtype("i32"), _DOT),
    DotProduct(f"{PREFIX}udot4", as_dtype("u8"), as_dtype("u32"), _DOT),
    DotProduct(f"{PREFIX}fdot2", as_dtype("f16"), as_dtype("f32"), _DOT),
    DotProduct(
        name=f"{PREFIX}fdot2.f32.bf16",
        element=as_dtype("bf16"),
        sum=as_dtype("f32"),
        gpus=("gfx11", "gfx120", "gfx95"),
    ),
    _matrix("mfma.f32.16x16x4f32", "f32 f32", "1 4 16", _CDNA, 64),
    _matrix("mfma.f32.32x32x2f32", "f32 f32", "1 16 32", _CDNA, 64),
    _matrix("mfma.f32.16x16x16f16", "f16 f32", "4 4 16", _CDNA, 64),
    _matrix("mfma.f32.32x32x8f16", "f16 f32", "4 16 32", _CDNA, 64),
    _matrix("mfma.f32.16x16x16bf16.1k", "bf16 f32", "4 4 16", _CDNA[1:], 64),
    _matrix("mfma.f32.32x32x8bf16.1k", "bf16 f32", "4 16 32", _CDNA[1:], 64),
    _matrix("mfma.i32.16x16x32.i8", "i8 i32", "8 4 16", _CDNA[2:], 64),
    _matrix("mfma.i32.32x32x16.i8", "i8 i32", "8 16 32", _CDNA[2:], 64),
    _matrix("mfma.f32.16x16x32.f16", "f16 f32", "8 4 16", _CDNA[3:], 64),
    _matrix("mfma.f32.32x32x16.f16", "f16 f32", "8 16 32", _CDNA[3:], 64),
    _matrix("mfma.f32.16x16x32.bf16", "bf16 f32", "8 4 16", _CDNA[3:], 64),
    _matrix("mfma.f32.32x32x16.bf16", "bf16 f32", "8 16 32", _CDNA[3:], 64),
    _matrix("wmma.f32.16x16x16.f16", "f16 f32", "16 8 16", ("gfx11",), 32),
    _matrix("wmma.f32.16x16x16.bf16", "bf16 f32", "16 8 16", ("gfx11",), 32),
    _matrix("wmma.f32.16x16x16.f16.v8f32.v8f16", "f16 f32", "8 8 16", ("gfx120",), 32),
    _matrix(
        "wmma.f32.16x16x16.bf16.v8f32.v8i16", "bf16 f32", "8 8 16", ("gfx120",), 32
    ),
)

# Note [Matrix products of AMD]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# D = A B + C. Let t be the number of a thread in its wave, and q the elements of A that it holds.
#
# `mfma.T.MxMxK...`, 64 threads, with g = t // M:
# - A[t % M, g q + n] and B[g q + n, t % M] for n = 0, ..., q - 1.
# - Elements v = 0, 1, ... of C and D lie in column t % M. If M is 16, their row is 4 g + v. If M is
#   32, their row is v // 4 * 8 + g * 4 + v % 4.
#
# `wmma.f32.16x16x16.T`, 32 threads, with q = 16 (gfx11):
# - A[t % 16, n] and B[n, t % 16] for n = 0, ..., 15.
# - Element v of C and D lies in column t % 16 and row 2 v + t // 16.
#
# `wmma` with q = 8 (gfx12), with g = t // 16:
# - A and B as in `mfma`.
# - Element v of C and D lies in column t % 16 and row 8 g + v.
#
# Source: AMD's manuals of the instructions of CDNA 3 and 4 and of RDNA 3 and 4.

"""Instructions of AMD GPUs that kernels may call by name: dot products and matrix products.

A PureExtern with such a name is an instruction of the GPU; no other target has it. Operands and
results are scalars: the elements of a register come one by one. A call of a matrix product asks for
one of the elements that the instruction returns to a thread (Note [Matrix products]).

An operand of bf16 may come as its bits, a u16, as passes leave it. Note [Sums of products] says
what is rounded. The threads of a wave compute a matrix product together: all of them must arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.foundation.dtype import I32, DType, as_dtype
from refcomp.ir.constants import as_int
from refcomp.ir.expr import PureExtern

_PREFIX = "llvm.amdgcn."
_REGISTER_BITS = 32
_BF16_BITS = DType("uint", 16)


@dataclass(frozen=True, slots=True)
class DotProduct:
    """The sum of the products of two registers' elements and a third operand.

    The operands are the elements of the first factor, then those of the second, then the old sum.
    """

    name: str
    element: DType  # of the factors
    sum: DType
    gpus: tuple[str, ...]  # prefixes of the names of the GPUs that have it
    wave: int = 1  # threads that compute it together

    @property
    def factors(self) -> int:
        """Return the number of elements in a register."""
        return _REGISTER_BITS // self.element.bits

    @property
    def operands(self) -> tuple[DType, ...]:
        """Return the dtypes of all operands."""
        return (*(self.element,) * (2 * self.factors), self.sum)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One element of D = A B + C, for matrices that the threads of a wave hold together.

    The operands are the thread's elements of A, of B and of C, then the number of the wanted
    element of D among those of the thread.
    """

    name: str
    element: DType  # of A and B
    sum: DType  # of C and D
    factors: int  # elements of A that a thread holds, and of B
    sums: int  # elements of C that a thread holds, and of D
    gpus: tuple[str, ...]  # prefixes of the names of the GPUs that have it
    wave: int  # threads that hold the matrices together
    size: int  # rows of C, and columns

    @property
    def operands(self) -> tuple[DType, ...]:
        """Return the dtypes of all operands."""
        return (*(self.element,) * (2 * self.factors), *(self.sum,) * self.sums, I32)

    @property
    def depth(self) -> int:
        """Return the number of columns of A: each element of D is the sum of so many products."""
        if self._holds_whole_rows:
            return self.factors
        return self.factors * self.wave // self.size

    def depth_at(self, thread: int, number: int) -> int:
        """Return the column of A that holds element `number` of a thread's elements of A."""
        if self._holds_whole_rows:
            return number
        return thread // self.size * self.factors + number

    def row_at(self, thread: int, number: int) -> int:
        """Return the row of element `number` of a thread's elements of D.

        Its column is `thread % size`.
        """
        part = thread // self.size
        if self._holds_whole_rows:
            return 2 * number + part
        if ".wmma." in self.name:
            return part * self.sums + number
        # mfma: rows come in blocks of 4, and the parts of the wave take turns.
        block, row = divmod(number, 4)
        return block * (4 * self.wave // self.size) + part * 4 + row

    @property
    def _holds_whole_rows(self) -> bool:
        """Return True if a thread holds a whole row of A and column of B (wmma of gfx11)."""
        return ".wmma." in self.name and self.factors == self.size


def _matrix(
    name: str, dtypes: str, counts: str, gpus: tuple[str, ...], wave: int
) -> MatrixProduct:
    """Return a row of the table; `counts` are factors, sums and size."""
    element, total = map(as_dtype, dtypes.split())
    factors, sums, size = map(int, counts.split())
    return MatrixProduct(
        name=f"{_PREFIX}{name}",
        element=element,
        sum=total,
        factors=factors,
        sums=sums,
        gpus=gpus,
        wave=wave,
        size=size,
    )


# The GPUs with dot products, and those with matrix products (CDNA 1 to 4, in order).
_CDNA = ("gfx908", "gfx90a", "gfx94", "gfx95")
_RDNA = ("gfx1011", "gfx1012", "gfx103", "gfx11", "gfx120")
_DOT = ("gfx906", *_CDNA, *_RDNA)
_TABLE = (
    DotProduct(f"{_PREFIX}sdot4", as_dtype("i8"), as_dtype("i32"), _DOT),
    DotProduct(f"{_PREFIX}udot4", as_dtype("u8"), as_dtype("u32"), _DOT),
    DotProduct(f"{_PREFIX}fdot2", as_dtype("f16"), as_dtype("f32"), _DOT),
    DotProduct(
        name=f"{_PREFIX}fdot2.f32.bf16",
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
GPU_INTRINSICS: dict[str, DotProduct | MatrixProduct] = {
    intrinsic.name: intrinsic for intrinsic in _TABLE
}


def is_gpu_intrinsic(name: str) -> bool:
    """Return True if the function `name` is an instruction of AMD GPUs."""
    return name.startswith(_PREFIX)


def gpu_intrinsic_fault(call: PureExtern) -> str | None:
    """Describe what is wrong with the operands of `call`; None if nothing is."""
    intrinsic = GPU_INTRINSICS.get(call.name)
    if intrinsic is None:
        known = " ".join(GPU_INTRINSICS)
        return f"{call.name} is not a known instruction; known: {known}"
    given = tuple(arg.dtype for arg in call.args)
    wanted = intrinsic.operands
    # Passes replace bf16 by its bits.
    lowered = tuple(_BF16_BITS if d.kind == "bfloat" else d for d in wanted)
    if given not in (wanted, lowered) or call.dtype != intrinsic.sum:
        expected = f"({', '.join(map(str, wanted))}) -> {intrinsic.sum}"
        actual = f"({', '.join(map(str, given))}) -> {call.dtype}"
        return f"{call.name} is {expected}, not {actual}"
    number = as_int(call.args[-1])
    if isinstance(intrinsic, MatrixProduct) and number not in range(intrinsic.sums):
        return f"the last operand of {call.name} is a constant from 0 to {intrinsic.sums - 1}"
    return None


def is_of_a_wave(expr: object) -> bool:
    """Return True if the threads of a wave compute `expr` together."""
    if not isinstance(expr, PureExtern):
        return False
    intrinsic = GPU_INTRINSICS.get(expr.name)
    return intrinsic is not None and intrinsic.wave > 1


# Note [Matrix products]
# ~~~~~~~~~~~~~~~~~~~~~~
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
#
# Note [Sums of products]
# ~~~~~~~~~~~~~~~~~~~~~~~
# Integers wrap. Products of f32 are added one after the other along the depth, each by one fused
# operation. Of narrower floats, all products and the old sum are added exactly and rounded once.
#
# AMD's manuals permit a GPU more: it may round in between, in its own order, and flush subnormal
# numbers to zero. A comparison with a GPU allows for that.

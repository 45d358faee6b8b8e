"""The instructions of AMD GPUs that kernels may name: dot products, and products of matrices.

A PureExtern of such a name is an instruction of the GPU; no other target has it. Operands and
results are scalars: the elements of a register come one by one, and a matrix product is asked for
one of the elements that it gives a thread (Note [Matrix products]). An operand of bf16 may come as
its bits, a u16, as passes leave it (Note [Sums of products] says what is rounded). Matrix products
are computed by the threads of a wave together: all of them come there at the same time.
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
    """Adds to the last operand the products of the first operands by as many others, which fill a
    register each. `gpus` are the beginnings of the names of GPUs that have it."""

    name: str
    element: DType
    sum: DType
    gpus: tuple[str, ...]
    wave: int = 1

    @property
    def factors(self) -> int:
        """How many elements a register has."""
        return _REGISTER_BITS // self.element.bits

    @property
    def operands(self) -> tuple[DType, ...]:
        """The dtypes of all operands."""
        return (*(self.element,) * (2 * self.factors), self.sum)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One element, which the last operand says, of a product of matrices plus a third one. Of the
    operands `factors` are a thread's elements of each factor, `sums` those of the sum; `wave` is
    how many threads hold the matrices together, and `size` the rows and columns of the sum."""

    name: str
    element: DType
    sum: DType
    factors: int
    sums: int
    gpus: tuple[str, ...]
    wave: int
    size: int

    @property
    def operands(self) -> tuple[DType, ...]:
        """The dtypes of all operands."""
        return (*(self.element,) * (2 * self.factors), *(self.sum,) * self.sums, I32)

    @property
    def depth(self) -> int:
        """How many products each element of the sum is made of."""
        return self.factors if self._is_whole else self.factors * self.wave // self.size

    def depth_at(self, thread: int, number: int) -> int:
        """Which of these a thread's element `number` of a factor is for."""
        part = 0 if self._is_whole else thread // self.size
        return part * self.factors + number

    def row_at(self, thread: int, number: int) -> int:
        """The row of a thread's element `number` of the sum; its column is `thread % size`."""
        part = thread // self.size
        if self._is_whole:
            return 2 * number + part
        if ".wmma." in self.name:
            return part * self.sums + number
        return number // 4 * (4 * self.wave // self.size) + part * 4 + number % 4

    @property
    def _is_whole(self) -> bool:
        """Whether each thread has all of a row or column of its factors."""
        return ".wmma." in self.name and self.factors == self.size


def _matrix(
    name: str, dtypes: str, counts: str, gpus: tuple[str, ...], wave: int
) -> MatrixProduct:
    element, total = map(as_dtype, dtypes.split())
    factors, sums, size = map(int, counts.split())
    return MatrixProduct(
        f"{_PREFIX}{name}", element, total, factors, sums, gpus, wave, size
    )


_BYTES = (
    "gfx906",
    "gfx908",
    "gfx90a",
    "gfx94",
    "gfx95",
    "gfx1011",
    "gfx1012",
    "gfx103",
)
_MATRIX = ("gfx908", "gfx90a", "gfx94", "gfx95")
_DOT = (*_BYTES, "gfx11", "gfx120")
_TABLE = (
    DotProduct(f"{_PREFIX}sdot4", as_dtype("i8"), as_dtype("i32"), _DOT),
    DotProduct(f"{_PREFIX}udot4", as_dtype("u8"), as_dtype("u32"), _DOT),
    DotProduct(f"{_PREFIX}fdot2", as_dtype("f16"), as_dtype("f32"), _DOT),
    DotProduct(
        *(f"{_PREFIX}fdot2.f32.bf16", as_dtype("bf16"), as_dtype("f32")),
        ("gfx11", "gfx120", "gfx95"),
    ),
    _matrix("mfma.f32.16x16x4f32", "f32 f32", "1 4 16", _MATRIX, 64),
    _matrix("mfma.f32.32x32x2f32", "f32 f32", "1 16 32", _MATRIX, 64),
    _matrix("mfma.f32.16x16x16f16", "f16 f32", "4 4 16", _MATRIX, 64),
    _matrix("mfma.f32.32x32x8f16", "f16 f32", "4 16 32", _MATRIX, 64),
    _matrix("mfma.f32.16x16x16bf16.1k", "bf16 f32", "4 4 16", _MATRIX[1:], 64),
    _matrix("mfma.f32.32x32x8bf16.1k", "bf16 f32", "4 16 32", _MATRIX[1:], 64),
    _matrix("mfma.i32.16x16x32.i8", "i8 i32", "8 4 16", _MATRIX[2:], 64),
    _matrix("mfma.i32.32x32x16.i8", "i8 i32", "8 16 32", _MATRIX[2:], 64),
    _matrix("mfma.f32.16x16x32.f16", "f16 f32", "8 4 16", _MATRIX[3:], 64),
    _matrix("mfma.f32.32x32x16.f16", "f16 f32", "8 16 32", _MATRIX[3:], 64),
    _matrix("mfma.f32.16x16x32.bf16", "bf16 f32", "8 4 16", _MATRIX[3:], 64),
    _matrix("mfma.f32.32x32x16.bf16", "bf16 f32", "8 16 32", _MATRIX[3:], 64),
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
    """Whether the function `name` is one that AMD GPUs alone know."""
    return name.startswith(_PREFIX)


def gpu_intrinsic_fault(call: PureExtern) -> str | None:
    """What is wrong with the operands of `call`, in words; None: nothing."""
    intrinsic = GPU_INTRINSICS.get(call.name)
    if intrinsic is None:
        return f"{call.name} is no instruction that is known; known: {' '.join(GPU_INTRINSICS)}"
    given = tuple(arg.dtype for arg in call.args)
    wanted = intrinsic.operands
    if (
        given not in (wanted, tuple(map(_passed, wanted)))
        or call.dtype != intrinsic.sum
    ):
        told = f"({', '.join(map(str, wanted))}) -> {intrinsic.sum}"
        return (
            f"{call.name} is {told}, not ({', '.join(map(str, given))}) -> {call.dtype}"
        )
    which = as_int(call.args[-1])
    if isinstance(intrinsic, MatrixProduct) and which not in range(intrinsic.sums):
        return f"the last operand of {call.name} is a constant from 0 to {intrinsic.sums - 1}"
    return None


def _passed(dtype: DType) -> DType:
    return _BF16_BITS if dtype.kind == "bfloat" else dtype


def is_of_a_wave(expr: object) -> bool:
    """Whether the threads of a wave compute `expr` together."""
    if not isinstance(expr, PureExtern):
        return False
    intrinsic = GPU_INTRINSICS.get(expr.name)
    return intrinsic is not None and intrinsic.wave > 1


# Note [Matrix products]
# ~~~~~~~~~~~~~~~~~~~~~~
# D = A B + C. In `mfma.T.MxMxK...` of 64 threads, thread t of a wave has, with g = t // M and q
# elements of each factor, A[t % M, g q + n] and B[g q + n, t % M] for n below q; and of C and D the
# elements v = 0, 1, ... of column t % M, which lie in row 4 g + v where M is 16, and in row
# v // 4 * 8 + g * 4 + v % 4 where it is 32. In `wmma.f32.16x16x16.T` of 32 threads, thread t has
# A[t % 16, n] and B[n, t % 16] for n below 16, and of C and D in column t % 16 the rows
# 2 v + t // 16. With 8 elements of a factor (gfx12) it has those of g q + n as in `mfma`, and the
# rows 8 g + v. Source: AMD's manuals of the instructions of CDNA 3 and 4 and of RDNA 3 and 4.
#
# Note [Sums of products]
# ~~~~~~~~~~~~~~~~~~~~~~~
# Integers wrap. Products of f32 are added one after the other along the depth, each by one fused
# operation. Of narrower floats all products and the old sum are added exactly, and rounded once.
# The manuals leave more to a GPU: it may round in between, in its own order, and take subnormal
# numbers for zeros; a comparison with one allows for that.

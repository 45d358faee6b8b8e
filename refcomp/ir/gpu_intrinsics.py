"""The instructions of AMD GPUs that kernels may name: dot products of bytes, and matrix products.

A PureExtern of such a name is an instruction of the GPU; no other target has it. Operands and
results are scalars: the four bytes of a register come one by one, and a matrix product is asked for
one of the elements that it gives a thread (Note [Matrix products]). The interpreter knows what dot
products compute. Matrix products are computed by the threads of a wave together: all of them come
there at the same time, and the interpreter, which runs threads apart, refuses them.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.dtype import I32, DType, as_dtype
from refcomp.ir.expr import IntImm, PureExtern

_PREFIX = "llvm.amdgcn."
LANES = 4  # bytes of a register


@dataclass(frozen=True, slots=True)
class DotProduct:
    """Adds to the last operand the products of the first four by the next four, and wraps. `gpus`
    are the beginnings of the names of GPUs that have it."""

    name: str
    element: DType
    sum: DType
    gpus: tuple[str, ...]
    wave: int = 1

    @property
    def operands(self) -> tuple[DType, ...]:
        """The dtypes of all operands."""
        return (*(self.element,) * (2 * LANES), self.sum)


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One element, which the last operand says, of a product of matrices plus a third one. Of the
    operands `factors` are a thread's elements of each factor, `sums` those of the sum; `wave` is
    how many threads hold the matrices together."""

    name: str
    element: DType
    sum: DType
    factors: int
    sums: int
    gpus: tuple[str, ...]
    wave: int

    @property
    def operands(self) -> tuple[DType, ...]:
        """The dtypes of all operands."""
        return (*(self.element,) * (2 * self.factors), *(self.sum,) * self.sums, I32)


def _matrix(name: str, dtypes: str, counts: str, gpus: tuple[str, ...], wave: int) -> MatrixProduct:
    element, total = map(as_dtype, dtypes.split())
    factors, sums = map(int, counts.split())
    return MatrixProduct(f"{_PREFIX}{name}", element, total, factors, sums, gpus, wave)


_GPUS = ("gfx906", "gfx908", "gfx90a", "gfx94", "gfx95", "gfx1011", "gfx1012", "gfx103")
_MATRIX = ("gfx908", "gfx90a", "gfx94", "gfx95")
_TABLE = (
    DotProduct(f"{_PREFIX}sdot4", as_dtype("i8"), as_dtype("i32"), (*_GPUS, "gfx11", "gfx12")),
    DotProduct(f"{_PREFIX}udot4", as_dtype("u8"), as_dtype("u32"), (*_GPUS, "gfx11", "gfx12")),
    _matrix("mfma.f32.16x16x4f32", "f32 f32", "1 4", _MATRIX, 64),
    _matrix("mfma.f32.32x32x2f32", "f32 f32", "1 16", _MATRIX, 64),
    _matrix("mfma.f32.16x16x16f16", "f16 f32", "4 4", _MATRIX, 64),
    _matrix("mfma.f32.32x32x8f16", "f16 f32", "4 16", _MATRIX, 64),
    _matrix("wmma.f32.16x16x16.f16", "f16 f32", "16 8", ("gfx11",), 32),
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
    given, wanted = tuple(arg.dtype for arg in call.args), intrinsic.operands
    if given != wanted or call.dtype != intrinsic.sum:
        told = f"({', '.join(map(str, wanted))}) -> {intrinsic.sum}"
        return f"{call.name} is {told}, not ({', '.join(map(str, given))}) -> {call.dtype}"
    which = call.args[-1]
    if isinstance(intrinsic, MatrixProduct) and not (
        isinstance(which, IntImm) and 0 <= which.value < intrinsic.sums
    ):
        return f"the last operand of {call.name} is a constant from 0 to {intrinsic.sums - 1}"
    return None


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
# v // 4 * 8 + g * 4 + v % 4 where it is 32. In `wmma.f32.16x16x16.f16` of 32 threads, thread t has
# A[t % 16, n] and B[n, t % 16] for n below 16, and of C and D in column t % 16 the rows
# 2 v + t // 16. Source: AMD's manuals of the instructions of CDNA 3 and RDNA 3.

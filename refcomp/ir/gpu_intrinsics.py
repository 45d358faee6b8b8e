"""The instructions of AMD GPUs that kernels may name: sums of products of four bytes.

A PureExtern of such a name is an instruction of the GPU. The interpreter knows what it computes; no
other target has it. Its operands are scalars: the four bytes of a register come one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.dtype import DType, as_dtype
from refcomp.ir.expr import PureExtern

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

    @property
    def operands(self) -> tuple[DType, ...]:
        """The dtypes of all operands."""
        return (*(self.element,) * (2 * LANES), self.sum)


_GPUS = ("gfx906", "gfx908", "gfx90a", "gfx94", "gfx95", "gfx1011", "gfx1012", "gfx103")
_TABLE = (
    DotProduct(f"{_PREFIX}sdot4", as_dtype("i8"), as_dtype("i32"), (*_GPUS, "gfx11", "gfx12")),
    DotProduct(f"{_PREFIX}udot4", as_dtype("u8"), as_dtype("u32"), (*_GPUS, "gfx11", "gfx12")),
)
GPU_INTRINSICS = {intrinsic.name: intrinsic for intrinsic in _TABLE}


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
    return None

"""Print what the threads of a subgroup compute together, for NVIDIA GPUs.

Lanes of a warp read each other's registers, 32 bits at a time. A value of another width goes in one
or two such pieces. The threads of a group fill its warps in the order of their numbers. The width
of a subgroup divides the lanes of a warp, so its threads are in one warp. Refuses, with
Unsupported, subgroups that are wider than a warp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.codegen.llvm.kernels import print_subgroup_sum, subgroup_width
from refcomp.codegen.llvm.maths import CALLS
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.expr import Call, IntImm
from refcomp.ir.intrinsics import is_subgroup_call

WARP = 32  # lanes
_PIECE_BITS = 32
# The operand `c` of shfl.sync: from bit 8 on the bits of a lane's number that stay its own, below
# them the last lane. See "shfl.sync" of the PTX ISA.
_MASK_SHIFT = 8


@dataclass(frozen=True, slots=True)
class _WarpLane:
    """A lane that a lane reads: see templates/nvptx/subgroups.j2."""

    way: Literal["bfly", "idx"]
    number: int | str  # a constant, or an operand
    clamp: int


def _call(out: LlvmFunction, call: Call) -> str:
    if not is_subgroup_call(call):
        return CALLS[Call](out, call)
    width = subgroup_width(out, call)
    clamp = (WARP - width) << _MASK_SHIFT | WARP - 1
    value = out.value(call.args[0])

    def read_xor(value: str, mask: int) -> str:
        return _read(out, value, call.dtype, _WarpLane("bfly", mask, clamp))

    if call.name == "subgroup_shuffle":
        number = call.args[1]
        within = out.value(ir.BitAnd(number, IntImm(width - 1, number.dtype)))
        return _read(out, value, call.dtype, _WarpLane("idx", within, clamp))
    if call.name == "subgroup_shuffle_xor":
        mask = call.args[1]
        assert isinstance(mask, IntImm)
        return read_xor(value, mask.value)
    return print_subgroup_sum(out, value, width, call.dtype, read_xor)


def _read(out: LlvmFunction, value: str, dtype: DType, source: _WarpLane) -> str:
    """Print the read of another lane's `value`."""
    out.declare(f"shuffle {source.way}", out.say.declare_shuffle, way=source.way)
    if dtype.bits == _PIECE_BITS:
        macro = out.say.shuffle
    elif dtype.bits < _PIECE_BITS:
        macro = out.say.shuffle_narrow
    else:
        macro = out.say.shuffle_wide
    return out.instruction(
        macro,
        type=out.type_of(dtype),
        bits=out.type_of(DType("uint", dtype.bits)),
        value=value,
        source=source,
    )


SUBGROUP_CALLS: ExpressionPrinters = {Call: _call}

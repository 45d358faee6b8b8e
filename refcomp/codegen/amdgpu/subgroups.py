"""Print what the threads of a subgroup compute together, for AMD GPUs.

Lanes of a wave read each other's registers, 32 bits at a time. A value of another width goes in
one or two such pieces. How a lane is read depends on its distance:

- A near lane, as part of another instruction (DPP).
- A lane further away, through the paths of shared memory, which stays free.
- One lane that all lanes read, as a scalar.

The threads of a group fill its waves in the order of their numbers. The width of a subgroup divides
the lanes of a wave, so its threads are in one wave. Refuses, with Unsupported, subgroups that are
wider than a wave of the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from refcomp.codegen.amdgpu.names import isa_version
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.codegen.llvm.kernels import print_subgroup_sum, subgroup_width
from refcomp.codegen.llvm.maths import CALLS
from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir
from refcomp.ir.expr import Call, Expr, IntImm
from refcomp.ir.intrinsics import is_subgroup_call
from refcomp.ir.kernels import may_vary

_PIECE_BITS = 32
# Lanes that instructions permute among themselves, and the numbers that say how. See "Data parallel
# primitives" and "DS_SWIZZLE_B32" of AMD's manuals.
_QUAD = 4
_ROW = 16
_SWIZZLED = 32
_ROW_XOR = 0x160
_SWIZZLE_XOR_SHIFT = 10
_MIN_MAJOR_WITH_ROW_XOR = 10


@dataclass(frozen=True, slots=True)
class _OtherLane:
    """A lane that a lane reads, and the instruction for it: templates/amdgpu/subgroups.j2."""

    way: Literal["permute", "swizzle", "xor", "within", "one", "first"]
    number: int | str  # a constant, or an operand
    # For `within`: the bits that are kept of the reading lane's own number.
    kept: int = 0


def _call(out: LlvmFunction, call: Call) -> str:
    if not is_subgroup_call(call):
        return CALLS[Call](out, call)
    numbers = [arg.value for arg in call.args[1:] if isinstance(arg, IntImm)]
    width = subgroup_width(out, call)
    value = out.value(call.args[0])
    if call.name == "subgroup_shuffle":
        return _read(out, value, call.dtype, _numbered_lane(out, call.args[1], width))
    if call.name == "subgroup_shuffle_xor":
        return _read(out, value, call.dtype, _xor_lane(out, numbers[0]))

    def read(value: str, mask: int) -> str:
        return _read(out, value, call.dtype, _xor_lane(out, mask))

    return print_subgroup_sum(out, value, width, call.dtype, read)


def _read(out: LlvmFunction, value: str, dtype: DType, source: _OtherLane) -> str:
    """Print the read of another lane's `value`."""
    way = "address" if source.way in ("xor", "within") else source.way
    out.declare(f"shuffle {way}", out.say.declare_shuffle, way=way)
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


def _numbered_lane(out: LlvmFunction, number: Expr, width: int) -> _OtherLane:
    """Return the lane with a number within each subgroup."""
    within = ir.BitAnd(number, IntImm(width - 1, number.dtype))
    if width < out.module.wavefront_size or may_vary(number, out.varying):
        return _OtherLane("within", out.value(within), kept=-width)
    if isinstance(number, IntImm) and number.value % width == 0:
        return _OtherLane("first", 0)  # all lanes are active
    return _OtherLane("one", out.value(within))


def _xor_lane(out: LlvmFunction, mask: int) -> _OtherLane:
    """Return the lane whose number differs by `mask`, with the quickest way to it."""
    if mask < _QUAD:
        lanes = sum((lane ^ mask) << (2 * lane) for lane in range(_QUAD))
        return _OtherLane("permute", lanes)
    major = isa_version(out.module.gpu).major
    if mask < _ROW and major >= _MIN_MAJOR_WITH_ROW_XOR:
        return _OtherLane("permute", _ROW_XOR + mask)
    if mask < _SWIZZLED:
        return _OtherLane("swizzle", mask << _SWIZZLE_XOR_SHIFT | _SWIZZLED - 1)
    return _OtherLane("xor", mask)


SUBGROUP_CALLS: ExpressionPrinters = {Call: _call}

"""Prints what the threads of a subgroup compute together, for AMD GPUs.

Lanes of a wave read each other's registers, 32 bits at a time; a value of another width goes in one
or two such pieces. Near lanes are read as a part of other instructions (DPP), further ones through
the paths of shared memory, without taking any; one lane that all read, as a scalar. The threads of
a group fill its waves in the order of their numbers, so the threads of a subgroup, whose width
divides a wave's, are in one wave. Refuses, with Unsupported, subgroups that are wider than a wave
of the GPU.
"""

from __future__ import annotations

from typing import Any

from refcomp.codegen.amdgpu.names import isa_version
from refcomp.codegen.llvm.function import ExpressionPrinters, LlvmFunction
from refcomp.codegen.llvm.maths import CALLS
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.expr import Call, Expr, IntImm, Var
from refcomp.ir.intrinsics import is_subgroup_call
from refcomp.ir.kernels import may_vary

_PIECE = DType("uint", 32)
# As "Data parallel primitives" and "DS_SWIZZLE_B32" of the manuals have it: lanes that instructions
# permute among themselves, and the numbers that say how.
_QUAD, _ROW, _SWIZZLED = 4, 16, 32
_ROW_XOR, _SWIZZLE_XOR = 0x160, 10
_FIRST_WITH_ROW_XOR = 10
_BY_ADDRESS = ("xor", "within")


def _call(out: LlvmFunction, call: Call) -> str:
    if not is_subgroup_call(call):
        return CALLS[Call](out, call)
    numbers = [arg.value for arg in call.args[1:] if isinstance(arg, IntImm)]
    _check_width(out, numbers[-1])
    value = out.value(call.args[0])
    if call.name == "subgroup_shuffle":
        return _exchange(out, value, call.dtype, *_one(out, call.args[1], numbers[-1]))
    if call.name == "subgroup_shuffle_xor":
        return _exchange(out, value, call.dtype, *_way(out, numbers[0]))
    return _sum(out, value, numbers[-1], call.dtype)


def _check_width(out: LlvmFunction, width: int) -> None:
    if width > out.module.wavefront_size:
        raise Unsupported(
            f"a subgroup of {width} threads",
            why=f"a wave of this GPU has {out.module.wavefront_size}",
            remedy="schedule for narrower subgroups",
        )


def _sum(out: LlvmFunction, value: str, width: int, dtype: DType) -> str:
    """The same sum in all threads, as each adds the same pairs in some order of two."""
    mask = 1
    while mask < width:
        mine, others = Var("mine", dtype), Var("others", dtype)
        out.names[mine], out.names[others] = (
            value,
            _exchange(out, value, dtype, *_way(out, mask)),
        )
        value, mask = out.value(ir.Add(mine, others)), 2 * mask
    return value


def _exchange(
    out: LlvmFunction, value: str, dtype: DType, way: str, number: Any
) -> str:
    module, result = out.module, out.fresh()
    declare, key = out.say.declare_shuffle, "address" if way in _BY_ADDRESS else way
    module.declarations.add(f"shuffle {key}", lambda: declare(key))
    types = module.type_of(dtype), module.type_of(DType("uint", dtype.bits))
    macro = out.say.shuffle if dtype.bits == _PIECE.bits else out.say.shuffle_wide
    if dtype.bits < _PIECE.bits:
        macro = out.say.shuffle_narrow
    out.emit(macro(result, *types, value, way, number))
    return result


def _one(out: LlvmFunction, number: Expr, width: int) -> tuple[str, Any]:
    """How the lane of that number within each subgroup is read."""
    if width < out.module.wavefront_size or may_vary(number, out.varying):
        return "within", (
            -width,
            out.value(ir.BitAnd(number, IntImm(width - 1, number.dtype))),
        )
    if isinstance(number, IntImm) and number.value % width == 0:
        return "first", 0  # all lanes are there
    return "one", out.value(ir.BitAnd(number, IntImm(width - 1, number.dtype)))


def _way(out: LlvmFunction, mask: int) -> tuple[str, int]:
    """The quickest way to the lane whose number differs by `mask`, and how it calls that lane."""
    if mask < _QUAD:
        return "permute", sum((lane ^ mask) << (2 * lane) for lane in range(_QUAD))
    if mask < _ROW and isa_version(out.module.gpu).major >= _FIRST_WITH_ROW_XOR:
        return "permute", _ROW_XOR + mask
    if mask < _SWIZZLED:
        return "swizzle", mask << _SWIZZLE_XOR | _SWIZZLED - 1
    return "xor", mask


SUBGROUP_CALLS: ExpressionPrinters = {Call: _call}

"""Prints what the threads of a subgroup compute together, by the functions of a C dialect.

A call gets a name of its own: within a condition of C it might be evaluated by some threads only.
Needs a device whose subgroups have as many threads as the call says, or more. Refuses devices that
do not exchange values within subgroups (Unsupported), and groups of a constant size that the width
does not divide (UserError).
"""

from __future__ import annotations

from math import prod

from refcomp.codegen.c_family.expressions import add
from refcomp.codegen.c_family.function import CExpr, CFunction
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import BitAnd, Call, Expr, IntImm

_MASK = DType("uint", 32)


def print_subgroup_call(out: CFunction, call: Call, value: CExpr) -> CExpr:
    """A call of SUBGROUP_INTRINSICS; `value` is its first operand."""
    numbers = [arg.value for arg in call.args[1:] if isinstance(arg, IntImm)]
    _check_width(out, numbers[-1])
    if call.name == "subgroup_shuffle":
        return _shuffle_one(out, value, call.args[1], numbers[-1], call.dtype)
    if call.name == "subgroup_shuffle_xor":
        return _shuffle(out, value, numbers[0], call.dtype)
    return _sum(out, value, numbers[-1], call.dtype)


def _check_width(out: CFunction, width: int) -> None:
    if out.group_size is not None and prod(out.group_size) % width:
        raise UserError(
            f"a subgroup of {width} threads in a group of {prod(out.group_size)}",
            why="the threads that are left over would have nobody to ask",
            remedy="make the extents of the threadIdx loops a multiple of the width",
        )


def _shuffle(out: CFunction, value: CExpr, mask: int, dtype: DType) -> CExpr:
    function = _function(out, "shuffle_xor")
    held = out.narrowed(value, dtype)
    return out.bind(out.call(function, held, out.module.literal(mask, _MASK)), dtype)


def _shuffle_one(
    out: CFunction, value: CExpr, number: Expr, width: int, dtype: DType
) -> CExpr:
    """The function counts within a whole subgroup, which may hold several of `width` threads."""
    function = _function(out, "shuffle")
    own = out.module.tables["subgroup"]["shuffle"]["own_number"]
    within = out.bind(
        out.value(BitAnd(number, IntImm(width - 1, number.dtype))), number.dtype
    )
    kept = out.module.literal(2**32 - width, _MASK)
    place = out.compound(out.say.place_in_subgroup(own, kept.text, within.text), within)
    return out.bind(out.call(function, out.narrowed(value, dtype), place), dtype)


def _sum(out: CFunction, value: CExpr, width: int, dtype: DType) -> CExpr:
    if dtype.is_int:  # in any order
        function = _function(out, "reduce_add")
        count = out.module.literal(width, _MASK)
        return out.bind(out.call(function, out.narrowed(value, dtype), count), dtype)
    sum_, mask = out.atom(value, dtype), 1
    while mask < width:
        other = _shuffle(out, sum_, mask, dtype)
        sum_, mask = out.bind(add(out, sum_, other, dtype), dtype), 2 * mask
    return sum_


def _function(out: CFunction, operation: str) -> str:
    entry = out.module.tables["subgroup"][operation]
    out.module.use(
        entry["extension"], "threads cannot exchange values within subgroups"
    )
    name: str = entry["name"]
    return name

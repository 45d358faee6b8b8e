"""Print what the threads of a subgroup compute together, by the functions of a C dialect.

The result of a call gets a name of its own: inside a condition of C, some threads might not
evaluate it. Needs a device whose subgroups have at least as many threads as the call names.
Refuses, with Unsupported, devices that do not exchange values within subgroups, and subgroups that
are wider than the table `subgroup` says. Refuses, with UserError, groups of a constant size that is
not a multiple of the width.
"""

from __future__ import annotations

from math import prod

from refcomp.codegen.c_family.expressions import add
from refcomp.codegen.c_family.function import CExpr, CFunction
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.expr import BitAnd, Call, IntImm

_U32 = DType("uint", 32)


def print_subgroup_call(out: CFunction, call: Call, value: CExpr) -> CExpr:
    """Print a call of SUBGROUP_INTRINSICS, whose first argument is `value`."""
    numbers = [arg.value for arg in call.args[1:] if isinstance(arg, IntImm)]
    width = numbers[-1]  # threads of a subgroup
    if out.group_size is not None and prod(out.group_size) % width:
        raise UserError(
            f"a group of {prod(out.group_size)} threads cannot be divided into "
            f"subgroups of {width}",
            why="the last subgroup would lack threads that others exchange values with",
            remedy="make the extents of the threadIdx loops a multiple of the width",
        )
    widest = out.tables["subgroup"].get("threads", width)
    if width > widest:
        raise Unsupported(
            f"a subgroup of {width} threads does not fit into a warp",
            why=f"a warp of this GPU has {widest} lanes",
            remedy="schedule for narrower subgroups",
        )
    if call.name == "subgroup_shuffle":
        return _shuffle(out, value, call, width)
    if call.name == "subgroup_shuffle_xor":
        return _exchange(out, "shuffle_xor", value, numbers[0], call.dtype)
    return _sum(out, value, width, call.dtype)


def _shuffle(
    out: CFunction,
    value: CExpr,
    call: Call,
    width: int,
) -> CExpr:
    # The function counts threads within the device's subgroup, which may hold several of `width`.
    function = _function(out, "shuffle")
    number = call.args[1]
    within = out.value(BitAnd(number, IntImm(width - 1, number.dtype)))
    place = out.compound(
        out.say.place_in_subgroup,
        within=out.bind(within, number.dtype),
        own=out.tables["subgroup"]["shuffle"]["own_number"],
        kept=out.literal(2**32 - width, _U32),
    )
    shuffled = out.call(function, out.narrowed(value, call.dtype), place)
    return out.bind(shuffled, call.dtype)


def _sum(
    out: CFunction,
    value: CExpr,
    width: int,
    dtype: DType,
) -> CExpr:
    if dtype.is_int:  # any order of the additions gives the same sum
        return _exchange(out, "reduce_add", value, width, dtype)
    total = out.atom(value, dtype)
    mask = 1
    while mask < width:
        other = _exchange(out, "shuffle_xor", total, mask, dtype)
        total = out.bind(add(out, total, other, dtype), dtype)
        mask *= 2
    return total


def _exchange(
    out: CFunction,
    operation: str,
    value: CExpr,
    number: int,
    dtype: DType,
) -> CExpr:
    """Return the result, under a name, of an operation on `value` of each thread and `number`."""
    function = _function(out, operation)
    held = out.narrowed(value, dtype)
    return out.bind(out.call(function, held, out.literal(number, _U32)), dtype)


def _function(out: CFunction, operation: str) -> str:
    entry = out.tables["subgroup"][operation]
    what = "threads cannot exchange values within subgroups"
    out.module.use(entry["extension"], what)
    return str(entry["name"])

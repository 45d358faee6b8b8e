"""The pure functions that a Call may name: their arity, operand kinds and result.

All but those of SUBGROUP_INTRINSICS (Note [Subgroups]) work lane by lane.
"""

from __future__ import annotations

from typing import Literal

from refcomp.foundation.dtype import BOOL, I32, DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.foundation.near_misses import advise
from refcomp.foundation.records import record
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Call


@record
class Intrinsic:
    """A pure function of `arity` operands, all of one dtype."""

    name: str
    arity: int
    kinds: tuple[str, ...]  # kinds of dtypes that the operands may have
    # The error bound in f32 and f64 that each target must keep, in units in the last place. It
    # follows from the accuracy of C libraries and of their vector versions. 0: correctly rounded.
    ulp: float
    result_bool: bool = False  # the result is a bool, not of the operands' dtype
    # Kind of the result; "": the operands'.
    result_kind: Literal["", "uint", "float"] = ""

    def result_dtype(self, operand: DType) -> DType:
        """Return the dtype of the result for operands of dtype `operand`."""
        if self.result_bool:
            return BOOL.with_lanes(operand.lanes)
        if self.result_kind:
            return DType(self.result_kind, operand.bits, operand.lanes)
        return operand


_FLOAT = ("float", "bfloat")
_INT = ("int", "uint")
_EXACT = "sqrt floor ceil trunc round"
_PREDICATES = "isnan isinf isfinite"
_APPROXIMATE = (
    "exp exp2 exp10 expm1 log log2 log10 log1p erf rsqrt "
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid"
)
_APPROXIMATE_BINARY = "pow atan2 hypot"

_TABLE = (
    *(Intrinsic(name, 1, _FLOAT, 0.0) for name in _EXACT.split()),
    Intrinsic("abs", 1, (*_FLOAT, "int"), 0.0),
    Intrinsic("fma", 3, ("float",), 0.0),
    Intrinsic("copysign", 2, _FLOAT, 0.0),
    *(Intrinsic(name, 1, _FLOAT, 0.0, True) for name in _PREDICATES.split()),
    *(Intrinsic(name, 1, _FLOAT, 4.0) for name in _APPROXIMATE.split()),
    *(Intrinsic(name, 2, _FLOAT, 4.0) for name in _APPROXIMATE_BINARY.split()),
    *(Intrinsic(name, 1, _INT, 0.0) for name in ("popcount", "clz")),
    # The same bits as another type of the same width. u8 is refused: no float has 8 bits.
    Intrinsic("float_to_bits", 1, ("float",), 0.0, result_kind="uint"),
    Intrinsic("bits_to_float", 1, ("uint",), 0.0, result_kind="float"),
)
INTRINSICS = {intrinsic.name: intrinsic for intrinsic in _TABLE}
SUBGROUP_INTRINSICS = {
    "subgroup_shuffle": Intrinsic("subgroup_shuffle", 3, (*_INT, "float"), 0.0),
    "subgroup_shuffle_xor": Intrinsic("subgroup_shuffle_xor", 3, (*_INT, "float"), 0.0),
    "subgroup_reduce_add": Intrinsic("subgroup_reduce_add", 2, (*_INT, "float"), 0.0),
}
_MAX_SUBGROUP = 64  # threads; the widest wave of any GPU


def find_intrinsic(name: str, dtype: DType, count: int) -> Intrinsic:
    """Return the intrinsic `name` for `count` operands of `dtype`.

    Raises UserError if no such intrinsic exists.
    """
    checked_name(name, "an intrinsic")
    intrinsic = INTRINSICS.get(name) or SUBGROUP_INTRINSICS.get(name)
    if intrinsic is None:
        raise UserError(
            f"unknown intrinsic {name!r}",
            remedy=advise(name, INTRINSICS, f"known: {' '.join(INTRINSICS)}"),
        )
    if count != intrinsic.arity:
        raise UserError(f"{name} takes {intrinsic.arity} operands, {count} given")
    if dtype.kind not in intrinsic.kinds:
        raise UserError(
            f"{name} is not defined on dtype {dtype}",
            remedy=f"it takes {', '.join(intrinsic.kinds)}; convert with .astype(...)",
        )
    return intrinsic


def is_subgroup_call(expr: object) -> bool:
    """Return True if `expr` reads values of other threads."""
    return isinstance(expr, Call) and expr.name in SUBGROUP_INTRINSICS


def subgroup_fault(call: Call) -> str | None:
    """Describe what is wrong with the operands after the first one; None if nothing is."""
    name = call.name
    rest = call.args[1:]
    if name == "subgroup_shuffle" and rest[0].dtype == I32:
        rest = rest[1:]  # the number of a thread need not be constant
    numbers = as_ints(rest)
    if numbers is None or any(arg.dtype != I32 for arg in rest):
        return f"the operands of {name} after the first must be constants of dtype i32"
    if call.args[0].dtype.lanes != 1:
        return f"{name} takes a scalar, not {call.args[0].dtype}"
    *masks, width = numbers
    if not 2 <= width <= _MAX_SUBGROUP or width & (width - 1):
        return f"a subgroup has 2, 4, 8, 16, 32 or 64 threads, not {width}"
    if any(not 0 <= mask < width for mask in masks):
        return f"a mask of {name} is less than the width {width}, not {masks[0]}"
    return None


# Note [Subgroups]
# ~~~~~~~~~~~~~~~~
# A subgroup is `width` threads of one group with consecutive numbers. The number of a thread is
# (threadIdx.z * extent.y + threadIdx.y) * extent.x + threadIdx.x. That of the first thread is a
# multiple of the width.
#
# - `subgroup_shuffle(x, number, width)` is x of the subgroup's thread `number` modulo the width.
#   `number` is any expression of dtype i32.
# - `subgroup_shuffle_xor(x, mask, width)` is x of the thread whose number is this thread's number
#   xor the mask.
# - `subgroup_reduce_add(x, width)` is the sum of x over the subgroup, the same in all its threads.
#   Each thread adds x of the thread whose number differs by 1, then the sums of threads whose
#   numbers differ by 2, by 4, and so on. The fixed order gives floats one result.
#
# Mask and width are constants of dtype i32. The width is a power of two that divides the number of
# threads in the group. All threads of the group must arrive at a call together. So calls are
# allowed only in kernels of the device level, in uniform control flow, and in no branch of an
# IfThenElseExpr.

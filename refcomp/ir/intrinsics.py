"""The pure functions that a Call may name: their arity, operand kinds and result.

Each but those of SUBGROUP_INTRINSICS (Note [Subgroups]) is computed lane by lane. `exact` ones
round correctly (or have integer results); the others have the error bound `ulp`, in units in the
last place, that every target must keep in f32 and f64, from the accuracy of the C libraries and of
their vector versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from refcomp.foundation.dtype import BOOL, I32, DType
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Call


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A pure function: `arity` operands of one dtype, which is also the result's unless
    `result_bool` or `result_kind` says otherwise. `kinds` are the operand kinds it takes. `ulp`
    is 0 where it is exact."""

    name: str
    arity: int
    kinds: tuple[str, ...]
    ulp: float
    result_bool: bool = False
    result_kind: Literal["", "uint", "float"] = ""

    def result_dtype(self, operand: DType) -> DType:
        """The result's dtype for operands of dtype `operand`."""
        if self.result_bool:
            return BOOL.with_lanes(operand.lanes)
        if self.result_kind:
            return DType(self.result_kind, operand.bits, operand.lanes)
        return operand


_FLOAT = ("float", "bfloat")
_INT = ("int", "uint")

_TABLE = (
    *(
        Intrinsic(name, 1, _FLOAT, 0.0)
        for name in ("sqrt", "floor", "ceil", "trunc", "round")
    ),
    Intrinsic("abs", 1, (*_FLOAT, "int"), 0.0),
    Intrinsic("fma", 3, ("float",), 0.0),
    Intrinsic("copysign", 2, _FLOAT, 0.0),
    *(Intrinsic(name, 1, _FLOAT, 0.0, True) for name in ("isnan", "isinf", "isfinite")),
    *(
        Intrinsic(name, 1, _FLOAT, 4.0)
        for name in (
            *(
                "exp",
                "exp2",
                "exp10",
                "expm1",
                "log",
                "log2",
                "log10",
                "log1p",
                "erf",
                "rsqrt",
            ),
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
            *("asinh", "acosh", "atanh", "sigmoid"),
        )
    ),
    *(Intrinsic(name, 2, _FLOAT, 4.0) for name in ("pow", "atan2", "hypot")),
    *(Intrinsic(name, 1, _INT, 0.0) for name in ("popcount", "clz")),
    # The same bits read as another type of the same width (u8 has no float to become).
    Intrinsic("float_to_bits", 1, ("float",), 0.0, result_kind="uint"),
    Intrinsic("bits_to_float", 1, ("uint",), 0.0, result_kind="float"),
)
INTRINSICS = {intrinsic.name: intrinsic for intrinsic in _TABLE}
SUBGROUP_INTRINSICS = {
    "subgroup_shuffle": Intrinsic("subgroup_shuffle", 3, (*_INT, "float"), 0.0),
    "subgroup_shuffle_xor": Intrinsic("subgroup_shuffle_xor", 3, (*_INT, "float"), 0.0),
    "subgroup_reduce_add": Intrinsic("subgroup_reduce_add", 2, (*_INT, "float"), 0.0),
}
_WIDEST_SUBGROUP = 64


def find_intrinsic(name: str, dtype: DType, count: int) -> Intrinsic:
    """The intrinsic `name` for `count` operands of `dtype`; UserError when there is none."""
    checked_name(name, "an intrinsic")
    intrinsic = INTRINSICS.get(name) or SUBGROUP_INTRINSICS.get(name)
    if intrinsic is None:
        raise UserError(
            f"unknown intrinsic {name!r}", remedy=f"known: {' '.join(INTRINSICS)}"
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
    """Whether `expr` asks other threads for their values."""
    return isinstance(expr, Call) and expr.name in SUBGROUP_INTRINSICS


def subgroup_fault(call: Call) -> str | None:
    """What is wrong with the operands behind the first one, in words; None: nothing."""
    name, rest = call.name, call.args[1:]
    if name == "subgroup_shuffle" and rest[0].dtype == I32:
        rest = rest[1:]  # the number of a thread is any
    numbers = as_ints(rest)
    if numbers is None or any(arg.dtype != I32 for arg in rest):
        return f"the operands of {name} behind the first are no constants of dtype i32"
    if call.args[0].dtype.lanes != 1:
        return f"{name} takes a scalar, not {call.args[0].dtype}"
    *masks, width = numbers
    if not 2 <= width <= _WIDEST_SUBGROUP or width & (width - 1):
        return f"a subgroup has 2, 4, 8, 16, 32 or 64 threads, not {width}"
    if any(not 0 <= mask < width for mask in masks):
        return f"a mask of {name} is less than the width {width}, not {masks[0]}"
    return None


# Note [Subgroups]
# ~~~~~~~~~~~~~~~~
# A subgroup is `width` threads of one group whose numbers follow on each other; a thread's number
# is (threadIdx.z * extent.y + threadIdx.y) * extent.x + threadIdx.x, the first one's a multiple of
# the width. `subgroup_shuffle_xor(x, mask, width)` is x of the thread whose number is this one's
# xor the mask, `subgroup_shuffle(x, number, width)` that of the subgroup's thread `number`, any
# expression of dtype i32, modulo the width. `subgroup_reduce_add(x, width)` is the sum of x over
# the subgroup, the same in all its threads: each adds x of the thread whose number differs by 1,
# then the sums whose numbers differ by 2, by 4, ...: so that floats have one result. Mask and width
# are constants of dtype i32, the width a power of two that divides the threads of the group. All
# threads of the group come here together: the calls stand in kernels of the device level only,
# where control flow is uniform, and in no branch of an IfThenElseExpr.

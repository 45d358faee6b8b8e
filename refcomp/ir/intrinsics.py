"""The pure functions that a Call may name: their arity, operand kinds and result.

Each is computed lane by lane. `exact` ones round correctly (or have integer results); the others
have the error bound `ulp`, in units in the last place, that every target must keep in f32 and
f64, from the accuracy of the C libraries and of their vector versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from refcomp.dtype import BOOL, DType
from refcomp.errors import UserError


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
    *(Intrinsic(name, 1, _FLOAT, 0.0) for name in ("sqrt", "floor", "ceil", "trunc", "round")),
    Intrinsic("abs", 1, (*_FLOAT, "int"), 0.0),
    Intrinsic("fma", 3, ("float",), 0.0),
    Intrinsic("copysign", 2, _FLOAT, 0.0),
    *(Intrinsic(name, 1, _FLOAT, 0.0, True) for name in ("isnan", "isinf", "isfinite")),
    *(
        Intrinsic(name, 1, _FLOAT, 4.0)
        for name in (
            *("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "erf", "rsqrt"),
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


def find_intrinsic(name: str, dtype: DType, count: int) -> Intrinsic:
    """The intrinsic `name` for `count` operands of `dtype`; UserError when there is none."""
    intrinsic = INTRINSICS.get(name)
    if intrinsic is None:
        raise UserError(f"unknown intrinsic {name!r}", remedy=f"known: {' '.join(INTRINSICS)}")
    if count != intrinsic.arity:
        raise UserError(f"{name} takes {intrinsic.arity} operands, {count} given")
    if dtype.kind not in intrinsic.kinds:
        raise UserError(
            f"{name} is not defined on dtype {dtype}",
            remedy=f"it takes {', '.join(intrinsic.kinds)}; convert with .astype(...)",
        )
    return intrinsic

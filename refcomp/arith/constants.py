"""Constant folding: the value of a node on constants, as `refcomp.ir.expr` defines it.

Values are Python integers and floats. A result of None means that the value is not folded. This
concerns NaN, whose sign and payload depend on the machine, and conversions that would round twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.integers import COMPARISONS, OPERATORS, shift_left, shift_right
from refcomp.ir.expr import (
    Add,
    Broadcast,
    Div,
    Expr,
    FloatImm,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    round_to_dtype,
)

_MAX_EXACT_IN_F32 = 1 << 24  # integers up to here are exact in f32
_MAX_EXACT_IN_F64 = 1 << 53
_MIN_NORMAL_BF16 = 2.0**-126


def fold_integers(cls: type[Expr], a: int, b: int, dtype: DType) -> int | None:
    """Return `cls(a, b)` for integers or bools of `dtype`, before it is wrapped to that type."""
    if cls is ShiftLeft:
        return shift_left(a, b, dtype)
    if cls is ShiftRight:
        return shift_right(a, b, dtype)
    fold = OPERATORS.get(cls.__name__.lower())
    return None if fold is None else int(fold(a, b))


def fold_floats(
    cls: type[Expr], a: float, b: float, dtype: DType
) -> bool | float | None:
    """Return `cls(a, b)` for floats of `dtype`; a bool for a comparison."""
    compare = COMPARISONS.get(cls.__name__.lower())
    if compare is not None:
        return compare(a, b)
    if cls not in _FLOATS:
        return None
    with np.errstate(all="ignore"):
        result = _FLOATS[cls](np.float64(a), np.float64(b))
    value = float(result)
    if math.isnan(value):
        return None
    # The machine computes bf16 in f32 first. A result below the normal numbers has fewer digits
    # there, so that it would be rounded twice.
    if dtype.kind == "bfloat" and 0 < abs(value) < _MIN_NORMAL_BF16:
        return None
    # Rounding to f64 and then to a narrower `dtype` equals rounding once, because f64 has at least
    # 2 p + 2 digits for the p of `dtype`. Reference: Figueroa, "When is double rounding
    # innocuous?", 1995.
    return round_to_dtype(value, dtype)


_FLOATS: dict[type[Expr], Callable[[np.float64, np.float64], np.float64]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    Div: lambda a, b: a / b,
    Mod: np.fmod,
    # `b != b` is a test for NaN: the other operand is the result.
    Min: lambda a, b: b if b < a or b != b else a,
    Max: lambda a, b: b if b > a or b != b else a,
}


def fold_cast(value: int | float, source: DType, target: DType) -> int | float | None:
    """Return `value` of `source` converted to `target`; an integer is not yet wrapped."""
    if target.is_bool:
        return int(value != 0)
    if target.is_float:
        if source.is_float:
            return _round_float(value, target)
        return _round_integer(int(value), target)
    if not target.is_int:
        return None
    if not source.is_float:
        return int(value)
    if math.isnan(value):
        return 0
    if value <= target.min_value:
        return target.min_value
    if value >= target.max_value:
        return target.max_value
    return math.trunc(value)


def _round_float(value: float, target: DType) -> float | None:
    if math.isnan(value):
        return None
    # Conversion to bf16 goes through f32. A value with more digits would be rounded twice.
    if target.kind == "bfloat" and not math.isinf(value):
        with np.errstate(over="ignore"):
            if float(np.float32(value)) != value:
                return None
    return round_to_dtype(value, target)


def _round_integer(value: int, target: DType) -> float | None:
    is_bfloat = target.kind != "float"
    if abs(value) <= (_MAX_EXACT_IN_F32 if is_bfloat else _MAX_EXACT_IN_F64):
        return round_to_dtype(float(value), target)
    if is_bfloat:
        return None
    with np.errstate(over="ignore"):
        return float(np.array(value).astype(to_numpy(target.element)))


def is_copied(value: Expr) -> bool:
    """Return True if a let of `value` should be replaced by the value.

    That is so for constants, vectors of one constant, and variables.
    """
    if isinstance(value, Broadcast):
        return isinstance(value.value, IntImm | FloatImm)
    return isinstance(value, IntImm | FloatImm | Var)

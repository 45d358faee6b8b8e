"""The value of a node on constants, exactly as `refcomp.ir.expr` defines it for each dtype.

Python integers and floats in and out; None where the value is not folded: a NaN (its sign and
payload are the machine's affair), or a conversion that would round twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.foundation.integers import COMPARISONS, OPERATORS, shift_left, shift_right
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Broadcast,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
    Var,
    round_to_dtype,
)

_EXACT_IN_F32 = 1 << 24
_EXACT_IN_F64 = 1 << 53
_LEAST_NORMAL_BF16 = 2.0**-126  # below, the rounding to f32 on the way to bf16 may show


def fold_integers(cls: type[Expr], a: int, b: int, dtype: DType) -> int | None:
    """`cls(a, b)` for integers or bools of `dtype`, before the result is wrapped to it."""
    if cls is ShiftLeft:
        return shift_left(a, b, dtype)
    if cls is ShiftRight:
        return shift_right(a, b, dtype)
    fold = _INTEGERS.get(cls)
    return None if fold is None else int(fold(a, b))


_INTEGERS: dict[type[Expr], Callable[[int, int], int]] = {
    cls: OPERATORS[cls.__name__.lower()]
    for cls in (
        *(
            EQ,
            NE,
            LT,
            LE,
            GT,
            GE,
            Add,
            Sub,
            Mul,
            Div,
            Mod,
            FloorDiv,
            FloorMod,
            Min,
            Max,
        ),
        *(BitAnd, BitOr, BitXor, And, Or),
    )
}
_COMPARISONS: dict[type[Expr], Callable[[Any, Any], bool]] = {
    cls: COMPARISONS[cls.__name__.lower()] for cls in (EQ, NE, LT, LE, GT, GE)
}


def fold_floats(
    cls: type[Expr], a: float, b: float, dtype: DType
) -> bool | float | None:
    """`cls(a, b)` for floats of `dtype`; a bool for a comparison."""
    if cls in _COMPARISONS:
        return _COMPARISONS[cls](a, b)
    if cls not in _FLOATS:
        return None
    with np.errstate(all="ignore"):
        value = float(_FLOATS[cls](np.float64(a), np.float64(b)))
    # In f64 the operation is rounded once. For a narrower type that is innocuous before the
    # rounding to dtype, as f64 has more than twice its digits and two (Figueroa 1995).
    if math.isnan(value) or (
        dtype.kind == "bfloat" and abs(value) < _LEAST_NORMAL_BF16
    ):
        return None if value else value
    return round_to_dtype(value, dtype)


_FLOATS: dict[type[Expr], Callable[[Any, Any], Any]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    Div: lambda a, b: a / b,
    Mod: np.fmod,
    Min: lambda a, b: b if b < a or b != b else a,
    Max: lambda a, b: b if b > a or b != b else a,
}


def fold_cast(value: int | float, source: DType, target: DType) -> int | float | None:
    """`value` of `source` converted to `target`; an integer is not yet wrapped."""
    if target.is_bool:
        return int(value != 0)
    if target.is_int:
        return _to_integer(value, target) if source.is_float else int(value)
    if target.is_float:
        return (
            _float_of(value, target)
            if source.is_float
            else _float_of_int(int(value), target)
        )
    return None


def _to_integer(value: float, target: DType) -> int:
    if math.isnan(value):
        return 0
    low, high = target.min_value, target.max_value
    return low if value <= low else high if value >= high else math.trunc(value)


def _float_of(value: float, target: DType) -> float | None:
    if math.isnan(value):
        return None
    with np.errstate(over="ignore"):
        is_exact_in_f32 = math.isinf(value) or float(np.float32(value)) == value
    # Conversion to bf16 goes through f32, so that a longer value would be rounded twice.
    return (
        round_to_dtype(value, target)
        if target.kind == "float" or is_exact_in_f32
        else None
    )


def _float_of_int(value: int, target: DType) -> float | None:
    if abs(value) <= _EXACT_IN_F32 or (
        abs(value) <= _EXACT_IN_F64 and target.kind == "float"
    ):
        return round_to_dtype(float(value), target)
    if target.kind != "float":
        return None
    with np.errstate(over="ignore"):
        return float(np.array(value).astype(to_numpy(target.element)))


def is_copied(value: Expr) -> bool:
    """Whether a let of `value` is of no use: a constant, a vector of one, or a variable."""
    return isinstance(value, IntImm | FloatImm | Var) or (
        isinstance(value, Broadcast) and isinstance(value.value, IntImm | FloatImm)
    )

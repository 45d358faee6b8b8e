"""What each operator and each conversion of the loop IR means on single values.

An integer is a Python int in the range of its dtype, a bool a Python bool, and a float a numpy
scalar of its dtype (bfloat16 from ml_dtypes), so that every operation rounds once. Nothing here
is fast; all of it is meant to be compared with the sentences in `refcomp.ir.expr`.
"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir import expr as ir

Scalar = Any  # int, bool or a numpy float: see above.

# Digits of the significand, the hidden one included, and the exponents of the least and the
# greatest normal number, of each float type by (kind, bits).
FORMATS = {
    ("float", 16): (11, -14, 15),
    ("bfloat", 16): (8, -126, 127),
    ("float", 32): (24, -126, 127),
    ("float", 64): (53, -1022, 1023),
}


@cache
def _float_type(dtype: DType) -> Callable[[float], Scalar]:
    scalar_type: Callable[[float], Scalar] = to_numpy(dtype.element).type
    return scalar_type


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^bits, in the range of the integer type `dtype`."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > dtype.max_value else value


def round_exact(value: Fraction, dtype: DType) -> Scalar:
    """The float of `dtype` nearest to `value`, ties to even; inf past the greatest; 0 is +0."""
    digits, least, greatest = FORMATS[dtype.kind, dtype.bits]
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, least) - digits + 1)
    rounded = (
        round(abs(value) / step) * step
    )  # Python rounds halves of a Fraction to even
    size = float(rounded) if rounded < Fraction(2) ** (greatest + 1) else math.inf
    return _float_type(dtype)(-size if value < 0 else size)


def make_float(value: Any, dtype: DType) -> Scalar:
    """An int, float or numpy float rounded once to the float type `dtype`; -0.0 is kept."""
    if isinstance(value, int):
        return round_exact(Fraction(value), dtype)
    # numpy converts to bfloat16 by way of f32, which would round twice.
    if dtype.kind == "bfloat" and value and math.isfinite(value):
        return round_exact(Fraction(float(value)), dtype)
    with np.errstate(all="ignore"):
        return _float_type(dtype)(value)


def make_scalar(value: Any, dtype: DType) -> Scalar:
    """A number of any kind as a value of `dtype`: the rules of Cast."""
    if dtype.is_bool:
        return bool(value != 0)
    if dtype.is_float:
        return make_float(
            int(value) if isinstance(value, bool | np.bool_) else value, dtype
        )
    if isinstance(value, int | np.integer | np.bool_):
        return wrap(int(value), dtype)
    return _saturate(float(value), dtype)


def _saturate(value: float, dtype: DType) -> int:
    if math.isnan(value):
        return 0
    clamped = max(float(dtype.min_value), min(value, float(dtype.max_value)))
    return max(dtype.min_value, min(int(clamped), dtype.max_value))


def _truncated_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _div(a: Scalar, b: Scalar, dtype: DType) -> Scalar:
    if dtype.is_float:
        return a / b
    return wrap(_truncated_quotient(a, b), dtype) if b else 0


def _mod(a: Scalar, b: Scalar, dtype: DType) -> Scalar:
    if dtype.is_float:
        return np.fmod(a, b)
    return a - b * _truncated_quotient(a, b) if b else 0


def _min(a: Scalar, b: Scalar, _dtype: DType) -> Scalar:
    return b if b < a or b != b else a


def _max(a: Scalar, b: Scalar, _dtype: DType) -> Scalar:
    return b if b > a or b != b else a


def _shift_count(b: int, dtype: DType) -> int:
    return min(b & ((1 << dtype.bits) - 1), dtype.bits)


def _ring(
    function: Callable[[Any, Any], Any],
) -> Callable[[Scalar, Scalar, DType], Scalar]:
    def meaning(a: Scalar, b: Scalar, dtype: DType) -> Scalar:
        result = function(a, b)
        return result if dtype.is_float else wrap(result, dtype)

    return meaning


def _truth(
    function: Callable[[Any, Any], Any],
) -> Callable[[Scalar, Scalar, DType], Scalar]:
    return lambda a, b, _dtype: bool(function(a, b))


# Each binary node's meaning on two scalars of one dtype, which is given third.
OPERATORS: dict[type[ir.BinaryExpr], Callable[[Scalar, Scalar, DType], Scalar]] = {
    ir.Add: _ring(operator.add),
    ir.Sub: _ring(operator.sub),
    ir.Mul: _ring(operator.mul),
    ir.Div: _div,
    ir.Mod: _mod,
    ir.FloorDiv: lambda a, b, dtype: wrap(a // b, dtype) if b else 0,
    ir.FloorMod: lambda a, b, _dtype: a % b if b else 0,
    ir.Min: _min,
    ir.Max: _max,
    ir.BitAnd: lambda a, b, _dtype: a & b,
    ir.BitOr: lambda a, b, _dtype: a | b,
    ir.BitXor: lambda a, b, _dtype: a ^ b,
    ir.ShiftLeft: lambda a, b, dtype: wrap(a << _shift_count(b, dtype), dtype),
    ir.ShiftRight: lambda a, b, dtype: a >> _shift_count(b, dtype),
    ir.EQ: _truth(operator.eq),
    ir.NE: _truth(operator.ne),
    ir.LT: _truth(operator.lt),
    ir.LE: _truth(operator.le),
    ir.GT: _truth(operator.gt),
    ir.GE: _truth(operator.ge),
    ir.And: lambda a, b, _dtype: a and b,
    ir.Or: lambda a, b, _dtype: a or b,
}

# The node that says what an atomic update does.
ATOMIC: dict[str, type[ir.BinaryExpr]] = {
    "add": ir.Add,
    "min": ir.Min,
    "max": ir.Max,
    "and": ir.BitAnd,
    "or": ir.BitOr,
    "xor": ir.BitXor,
}

"""The meaning of each operator and each conversion of the loop IR, on single values.

An integer is a Python int in the range of its dtype, and a bool is a Python bool. A float is a
numpy scalar of its dtype (ml_dtypes has bfloat16), so every operation rounds once. Nothing here is
fast: read it beside the sentences in `refcomp.ir.expr`, which say the same.
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

Scalar = Any  # an int, a bool or a numpy float: see above
Value = Any  # a Scalar or, for a vector, a tuple with a Scalar for each lane
_Meaning = Callable[[Scalar, Scalar, DType], Scalar]

# Float formats by (kind, bits): binary digits of the significand with the hidden one, and the
# exponents of the least and of the greatest normal number.
FORMATS = {
    ("float", 16): (11, -14, 15),
    ("bfloat", 16): (8, -126, 127),
    ("float", 32): (24, -126, 127),
    ("float", 64): (53, -1022, 1023),
}


@cache
def _float_type(dtype: DType) -> type[np.generic]:
    return to_numpy(dtype.element).type


def unsigned(value: int, dtype: DType) -> int:
    """Return `value` modulo 2^bits, from 0 on, whatever the sign of `dtype`."""
    return value & ((1 << dtype.bits) - 1)


def wrap(value: int, dtype: DType) -> int:
    """Return `value` modulo 2^bits, in the range of the integer type `dtype`."""
    value = unsigned(value, dtype)
    if value > dtype.max_value:
        value -= 1 << dtype.bits
    return value


def round_exact(value: Fraction, dtype: DType) -> Scalar:
    """Return the float of `dtype` nearest to `value`; of two equally near the even one.

    What is too large becomes inf. 0 becomes +0.
    """
    digits, least, greatest = FORMATS[dtype.kind, dtype.bits]
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, least) - digits + 1)
    # Python rounds halves of a Fraction to even.
    rounded = round(abs(value) / step) * step
    size = math.inf
    if rounded < Fraction(2) ** (greatest + 1):
        size = float(rounded)
    signed = -size if value < 0 else size
    return _float_type(dtype)(signed)


def make_float(value: Scalar, dtype: DType) -> Scalar:
    """Return an int or a float of any type, rounded once to the float type `dtype`.

    -0.0 keeps its sign.
    """
    if isinstance(value, int):
        return round_exact(Fraction(value), dtype)
    # numpy converts to bfloat16 by way of f32, which would round twice.
    if dtype.kind == "bfloat" and value and math.isfinite(value):
        return round_exact(Fraction(float(value)), dtype)
    with np.errstate(all="ignore"):
        return _float_type(dtype)(value)


def make_scalar(value: Scalar, dtype: DType) -> Scalar:
    """Return a number of any type as a value of `dtype`, by the rules of Cast."""
    if dtype.is_bool:
        return bool(value != 0)
    if dtype.is_float:
        if isinstance(value, bool | np.bool_):
            value = int(value)
        return make_float(value, dtype)
    if isinstance(value, int | np.integer | np.bool_):
        return wrap(int(value), dtype)
    return _saturate(float(value), dtype)


def _saturate(value: float, dtype: DType) -> int:
    """Return the integer of `dtype` nearest to `value` towards zero; 0 for NaN."""
    if math.isnan(value):
        return 0
    # As floats first, since int(inf) raises; as ints again, since a limit of 64 bits has no float.
    low = float(dtype.min_value)
    high = float(dtype.max_value)
    clamped = int(max(low, min(value, high)))
    return max(dtype.min_value, min(clamped, dtype.max_value))


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _div(a: Scalar, b: Scalar, dtype: DType) -> Scalar:
    if dtype.is_float:
        return a / b
    return wrap(_truncated_quotient(a, b), dtype) if b else 0


def _mod(a: Scalar, b: Scalar, dtype: DType) -> Scalar:
    if dtype.is_float:
        return np.fmod(a, b)
    return a - b * _truncated_quotient(a, b) if b else 0


# A NaN on the right is the result, and so is one on the left: no comparison with it holds.
def _min(a: Scalar, b: Scalar, _dtype: DType) -> Scalar:
    return b if b < a or b != b else a


def _max(a: Scalar, b: Scalar, _dtype: DType) -> Scalar:
    return b if b > a or b != b else a


def _shift_count(b: int, dtype: DType) -> int:
    """Return the count `b`, read as unsigned. All counts from `bits` on shift everything out."""
    return min(unsigned(b, dtype), dtype.bits)


def _modular(function: Callable[[Scalar, Scalar], Scalar]) -> _Meaning:
    """Make `function` wrap on integers."""

    def meaning(a: Scalar, b: Scalar, dtype: DType) -> Scalar:
        result = function(a, b)
        return result if dtype.is_float else wrap(result, dtype)

    return meaning


def _comparison(function: Callable[[Scalar, Scalar], object]) -> _Meaning:
    """Make `function` return a Python bool, as numpy's comparisons do not."""
    return lambda a, b, _dtype: bool(function(a, b))


# Binary node -> its meaning for two scalars of one dtype, which is the third argument.
OPERATORS: dict[type[ir.BinaryExpr], _Meaning] = {
    ir.Add: _modular(operator.add),
    ir.Sub: _modular(operator.sub),
    ir.Mul: _modular(operator.mul),
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
    ir.EQ: _comparison(operator.eq),
    ir.NE: _comparison(operator.ne),
    ir.LT: _comparison(operator.lt),
    ir.LE: _comparison(operator.le),
    ir.GT: _comparison(operator.gt),
    ir.GE: _comparison(operator.ge),
    ir.And: lambda a, b, _dtype: a and b,
    ir.Or: lambda a, b, _dtype: a or b,
}

# Operator of an AtomicUpdate -> the binary node of the same meaning.
ATOMIC: dict[str, type[ir.BinaryExpr]] = {
    "add": ir.Add,
    "min": ir.Min,
    "max": ir.Max,
    "and": ir.BitAnd,
    "or": ir.BitOr,
    "xor": ir.BitXor,
}

"""The operators, conversions and intrinsics of the loop IR on whole numpy arrays.

Operands are arrays of one dtype that broadcast; the result has that dtype (bool for comparisons),
so every operation rounds once. The semantics are those of `refcomp.ir.expr`, written a second time:
`refcomp.oracle.interpreter.scalars` has them on single values. Callers silence numpy's warnings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir import expr as ir
from refcomp.oracle.interpreter.intrinsics import FLOAT_FUNCTIONS, apply_intrinsic
from refcomp.oracle.interpreter.scalars import Scalar, make_scalar

Array = npt.NDArray[Any]  # or a numpy scalar, which numpy makes of rank 0
_Operator = Callable[[Array, Array], Array]
_OF_NUMBERS = (math.erf,)  # Python's own functions, which take no arrays


def _is_float(a: Array) -> bool:
    return a.dtype.kind not in "iub"  # bfloat16 has the kind of a foreign type


def _div(a: Array, b: Array) -> Array:
    if _is_float(a):
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    is_fraction = np.remainder(a, b) != 0
    is_negative = (a < 0) != (b < 0)
    return np.where(is_fraction & is_negative, quotient + 1, quotient)


def _mod(a: Array, b: Array) -> Array:
    if not _is_float(a):
        return np.fmod(a, b)
    # fmod is exact, so neither the wider type nor the conversion back rounds.
    wide = np.float64 if a.dtype == np.float64 else np.float32
    remainder = np.fmod(a.astype(wide), b.astype(wide))
    return np.asarray(remainder, a.dtype)


def _min(a: Array, b: Array) -> Array:
    takes_b = (b < a) | (b != b)  # NaN wins
    return np.where(takes_b, b, a)


def _max(a: Array, b: Array) -> Array:
    takes_b = (b > a) | (b != b)
    return np.where(takes_b, b, a)


def _shift_left(a: Array, b: Array) -> Array:
    is_within, count = _shift_counts(a, b)
    shifted = np.left_shift(a, count)
    return np.where(is_within, shifted, np.zeros_like(a))


def _shift_right(a: Array, b: Array) -> Array:
    is_within, count = _shift_counts(a, b)
    sign = np.where(a < 0, -1, 0).astype(a.dtype)
    shifted = np.right_shift(a, count)
    return np.where(is_within, shifted, sign)


def _shift_counts(a: Array, b: Array) -> tuple[Array, Array]:
    """Return where `b`, unsigned, is less than the width, and `b` there, else 0."""
    unsigned = b.astype(f"u{a.dtype.itemsize}")
    is_within = unsigned < a.dtype.itemsize * 8
    return is_within, np.where(is_within, unsigned, 0).astype(a.dtype)


OPERATORS: dict[type[ir.BinaryExpr], _Operator] = {
    ir.Add: np.add,
    ir.Sub: np.subtract,
    ir.Mul: np.multiply,
    ir.Div: _div,
    ir.Mod: _mod,
    ir.FloorDiv: np.floor_divide,  # numpy, too, gives 0 for x // 0 and MIN for MIN // -1
    ir.FloorMod: np.remainder,
    ir.Min: _min,
    ir.Max: _max,
    ir.BitAnd: np.bitwise_and,
    ir.BitOr: np.bitwise_or,
    ir.BitXor: np.bitwise_xor,
    ir.ShiftLeft: _shift_left,
    ir.ShiftRight: _shift_right,
    ir.EQ: np.equal,
    ir.NE: np.not_equal,
    ir.LT: np.less,
    ir.LE: np.less_equal,
    ir.GT: np.greater,
    ir.GE: np.greater_equal,
    ir.And: np.logical_and,
    ir.Or: np.logical_or,
}


def convert(value: Array, target: DType) -> Array:
    """Return `value` converted to `target` by the rules of `refcomp.ir.expr.Cast`."""
    if target.is_bool:
        return np.not_equal(value, 0)
    if target.is_int and _is_float(value):
        return _saturate(value.astype(np.float64), target)
    is_wide = value.dtype.itemsize > 2 and value.dtype != np.float32
    if target.kind == "bfloat" and is_wide:
        # numpy converts by way of f32, and integers by way of f64: that would round twice.
        plain = value if _is_float(value) else value.astype(object)
        return each(lambda x: make_scalar(x, target), to_numpy(target), plain)
    return value.astype(to_numpy(target))


def _saturate(value: Array, target: DType) -> Array:
    """Return f64 values truncated to the integer type `target`. NaN becomes 0."""
    is_low = value <= float(target.min_value)
    is_high = value >= float(target.max_value)
    is_inside = ~(is_low | is_high | np.isnan(value))
    result = np.where(is_inside, value, 0).astype(to_numpy(target))
    result[is_low] = target.min_value
    result[is_high] = target.max_value
    return result


def call(
    name: str, operands: list[Array], operand_dtype: DType, result_dtype: DType
) -> Array:
    """Return the intrinsic `name` of arrays of `operand_dtype`, rounded to `result_dtype`.

    `refcomp.oracle.interpreter.intrinsics` defines intrinsics on single values.
    """
    function = FLOAT_FUNCTIONS.get(name)
    if operand_dtype.is_float and function is not None and function not in _OF_NUMBERS:
        wide = [operand.astype(np.float64) for operand in operands]
        return convert(function(*wide), result_dtype)

    def intrinsic(*scalars: Array) -> Scalar:
        plain = [s if operand_dtype.is_float else s.item() for s in scalars]
        return apply_intrinsic(name, tuple(plain), operand_dtype)

    return each(intrinsic, to_numpy(result_dtype), *operands)


def each(
    function: Callable[..., Scalar], dtype: np.dtype[np.generic], *operands: Array
) -> Array:
    """Return `function` of the elements of `operands`, one at a time, as an array of `dtype`."""
    spread = np.broadcast_arrays(*operands)
    if not spread:
        return np.array(function(), dtype)
    elements = zip(*map(np.ravel, spread), strict=True)
    values = [function(*scalars) for scalars in elements]
    return np.array(values, dtype).reshape(spread[0].shape)

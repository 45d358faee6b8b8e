"""What each operator and each conversion means on whole numpy arrays, element by element.

The same sentences of `refcomp.ir.expr` as in `refcomp.oracle.interpreter.scalars`, in numpy's own
words: operands are arrays of one dtype that broadcast, and the result has that dtype (bool for
comparisons), so that every operation rounds once. Callers silence numpy's warnings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir import expr as ir
from refcomp.oracle.interpreter.intrinsics import FLOAT_FUNCTIONS, apply_intrinsic
from refcomp.oracle.interpreter.scalars import make_scalar

Array = np.ndarray[Any, np.dtype[Any]]
_Meaning = Callable[[Array, Array], Any]
_OF_NUMBERS = (math.erf,)  # Python's own, which takes no arrays


def _is_float(a: Array) -> bool:
    return a.dtype.kind not in "iub"  # bfloat16 has the kind of a foreign type


def _div(a: Array, b: Array) -> Any:
    if _is_float(a):
        return a / b
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _mod(a: Array, b: Array) -> Any:
    if _is_float(a):
        wide = np.float64 if a.dtype == np.float64 else np.float32
        return np.fmod(a.astype(wide), b.astype(wide)).astype(
            a.dtype
        )  # exact, so rounds never
    return np.fmod(a, b)


def _min(a: Array, b: Array) -> Any:
    return np.where((b < a) | (b != b), b, a)


def _max(a: Array, b: Array) -> Any:
    return np.where((b > a) | (b != b), b, a)


def _shift(function: Callable[[Array, Array], Any], fill_sign: bool) -> _Meaning:
    def meaning(a: Array, b: Array) -> Any:
        bits = a.dtype.itemsize * 8
        count = b.astype(f"u{a.dtype.itemsize}")
        beyond = count >= bits
        within = function(a, np.where(beyond, 0, count).astype(a.dtype))
        fill = np.where(a < 0, -1, 0) if fill_sign else np.zeros_like(a)
        return np.where(beyond, fill.astype(a.dtype), within)

    return meaning


OPERATORS: dict[type[ir.BinaryExpr], _Meaning] = {
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
    ir.ShiftLeft: _shift(np.left_shift, fill_sign=False),
    ir.ShiftRight: _shift(np.right_shift, fill_sign=True),
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
    """`value` converted to `target` by the rules of Cast."""
    if target.is_bool:
        return np.not_equal(value, 0)
    if target.is_int and _is_float(value):
        return _saturate(value.astype(np.float64), target)
    if (
        target.kind == "bfloat"
        and value.dtype.itemsize > 2
        and value.dtype != np.float32
    ):
        # numpy goes by way of f32 here, and of f64 from integers, which would round twice
        plain = value if _is_float(value) else value.astype(object)
        return each(lambda x: make_scalar(x, target), to_numpy(target), plain)
    return value.astype(to_numpy(target))


def _saturate(value: Array, target: DType) -> Array:
    least, greatest = float(target.min_value), float(target.max_value)
    inside = (value > least) & (value < greatest)  # false for NaN
    result = np.where(inside, value, 0).astype(to_numpy(target))
    result[value <= least] = target.min_value
    result[value >= greatest] = target.max_value
    return result


def call(
    name: str, operands: list[Array], operand_dtype: DType, result_dtype: DType
) -> Array:
    """The intrinsic `name`, as `refcomp.oracle.interpreter.intrinsics` defines it on single
    values."""
    function = FLOAT_FUNCTIONS.get(name)
    if operand_dtype.is_float and function is not None and function not in _OF_NUMBERS:
        return convert(
            function(*(o.astype(np.float64) for o in operands)), result_dtype
        )

    def meaning(*scalars: Any) -> Any:
        plain = (s if operand_dtype.is_float else s.item() for s in scalars)
        return apply_intrinsic(name, tuple(plain), operand_dtype)

    return each(meaning, to_numpy(result_dtype), *operands)


def each(function: Callable[..., Any], dtype: np.dtype[Any], *operands: Array) -> Array:
    """`function` of the operands' elements, one at a time, as an array of `dtype`."""
    spread = np.broadcast_arrays(*operands)
    shape = spread[0].shape if spread else ()
    values = [
        function(*scalars) for scalars in zip(*map(np.ravel, spread), strict=True)
    ]
    return np.array(values if spread else function(), dtype).reshape(shape)

"""The values of expressions on numpy arrays of operands, as `refcomp.ir.expr` defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitOr,
    BitXor,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
)

Array = np.ndarray[Any, np.dtype[Any]]  # of the dtype of the expression


def array_operator(expr: Expr) -> Callable[..., Array] | None:
    """Return the function that computes `expr` from the arrays of its children.

    Return None for a node that has no such function. A caller must silence numpy's warnings:
    a division by zero has a value.
    """
    match expr:
        case Cast(dtype=dtype):
            return lambda a: _converted(a, dtype)
        case Not():
            return np.logical_not
        case BinaryExpr():
            return _OPERATORS.get(type(expr))
        case Select() | IfThenElseExpr():
            return np.where
        case Call(name=name):
            return _CALLS.get(name)
    return None


def _converted(values: Array, dtype: DType) -> Array:
    wanted = to_numpy(dtype)
    if not (dtype.is_int and values.dtype.kind == "f"):
        return values.astype(wanted)
    # Round towards zero, and saturate. NaN gives 0.
    whole = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0.0)
    low = float(dtype.min_value)
    beyond = float(dtype.max_value + 1)  # a power of two, which is exact
    is_inside = (whole >= low) & (whole < beyond)
    inside = np.where(is_inside, whole, 0.0).astype(wanted)
    limit = np.where(whole < low, dtype.min_value, dtype.max_value).astype(wanted)
    return np.where(is_inside, inside, limit)


def _quotient(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b))
    # numpy, too, gives 0 for x // 0 and MIN for MIN // -1.
    floor = np.floor_divide(a, b)
    rounds_up = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return np.asarray(floor + rounds_up.astype(floor.dtype))


def _shifted_left(a: Array, b: Array) -> Array:
    amount, fits = _amount(b)
    return np.where(fits, np.left_shift(a, amount), np.zeros_like(a))


def _shifted_right(a: Array, b: Array) -> Array:
    amount, fits = _amount(b)
    beyond = np.where(a < 0, ~np.zeros_like(a), np.zeros_like(a))
    return np.where(fits, np.right_shift(a, amount), beyond)


def _amount(b: Array) -> tuple[Array, Array]:
    """Return the amounts of shifts, 0 where they are not below the width; and where they are."""
    unsigned = b.astype(f"u{b.dtype.itemsize}")
    fits = unsigned < 8 * b.dtype.itemsize
    return np.where(fits, b, np.zeros_like(b)), fits


def _least(a: Array, b: Array) -> Array:
    return np.where((b < a) | (b != b), b, a)


def _greatest(a: Array, b: Array) -> Array:
    return np.where((b > a) | (b != b), b, a)


_OPERATORS: dict[type[Expr], Callable[..., Array]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    Div: _quotient,
    FloorDiv: np.floor_divide,
    FloorMod: np.remainder,
    Mod: np.fmod,
    Min: _least,
    Max: _greatest,
    BitAnd: np.bitwise_and,
    BitOr: np.bitwise_or,
    BitXor: np.bitwise_xor,
    ShiftLeft: _shifted_left,
    ShiftRight: _shifted_right,
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
    And: np.logical_and,
    Or: np.logical_or,
}
# Intrinsics whose result is exact, or rounded correctly.
_CALLS: dict[str, Callable[..., Array]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "abs": np.abs,
}

"""The value of an expression for given variables, written again from the nodes' docstrings.

Shares no code with what it judges. Integers and bools are Python ints, floats numpy scalars of
their dtype, vectors lists of these.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.ir import expr as ir

Values = Mapping[ir.Var, Any]


def evaluate(expr: ir.Expr, values: Values) -> Any:
    """The value of `expr`; KeyError for a variable without a value."""
    match expr:
        case ir.Var():
            return values[expr]
        case ir.IntImm():
            return expr.value
        case ir.FloatImm():
            return _float(expr.value, expr.dtype)
        case ir.Cast():
            source = expr.value.dtype
            return _lanes(lambda v: _cast(v, source, expr.dtype), evaluate(expr.value, values))
        case ir.Select() | ir.IfThenElseExpr():
            parts = (expr.condition, expr.true_value, expr.false_value)
            return _lanes(lambda c, x, y: x if c else y, *(evaluate(p, values) for p in parts))
        case ir.Not():
            return _lanes(lambda v: 1 - v, evaluate(expr.a, values))
        case ir.Broadcast():
            return [evaluate(expr.value, values)] * expr.lanes
        case ir.Ramp():
            base, stride = evaluate(expr.base, values), evaluate(expr.stride, values)
            return [wrap(base + k * stride, expr.dtype) for k in range(expr.lanes)]
        case ir.Let():
            return evaluate(expr.body, {**values, expr.var: evaluate(expr.value, values)})
        case ir.BinaryExpr():
            return _binary(expr, evaluate(expr.a, values), evaluate(expr.b, values))
    raise AssertionError(f"no value for {type(expr).__name__}")


def _lanes(function: Callable[..., Any], *operands: Any) -> Any:
    lanes = max((len(x) for x in operands if isinstance(x, list)), default=0)
    if not lanes:
        return function(*operands)
    rows = [x if isinstance(x, list) else [x] * lanes for x in operands]
    return [function(*column) for column in zip(*rows, strict=True)]


def _binary(expr: Any, a: Any, b: Any) -> Any:
    dtype = expr.a.dtype
    return _lanes(lambda x, y: _scalar(type(expr), x, y, dtype), a, b)


def _scalar(cls: type[Any], a: Any, b: Any, dtype: DType) -> Any:
    if cls in _COMPARED:
        return int(_COMPARED[cls](a, b))
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return _FLOATS[cls](a, b)
    return wrap(_INTEGERS[cls](a, b, dtype), dtype)


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^bits, as `dtype` reads these bits."""
    if dtype.is_bool:
        return int(value != 0)
    value %= 2**dtype.bits
    is_negative = dtype.kind == "int" and value >= 2 ** (dtype.bits - 1)
    return value - 2**dtype.bits if is_negative else value


def _truncated(a: int, b: int) -> int:
    return (a // b if (a >= 0) == (b > 0) else -(abs(a) // abs(b))) if b else 0


def _shift_left(a: int, b: int, dtype: DType) -> int:
    amount = b % 2**dtype.bits
    return a << amount if amount < dtype.bits else 0


def _shift_right(a: int, b: int, dtype: DType) -> int:
    amount = b % 2**dtype.bits
    return a >> amount if amount < dtype.bits else (-1 if a < 0 else 0)


_COMPARED: dict[type[Any], Callable[[Any, Any], bool]] = {
    ir.EQ: lambda a, b: a == b,
    ir.NE: lambda a, b: a != b,
    ir.LT: lambda a, b: a < b,
    ir.LE: lambda a, b: a <= b,
    ir.GT: lambda a, b: a > b,
    ir.GE: lambda a, b: a >= b,
}
_INTEGERS: dict[type[Any], Callable[[int, int, DType], int]] = {
    ir.Add: lambda a, b, _: a + b,
    ir.Sub: lambda a, b, _: a - b,
    ir.Mul: lambda a, b, _: a * b,
    ir.Div: lambda a, b, _: _truncated(a, b),
    ir.Mod: lambda a, b, _: a - b * _truncated(a, b) if b else 0,
    ir.FloorDiv: lambda a, b, _: math.floor(a / b) if abs(a) < 2**40 and b else a // b if b else 0,
    ir.FloorMod: lambda a, b, _: a - b * (a // b) if b else 0,
    ir.Min: lambda a, b, _: a if a < b else b,
    ir.Max: lambda a, b, _: a if a > b else b,
    ir.BitAnd: lambda a, b, _: a & b,
    ir.BitOr: lambda a, b, _: a | b,
    ir.BitXor: lambda a, b, _: a ^ b,
    ir.ShiftLeft: _shift_left,
    ir.ShiftRight: _shift_right,
    ir.And: lambda a, b, _: int(a and b),
    ir.Or: lambda a, b, _: int(a or b),
}
_FLOATS: dict[type[Any], Callable[[Any, Any], Any]] = {
    ir.Add: lambda a, b: a + b,
    ir.Sub: lambda a, b: a - b,
    ir.Mul: lambda a, b: a * b,
    ir.Div: lambda a, b: a / b,
    ir.Mod: np.fmod,
    ir.Min: lambda a, b: b if b < a or np.isnan(b) else a,
    ir.Max: lambda a, b: b if b > a or np.isnan(b) else a,
}


def _float(value: float, dtype: DType) -> Any:
    return np.dtype(f"float{dtype.bits}").type(value)


def _cast(value: Any, source: DType, target: DType) -> Any:
    if target.is_bool:
        return int(value != 0)
    if target.is_float:
        with np.errstate(over="ignore"):
            return _float(value, target)
    if not source.is_float:
        return wrap(value, target)
    if np.isnan(value):
        return 0
    low = -(2 ** (target.bits - 1)) if target.kind == "int" else 0
    high = low + 2**target.bits - 1
    exact = float(value)  # compared as such: numpy would round the limits to the dtype
    return low if exact <= low else high if exact >= high else int(exact)

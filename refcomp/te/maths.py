"""Functions that build expressions: constants, choices, conditions and named intrinsics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from refcomp.dtype import BOOL, F32, as_dtype
from refcomp.errors import UserError
from refcomp.ir.expr import (
    And,
    Call,
    Div,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    IntImm,
    Max,
    Min,
    Mod,
    Or,
    Select,
    Var,
)
from refcomp.ir.intrinsics import INTRINSICS, find_intrinsic
from refcomp.ir.names import checked_name
from refcomp.ir.promotion import as_expr, binary, cast, match_types
from refcomp.te.tensor import scalar_dtype


def var(name: str = "n", dtype: Any = "int64") -> Var:
    """A scalar variable: a symbolic extent (int64) or a scalar argument of any dtype."""
    return Var(checked_name(name, "a variable"), scalar_dtype(dtype, f"variable {name}"))


def min_value(dtype: Any) -> Expr:
    """The least value of a dtype; minus infinity for floats."""
    target = as_dtype(dtype)
    if target.is_float:
        return FloatImm(-math.inf, target)
    return IntImm(0 if target.is_bool else target.min_value, target)


def max_value(dtype: Any) -> Expr:
    """The greatest value of a dtype; infinity for floats."""
    target = as_dtype(dtype)
    return FloatImm(math.inf, target) if target.is_float else IntImm(target.max_value, target)


def select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """true_value where condition holds, else false_value; both may be evaluated."""
    a, b = match_types(true_value, false_value)
    return Select(cast(BOOL, condition), a, b)


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """As `select`, but only the chosen value is evaluated: it may guard an access."""
    a, b = match_types(true_value, false_value)
    return IfThenElseExpr(cast(BOOL, condition), a, b)


def all(*conditions: Any) -> Expr:
    """Whether every condition holds."""
    return _join(And, "all", conditions)


def any(*conditions: Any) -> Expr:
    """Whether at least one condition holds."""
    return _join(Or, "any", conditions)


def _join(cls: type[Any], name: str, conditions: tuple[Any, ...]) -> Expr:
    if not conditions:
        raise UserError(f"{name}() needs at least one condition")
    joined = cast(BOOL, conditions[0])
    for condition in conditions[1:]:
        joined = cls(joined, cast(BOOL, condition))
    return joined


def minimum(a: Any, b: Any) -> Expr:
    """The lesser of two values; NaN propagates."""
    return binary(Min, a, b)


def maximum(a: Any, b: Any) -> Expr:
    """The greater of two values; NaN propagates."""
    return binary(Max, a, b)


def power(x: Any, y: Any) -> Expr:
    """x to the power y, of two floats."""
    return _call("pow", x, y)


def fma(a: Any, b: Any, c: Any) -> Expr:
    """a * b + c rounded once; f32 and f64."""
    return _call("fma", a, b, c)


def _call(name: str, *args: Any) -> Expr:
    operands = [as_expr(arg) for arg in args]
    if len(operands) > 1:
        shared = operands[0]
        for operand in operands[1:]:
            shared, _ = match_types(shared, operand)
        operands = [cast(shared.dtype, operand) for operand in operands]
    if operands[0].dtype.is_int and "float" in INTRINSICS[name].kinds and name != "abs":
        operands = [cast(F32, operand) for operand in operands]
    dtype = operands[0].dtype
    intrinsic = find_intrinsic(name, dtype, len(operands))
    result = BOOL.with_lanes(dtype.lanes) if intrinsic.result_bool else dtype
    return Call(name, tuple(operands), result)


def _unary(name: str) -> Callable[[Any], Expr]:
    def function(x: Any) -> Expr:
        return _call(name, x)

    function.__name__ = name
    function.__doc__ = f"The intrinsic `{name}`, element by element; integers become f32 first."
    return function


exp, exp2, exp10, expm1 = map(_unary, ("exp", "exp2", "exp10", "expm1"))
log, log2, log10, log1p = map(_unary, ("log", "log2", "log10", "log1p"))
sqrt, rsqrt, erf, sigmoid, tanh = map(_unary, ("sqrt", "rsqrt", "erf", "sigmoid", "tanh"))
sin, cos, tan, asin, acos, atan = map(_unary, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, asinh, acosh, atanh = map(_unary, ("sinh", "cosh", "asinh", "acosh", "atanh"))
floor, ceil, trunc, round = map(_unary, ("floor", "ceil", "trunc", "round"))
isnan, isinf, isfinite, popcount, clz = map(
    _unary, ("isnan", "isinf", "isfinite", "popcount", "clz")
)


def abs(x: Any) -> Expr:
    """The absolute value; that of the least signed integer is itself, of unsigned x is x."""
    operand = as_expr(x)
    return operand if operand.dtype.kind == "uint" else _call("abs", operand)


def atan2(y: Any, x: Any) -> Expr:
    """The angle of the point (x, y), in radians."""
    return _call("atan2", y, x)


def hypot(x: Any, y: Any) -> Expr:
    """sqrt(x * x + y * y) without needless overflow."""
    return _call("hypot", x, y)


def copysign(x: Any, y: Any) -> Expr:
    """x with the sign of y."""
    return _call("copysign", x, y)


def truncdiv(a: Any, b: Any) -> Expr:
    """Integer division rounded toward zero; the same as `a / b`."""
    return binary(Div, a, b)


def truncmod(a: Any, b: Any) -> Expr:
    """The remainder of `truncdiv`; the same as `a % b`."""
    return binary(Mod, a, b)


def floordiv(a: Any, b: Any) -> Expr:
    """Integer division rounded down; the same as `a // b`."""
    return binary(FloorDiv, a, b)


def floormod(a: Any, b: Any) -> Expr:
    """The remainder of `floordiv`; has the sign of b."""
    return binary(FloorMod, a, b)

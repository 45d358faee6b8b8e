"""Functions that build expressions: constants, choices, conditions and named intrinsics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from refcomp.foundation.dtype import BOOL, F32, I32, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.expr import (
    EQ,
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
from refcomp.ir.promotion import as_expr, binary, cast, const, match_types
from refcomp.te.tensor import scalar_dtype


def var(name: str = "n", dtype: Any = "int64") -> Var:
    """Return a scalar variable: a symbolic extent (int64), or a scalar argument of any dtype."""
    return Var(
        checked_name(name, "a variable"), scalar_dtype(dtype, f"variable {name}")
    )


def min_value(dtype: Any) -> Expr:
    """Return the minimum of a dtype; minus infinity for floats."""
    target = as_dtype(dtype)
    if target.is_float:
        return FloatImm(-math.inf, target)
    return IntImm(0 if target.is_bool else target.min_value, target)


def max_value(dtype: Any) -> Expr:
    """Return the maximum of a dtype; infinity for floats."""
    target = as_dtype(dtype)
    return (
        FloatImm(math.inf, target)
        if target.is_float
        else IntImm(target.max_value, target)
    )


def select(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """Return true_value where condition holds, else false_value. Both may be evaluated."""
    a, b = match_types(true_value, false_value)
    return Select(cast(BOOL, condition), a, b)


def if_then_else(condition: Any, true_value: Any, false_value: Any) -> Expr:
    """Return the same as `select`, but evaluate only the chosen value.

    So it may guard an access.
    """
    a, b = match_types(true_value, false_value)
    return IfThenElseExpr(cast(BOOL, condition), a, b)


def all(*conditions: Any) -> Expr:
    """Return the condition that every condition holds."""
    return _join(And, "all", conditions)


def any(*conditions: Any) -> Expr:
    """Return the condition that at least one condition holds."""
    return _join(Or, "any", conditions)


def _join(cls: type[Any], name: str, conditions: tuple[Any, ...]) -> Expr:
    if not conditions:
        raise UserError(f"{name}() needs at least one condition")
    joined = cast(BOOL, conditions[0])
    for condition in conditions[1:]:
        joined = cls(joined, cast(BOOL, condition))
    return joined


def minimum(a: Any, b: Any) -> Expr:
    """Return the lesser of two values. NaN propagates."""
    return binary(Min, a, b)


def maximum(a: Any, b: Any) -> Expr:
    """Return the greater of two values. NaN propagates."""
    return binary(Max, a, b)


def power(x: Any, y: Any) -> Expr:
    """Return x to the power y, for floats."""
    return _call("pow", x, y)


def fma(a: Any, b: Any, c: Any) -> Expr:
    """Return a * b + c, rounded once, for f32 and f64."""
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
    function.__doc__ = (
        f"The intrinsic `{name}`, element by element; integers become f32 first."
    )
    return function


exp, exp2, exp10, expm1 = map(_unary, ("exp", "exp2", "exp10", "expm1"))
log, log2, log10, log1p = map(_unary, ("log", "log2", "log10", "log1p"))
sqrt, rsqrt, erf, sigmoid, tanh = map(
    _unary, ("sqrt", "rsqrt", "erf", "sigmoid", "tanh")
)
sin, cos, tan, asin, acos, atan = map(
    _unary, ("sin", "cos", "tan", "asin", "acos", "atan")
)
sinh, cosh, asinh, acosh, atanh = map(
    _unary, ("sinh", "cosh", "asinh", "acosh", "atanh")
)
floor, ceil, trunc, round = map(_unary, ("floor", "ceil", "trunc", "round"))
isnan, isinf, isfinite, popcount, clz = map(
    _unary, ("isnan", "isinf", "isfinite", "popcount", "clz")
)


def abs(x: Any) -> Expr:
    """Return the absolute value.

    The minimum of a signed integer type is its own absolute value.
    """
    operand = as_expr(x)
    return operand if operand.dtype.kind == "uint" else _call("abs", operand)


def atan2(y: Any, x: Any) -> Expr:
    """Return the angle of the point (x, y), in radians."""
    return _call("atan2", y, x)


def hypot(x: Any, y: Any) -> Expr:
    """Return sqrt(x * x + y * y) without needless overflow."""
    return _call("hypot", x, y)


def copysign(x: Any, y: Any) -> Expr:
    """Return x with the sign of y."""
    return _call("copysign", x, y)


def fabs(x: Any) -> Expr:
    """Return the absolute value as a float, like `abs` on floats."""
    return abs(_as_float(x))


def nearbyint(x: Any) -> Expr:
    """Return the nearest integer, ties to even, like `round`."""
    return _call("round", x)


def fmod(x: Any, y: Any) -> Expr:
    """Return the remainder of x / y truncated, for floats: exact, with the sign of x."""
    a, b = match_types(x, y)
    return Mod(_as_float(a), _as_float(b))


def nextafter(x: Any, y: Any) -> Expr:
    """Return the number of the type that follows x towards y, or y if they are equal.

    Defined for f16 to f64.
    """
    a, b = (_as_float(operand) for operand in match_types(x, y))
    if a.dtype.kind == "bfloat":
        raise UserError(
            f"nextafter is not defined on dtype {a.dtype}",
            remedy="it takes f16, f32 and f64; convert with .astype(...)",
        )
    bits = _bits_of(a)
    zero = const(0, bits.dtype)
    one = const(1, bits.dtype)
    grows = (a < b) == (a > 0.0)
    step = _float_of(Select(grows, bits + one, bits - one))
    least = _float_of(Select(b < 0.0, (zero + 1 << bits.dtype.bits - 1) + one, one))
    moved = select(EQ(a, b), b, select(EQ(a, const(0.0, a.dtype)), least, step))
    return select(any(isnan(a), isnan(b)), a + b, moved)


def ldexp(x: Any, exponent: Any) -> Expr:
    """Return x times 2 to the power `exponent`, an integer, rounded once."""
    value = _as_float(x)
    if value.dtype.bits == 16:
        return cast(value.dtype, ldexp(cast(F32, value), exponent))
    return _scaled(value, cast(I32, exponent))


# The greatest and the least exponent of a normal number, and the digits.
_EXPONENTS = {32: (127, -126, 24), 64: (1023, -1022, 53)}


def _scaled(x: Expr, n: Expr) -> Expr:
    """Scale by factors that are exact until the last one, like scalbn in musl."""
    most, least, digits = _EXPONENTS[x.dtype.bits]
    up, down = (const(2.0**k, x.dtype) for k in (most, least + digits))
    for _ in range(2):
        is_over, is_under = n > most, n < least
        x = x * Select(is_over, up, Select(is_under, down, const(1.0, x.dtype)))
        n = Select(is_over, n - most, Select(is_under, n - (least + digits), n))
    n = minimum(maximum(n, least), most)
    unsigned = DType("uint", x.dtype.bits)
    return x * _float_of(cast(unsigned, n + most) << digits - 1)


def _as_float(x: Any) -> Expr:
    operand = as_expr(x)
    return operand if operand.dtype.is_float else cast(F32, operand)


def _bits_of(x: Expr) -> Expr:
    return Call("float_to_bits", (x,), DType("uint", x.dtype.bits))


def _float_of(bits: Expr) -> Expr:
    return Call("bits_to_float", (bits,), DType("float", bits.dtype.bits))


def truncdiv(a: Any, b: Any) -> Expr:
    """Return the quotient rounded toward zero, like `a / b` on integers."""
    return binary(Div, a, b)


def truncmod(a: Any, b: Any) -> Expr:
    """Return the remainder of `truncdiv`, like `a % b`."""
    return binary(Mod, a, b)


def floordiv(a: Any, b: Any) -> Expr:
    """Return the quotient rounded down, like `a // b`."""
    return binary(FloorDiv, a, b)


def floormod(a: Any, b: Any) -> Expr:
    """Return the remainder of `floordiv`, which has the sign of b."""
    return binary(FloorMod, a, b)

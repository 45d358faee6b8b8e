"""Functions that build expressions: constants, choices, conditions and named intrinsics."""

from __future__ import annotations

# house: allow-long (the manual pages of the functions)
import math
from collections.abc import Callable

from refcomp.foundation.dtype import BOOL, F32, I32, DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import (
    EQ,
    And,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IfThenElseExpr,
    Max,
    Min,
    Mod,
    Or,
    Select,
)
from refcomp.ir.intrinsics import INTRINSICS, find_intrinsic
from refcomp.ir.promotion import as_expr, binary, cast, const, match_types
from refcomp.te.maths_pages import page_of
from refcomp.te.tensor import DTypeLike, ExprLike


def min_value(dtype: DTypeLike) -> Expr:
    """Return the minimum of a dtype as a constant; minus infinity for floats.

    It is the identity of `maximum`, and so the start of a reduction by `max`.

    Args:
        dtype: a name such as `"int8"`, a numpy dtype or a `DType`. Vectors repeat the value.

    Raises:
        UserError: the dtype is unknown.

    Example::

        >>> [str(rc.min_value(dtype)) for dtype in ("int8", "uint8", "float32", "bool")]
        ['-128i8', '0u8', '-f32.inf', 'false']
    """
    target = as_dtype(dtype)
    if target.is_float:
        return const(-math.inf, target)
    return const(0 if target.is_bool else target.min_value, target)


def max_value(dtype: DTypeLike) -> Expr:
    """Return the maximum of a dtype as a constant; infinity for floats.

    It is the identity of `minimum`, and so the start of a reduction by `min`.

    Args:
        dtype: a name such as `"int8"`, a numpy dtype or a `DType`. Vectors repeat the value.

    Raises:
        UserError: the dtype is unknown.

    Example::

        >>> [str(rc.max_value(dtype)) for dtype in ("int8", "uint8", "float32", "bool")]
        ['127i8', '255u8', 'f32.inf', 'true']
    """
    target = as_dtype(dtype)
    return const(math.inf if target.is_float else target.max_value, target)


def select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """Return `true_value` where `condition` holds, else `false_value`.

    Both values may be evaluated. To guard an access, use `if_then_else`.

    Args:
        condition: a bool expression. A number is compared with 0.
        true_value: an expression or a number.
        false_value: an expression or a number. Both values are promoted to one dtype.

    Raises:
        UserError: an operand cannot be an expression.

    Source: TVM, tir.Select.

    Example::

        >>> X = rc.placeholder((3,), name="X")
        >>> Y = rc.compute((3,), lambda i: rc.select(X[i] > 0.0, X[i], 0.1 * X[i]), name="Y")
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.array([2, -1, np.nan], "float32")})
        >>> print(y)
        [ 2.  -0.1  nan]
    """
    a, b = match_types(true_value, false_value)
    chosen = cast(BOOL, condition)
    lanes = max(chosen.dtype.lanes, a.dtype.lanes)
    if {chosen.dtype.lanes, a.dtype.lanes} - {1, lanes}:
        raise UserError(
            f"select chooses among {a.dtype} by a condition of {chosen.dtype.lanes} lanes",
            remedy="use as many lanes in the condition as in the values, or one",
        )
    dtype = a.dtype.with_lanes(lanes)
    return Select(cast(BOOL.with_lanes(lanes), chosen), cast(dtype, a), cast(dtype, b))


def if_then_else(
    condition: ExprLike, true_value: ExprLike, false_value: ExprLike
) -> Expr:
    """Return `true_value` where `condition` holds, else `false_value`.

    Only the chosen value is evaluated, so the condition may guard an access. `select` may evaluate
    both values.

    Args:
        condition: a bool expression. A number is compared with 0.
        true_value: an expression or a number.
        false_value: an expression or a number. Both values are promoted to one dtype.

    Raises:
        UserError: an operand cannot be an expression.

    Source: TVM, tir.if_then_else.

    Example::

        >>> X = rc.placeholder((2,), name="X")
        >>> Y = rc.compute((3,), lambda i: rc.if_then_else(i < 2, X[i], 9.0), name="Y")
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.array([1, 2], "float32")})
        >>> print(y)
        [1. 2. 9.]
    """
    a, b = match_types(true_value, false_value)
    chosen = cast(BOOL, condition)
    if chosen.dtype.lanes > 1:
        raise UserError(
            f"if_then_else is given a condition of {chosen.dtype.lanes} lanes",
            why="it evaluates one of the values, for all lanes",
            remedy="use select(condition, a, b), which chooses lane by lane",
        )
    return IfThenElseExpr(chosen, a, b)


def likely(condition: ExprLike) -> Expr:
    """Return a condition, as a bool expression.

    In the classic API, this marks guards that mostly hold. Here guards are found without marks.

    Args:
        condition: a bool expression. A number is compared with 0.

    Raises:
        UserError: the condition cannot be an expression.

    Source: TVM, tir.likely.

    Example::

        >>> X = rc.placeholder((2,), name="X")
        >>> Y = rc.compute((3,), lambda i: rc.if_then_else(rc.likely(i < 2), X[i], 9.0), name="Y")
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.array([1, 2], "float32")})
        >>> print(y)
        [1. 2. 9.]
    """
    return cast(BOOL, condition)


def all(*conditions: ExprLike) -> Expr:
    """Return the condition that every condition holds.

    Args:
        *conditions: one or more bool expressions. Numbers are compared with 0.

    Raises:
        UserError: no condition is given.

    Example::

        >>> i = rc.var("i")
        >>> rc.all(i >= 0, i < 8)
        i >= 0 and i < 8
    """
    return _join(And, "all", conditions)


def any(*conditions: ExprLike) -> Expr:
    """Return the condition that at least one condition holds.

    Args:
        *conditions: one or more bool expressions. Numbers are compared with 0.

    Raises:
        UserError: no condition is given.

    Example::

        >>> i = rc.var("i")
        >>> rc.any(i < 0, i >= 8)
        i < 0 or i >= 8
    """
    return _join(Or, "any", conditions)


def _join(cls: type[And | Or], name: str, conditions: tuple[ExprLike, ...]) -> Expr:
    if not conditions:
        raise UserError(f"{name}() needs at least one condition")
    joined = cast(BOOL, conditions[0])
    for condition in conditions[1:]:
        joined = cls(joined, cast(BOOL, condition))
    return joined


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    """Return the lesser of two values. If one is NaN, the result is NaN.

    Of two zeros with different signs, the result is `a`.

    Args:
        a: an expression or a number of any dtype.
        b: the same. Both are promoted to one dtype, which is also that of the result.

    Source: minimum of IEEE 754-2019, 9.6, except that -0.0 and 0.0 are equal here.

    Example::

        >>> Y = rc.compute((1,), lambda i: (rc.minimum(1.0, 2.0), rc.minimum(np.nan, 2.0)))
        >>> print(np.ravel(rc.oracle.evaluate(Y, {})))
        [ 1. nan]
    """
    return binary(Min, a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    """Return the greater of two values. If one is NaN, the result is NaN.

    Of two zeros with different signs, the result is `a`.

    Args:
        a: an expression or a number of any dtype.
        b: the same. Both are promoted to one dtype, which is also that of the result.

    Source: maximum of IEEE 754-2019, 9.6, except that -0.0 and 0.0 are equal here.

    Example::

        >>> Y = rc.compute((1,), lambda i: (rc.maximum(1.0, 2.0), rc.maximum(np.nan, 2.0)))
        >>> print(np.ravel(rc.oracle.evaluate(Y, {})))
        [ 2. nan]
    """
    return binary(Max, a, b)


def power(x: ExprLike, y: ExprLike) -> Expr:
    """Return x to the power y, of floats.

    A negative x with a fractional y gives NaN. x to the power 0 is 1, and 1 to any power is 1. Both
    hold even if the other operand is NaN. Otherwise, NaN gives NaN.

    Args:
        x: an expression or a number of dtype f16, bf16, f32 or f64.
        y: the same. Both are promoted to one dtype; if that is an integer, both become f32.

    Returns:
        An expression, at most 4 units in the last place from the exact value (f32, f64).

    Raises:
        UserError: both operands are bool.

    Source: C11 7.12.7.4 (pow).

    Example::

        >>> x = np.array([2, -8, 0, np.nan], "float32")
        >>> X = rc.placeholder(x.shape, name="X")
        >>> Y = rc.compute(x.shape, lambda i: (rc.power(X[i], 0.5), rc.power(X[i], 0.0)), name="Y")
        >>> print(*(y.round(4) for y in rc.oracle.evaluate(Y, {X: x})))
        [1.4142    nan 0.        nan] [1. 1. 1. 1.]
    """
    return _call("pow", x, y)


def fma(a: ExprLike, b: ExprLike, c: ExprLike) -> Expr:
    """Return a * b + c, rounded once.

    If an operand is NaN, or if an infinity times 0 is formed, the result is NaN.

    Args:
        a: an expression or a number of dtype f16, f32 or f64.
        b: the same.
        c: the same. All are promoted to one dtype; if that is an integer, all become f32.

    Raises:
        UserError: the dtype is bf16 or bool.

    Source: fusedMultiplyAdd of IEEE 754-2019, 5.4.1; C11 7.12.13.1.

    Example::

        >>> tiny = 2.0**-20
        >>> X = rc.placeholder((1,), name="X")
        >>> Y = rc.compute((1,), lambda i: rc.fma(X[i], X[i], -1.0), name="Y")
        >>> Z = rc.compute((1,), lambda i: X[i] * X[i] - 1.0, name="Z")
        >>> x = np.array([1 + tiny], "float32")
        >>> [bool(y[0] == 2 * tiny + tiny**2) for y in rc.oracle.evaluate([Y, Z], {X: x})]
        [True, False]
    """
    return _call("fma", a, b, c)


def _call(name: str, *args: ExprLike) -> Expr:
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


def _unary(name: str) -> Callable[[ExprLike], Expr]:
    def function(x: ExprLike) -> Expr:
        return _call(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = page_of(name)
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


def abs(x: ExprLike) -> Expr:
    """Return the absolute value, of the dtype of x.

    The minimum of a signed integer dtype is its own absolute value, because integers wrap. NaN
    gives NaN, and -0.0 gives 0.0.

    Args:
        x: an expression or a number of an integer or float dtype. Unsigned integers stay as they
            are.

    Raises:
        UserError: x is a bool.

    Source: C11 7.12.7.2 (fabs) for floats.

    Example::

        >>> X = rc.placeholder((3,), "int8", name="X")
        >>> Y = rc.compute((3,), lambda i: rc.abs(X[i]), name="Y")
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.array([-5, 5, -128], "int8")})
        >>> print(y)
        [   5    5 -128]
    """
    operand = as_expr(x)
    return operand if operand.dtype.kind == "uint" else _call("abs", operand)


def atan2(y: ExprLike, x: ExprLike) -> Expr:
    """Return the angle of the point (x, y) in radians, from -pi to pi.

    The signs of zeros count: atan2(0.0, -1.0) is pi, and atan2(-0.0, -1.0) is -pi. NaN gives NaN.

    Args:
        y: an expression or a number of dtype f16, bf16, f32 or f64.
        x: the same. Both are promoted to one dtype; if that is an integer, both become f32.

    Returns:
        An expression, at most 4 units in the last place from the exact value (f32, f64).

    Raises:
        UserError: both operands are bool.

    Source: C11 7.12.4.4.

    Example::

        >>> y = np.array([1, 0, -0.0, 0], "float32")
        >>> x = np.array([1, -1, -1, 0], "float32")
        >>> Y, X = (rc.placeholder((4,), name=name) for name in "YX")
        >>> A = rc.compute((4,), lambda i: rc.atan2(Y[i], X[i]), name="A")
        >>> (angles,) = rc.oracle.evaluate([A], {Y: y, X: x})
        >>> print(angles.round(4))
        [ 0.7854  3.1416 -3.1416  0.    ]
    """
    return _call("atan2", y, x)


def hypot(x: ExprLike, y: ExprLike) -> Expr:
    """Return sqrt(x * x + y * y). The squares cannot overflow.

    If an operand is infinite, the result is inf, even if the other operand is NaN. Otherwise, NaN
    gives NaN.

    Args:
        x: an expression or a number of dtype f16, bf16, f32 or f64.
        y: the same. Both are promoted to one dtype; if that is an integer, both become f32.

    Returns:
        An expression, at most 4 units in the last place from the exact value (f32, f64).

    Raises:
        UserError: both operands are bool.

    Source: C11 7.12.7.3.

    Example::

        >>> x = np.array([3, 1e30, np.inf, np.nan], "float32")
        >>> y = np.array([4, 1e30, np.nan, 0], "float32")
        >>> X, Y = (rc.placeholder((4,), name=name) for name in "XY")
        >>> H = rc.compute((4,), lambda i: rc.hypot(X[i], Y[i]), name="H")
        >>> (h,) = rc.oracle.evaluate([H], {X: x, Y: y})
        >>> print(h)
        [5.0000000e+00 1.4142135e+30           inf           nan]
    """
    return _call("hypot", x, y)


def copysign(x: ExprLike, y: ExprLike) -> Expr:
    """Return x with the sign of y. The result is exact.

    Zeros and NaN have a sign too.

    Args:
        x: an expression or a number of dtype f16, bf16, f32 or f64.
        y: the same. Both are promoted to one dtype; if that is an integer, both become f32.

    Raises:
        UserError: both operands are bool.

    Source: copySign of IEEE 754-2019, 5.5.1; C11 7.12.11.1.

    Example::

        >>> Y = rc.compute((1,), lambda i: (rc.copysign(2.0, -0.0), rc.copysign(-2.0, 1.0)))
        >>> print(np.ravel(rc.oracle.evaluate(Y, {})))
        [-2.  2.]
    """
    return _call("copysign", x, y)


def fabs(x: ExprLike) -> Expr:
    """Return the absolute value as a float. NaN gives NaN, and -0.0 gives 0.0.

    Args:
        x: an expression or a number of dtype f16, bf16, f32 or f64. Others become f32 first.

    Source: C11 7.12.7.2.

    Example::

        >>> Y = rc.compute((1,), lambda i: (rc.fabs(-2.5), rc.fabs(-np.inf), rc.fabs(-3)), name="Y")
        >>> print(np.ravel(rc.oracle.evaluate(Y, {})))
        [2.5 inf 3. ]
    """
    return abs(_as_float(x))


def nearbyint(x: ExprLike) -> Expr:
    """Return the integer nearest to x, as a float. It is another name of `round`.

    A tie goes to the even integer. A zero, an infinity or NaN gives itself.

    Args:
        x: an expression or a number of dtype f16, bf16, f32 or f64. An integer becomes f32 first.

    Raises:
        UserError: x has another dtype, such as bool.

    Source: C11 7.12.9.3, with the rounding mode to nearest.

    Example::

        >>> X = rc.placeholder((4,), name="X")
        >>> Y = rc.compute((4,), lambda i: rc.nearbyint(X[i]), name="Y")
        >>> (y,) = rc.oracle.evaluate([Y], {X: np.array([0.5, 1.5, -2.5, np.inf], "float32")})
        >>> print(y)
        [ 0.  2. -2. inf]
    """
    return _call("round", x)


def fmod(x: ExprLike, y: ExprLike) -> Expr:
    """Return x - y * trunc(x / y), of floats. The result is exact and has the sign of x.

    An infinite x, a y of 0 and NaN give NaN. If y is infinite and x is finite, the result is x.

    Args:
        x: an expression or a number. Other dtypes than f16, bf16, f32 and f64 become f32.
        y: the same. Both are promoted to one dtype.

    Source: C11 7.12.10.1.

    Example::

        >>> x = np.array([5.5, -5.5, 1, np.inf, 1], "float32")
        >>> y = np.array([2, 2, 0, 1, np.inf], "float32")
        >>> X, Y = (rc.placeholder((5,), name=name) for name in "XY")
        >>> R = rc.compute((5,), lambda i: rc.fmod(X[i], Y[i]), name="R")
        >>> print(*rc.oracle.evaluate([R], {X: x, Y: y}))
        [ 1.5 -1.5  nan  nan  1. ]
    """
    a, b = match_types(x, y)
    return Mod(_as_float(a), _as_float(b))


def nextafter(x: ExprLike, y: ExprLike) -> Expr:
    """Return the number of the dtype that follows x in the direction of y, or y if both are equal.

    After the greatest number comes inf, and after 0 the least subnormal number. NaN gives NaN.

    Args:
        x: an expression or a number of dtype f16, f32 or f64. An integer becomes f32.
        y: the same. Both are promoted to one dtype.

    Raises:
        UserError: the dtype is bf16.

    Source: C11 7.12.11.3.

    Example::

        >>> Y = rc.compute((1,), lambda i: (rc.nextafter(0.0, 1.0), rc.nextafter(1.0, 0.0)))
        >>> print(*np.ravel(rc.oracle.evaluate(Y, {})))
        1e-45 0.99999994
    """
    a, b = (_as_float(operand) for operand in match_types(x, y))
    if a.dtype.kind == "bfloat":
        raise UserError(
            f"nextafter is not defined on dtype {a.dtype}",
            remedy="it takes f16, f32 and f64; convert with .astype(...)",
        )
    bits = Call("float_to_bits", (a,), DType("uint", a.dtype.bits))
    zero = const(0, bits.dtype)
    one = const(1, bits.dtype)
    grows = (a < b) == (a > 0.0)
    step = _float_of(Select(grows, bits + one, bits - one))
    least = _float_of(Select(b < 0.0, (zero + 1 << bits.dtype.bits - 1) + one, one))
    moved = select(EQ(a, b), b, select(EQ(a, const(0.0, a.dtype)), least, step))
    return select(any(isnan(a), isnan(b)), a + b, moved)


def ldexp(x: ExprLike, exponent: ExprLike) -> Expr:
    """Return x times 2 to the power `exponent`, rounded once.

    An infinity, a zero or NaN gives itself. A result beyond the largest number is infinite.

    Args:
        x: an expression or a number. Other dtypes than f16, bf16, f32 and f64 become f32.
        exponent: an integer expression or an int. It is converted to i32.

    Source: C11 7.12.6.6.

    Example::

        >>> Y = rc.compute((1,), lambda i: (rc.ldexp(1.5, 4), rc.ldexp(1.0, -149)), name="Y")
        >>> print(*np.ravel(rc.oracle.evaluate(Y, {})))
        24.0 1e-45
    """
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


def _as_float(x: ExprLike) -> Expr:
    operand = as_expr(x)
    return operand if operand.dtype.is_float else cast(F32, operand)


def _float_of(bits: Expr) -> Expr:
    return Call("bits_to_float", (bits,), DType("float", bits.dtype.bits))


def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient of a and b, for integers rounded toward zero. It is the same as `a / b`.

    For integers, a quotient by 0 is 0, and the minimum divided by -1 is the minimum. For floats,
    this is the division of IEEE 754.

    Args:
        a: an expression or a number of an integer or float dtype.
        b: the same. Both are promoted to one dtype.

    Source: C11 6.5.5; TVM, te.truncdiv. The result of a division by 0 is refcomp's own.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> Q = rc.compute((3,), lambda i: (rc.truncdiv(A[i], 2), rc.truncdiv(A[i], 0)), name="Q")
        >>> print(*rc.oracle.evaluate(Q, {A: np.array([7, -7, 6], "int32")}))
        [ 3 -3  3] [0 0 0]
    """
    return binary(Div, a, b)


def truncmod(a: ExprLike, b: ExprLike) -> Expr:
    """Return the remainder of `truncdiv`, with the sign of a. It is the same as `a % b`.

    For integers, a remainder by 0 is 0. For floats, this is `fmod`.

    Args:
        a: an expression or a number of an integer or float dtype.
        b: the same. Both are promoted to one dtype.

    Source: C11 6.5.5; TVM, te.truncmod. The remainder by 0 is refcomp's own.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> R = rc.compute((3,), lambda i: (rc.truncmod(A[i], 2), rc.truncmod(A[i], 0)), name="R")
        >>> print(*rc.oracle.evaluate(R, {A: np.array([7, -7, 6], "int32")}))
        [ 1 -1  0] [0 0 0]
    """
    return binary(Mod, a, b)


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """Return the quotient of integers, rounded down. It is the same as `a // b`.

    A quotient by 0 is 0, and the minimum divided by -1 is the minimum.

    Args:
        a: an integer expression or an int.
        b: the same. Both are promoted to one dtype.

    Raises:
        UserError: an operand is a float.

    Source: TVM, te.floordiv. The quotient by 0 is refcomp's own.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> Q = rc.compute((3,), lambda i: (rc.floordiv(A[i], 2), rc.floordiv(A[i], 0)), name="Q")
        >>> print(*rc.oracle.evaluate(Q, {A: np.array([7, -7, 6], "int32")}))
        [ 3 -4  3] [0 0 0]
    """
    return binary(FloorDiv, a, b)


def floormod(a: ExprLike, b: ExprLike) -> Expr:
    """Return the remainder of `floordiv`, with the sign of b.

    A remainder by 0 is 0.

    Args:
        a: an integer expression or an int.
        b: the same. Both are promoted to one dtype.

    Raises:
        UserError: an operand is a float.

    Source: TVM, te.floormod. The remainder by 0 is refcomp's own.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> R = rc.compute((3,), lambda i: (rc.floormod(A[i], 2), rc.floormod(A[i], 0)), name="R")
        >>> print(*rc.oracle.evaluate(R, {A: np.array([7, -7, 6], "int32")}))
        [1 1 0] [0 0 0]
    """
    return binary(FloorMod, a, b)

"""Replaces intrinsics that neither LLVM nor libm offers by ones that they offer.

Before::

    func f(A: f32[n], H: f16[n], B: f32[n] out, C: f16[n] out, D: bool[n] out) {
      B@[0] = rsqrt(A@[0])
      C@[0] = exp(H@[0])
      D@[0] = isinf(A@[2])
    }

After::

    func f(A: f32[n], H: f16[n], B: f32[n] out, C: f16[n] out, D: bool[n] out) {
      B@[0] = 1.0f32 / sqrt(A@[0])
      C@[0] = f16(exp(f32(H@[0])))
      D@[0] = abs(A@[2]) == f32.inf
    }

and sigmoid(x) becomes (let e = exp(-|x|) in select(x < 0, e, 1) / (1 + e)).

Requires: nothing before it. Ensures: no rsqrt, sigmoid, isnan, isinf or isfinite is left.
Intrinsics of f16 and bf16 are computed in f32 and rounded once, but abs and copysign are
not changed. An fma of f16 is computed in f64, where rounding twice is the same as rounding
once. Exact intrinsics stay exact, and the others within their bounds. Level: flat or host,
kept. It refuses nothing.
"""

import math

from refcomp.foundation.dtype import F32, F64
from refcomp.ir.expr import (
    EQ,
    LT,
    NE,
    Add,
    Call,
    Cast,
    Div,
    Expr,
    Let,
    Mul,
    Select,
    Var,
)
from refcomp.ir.func import PrimFunc
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import replacer
from refcomp.passes.analysis.contents import holds

_KEPT_IN_HALF = ("abs", "copysign", "float_to_bits", "bits_to_float")


def lower_intrinsics(func: PrimFunc) -> PrimFunc:
    """Return `func` with only intrinsics that a host has."""
    if not holds(func, Call):
        return func
    return func.with_body(replacer({Call: _lower})(func.body))


def _lower(call: Call) -> Expr:
    dtype = call.args[0].dtype
    is_half = dtype.is_float and dtype.bits == 16
    if call.name in ("isnan", "isinf", "isfinite"):
        return _classified(call.name, call.args[0])
    if call.name in ("rsqrt", "sigmoid"):
        if is_half:
            return _in_f32(call)
        if call.name == "sigmoid":
            return _sigmoid(call.args[0])
        root = Call("sqrt", call.args, dtype)
        return Div(const(1.0, dtype), root)
    if not is_half or call.name in _KEPT_IN_HALF:
        return call
    if call.name != "fma":
        return _in_f32(call)
    # Note [Rounding twice].
    wide = F64.with_lanes(call.dtype.lanes)
    a, b, c = (Cast(wide, arg) for arg in call.args)
    return Cast(call.dtype, Add(Mul(a, b), c))


def _in_f32(call: Call) -> Expr:
    wide = F32.with_lanes(call.dtype.lanes)
    args = tuple(Cast(wide, arg) for arg in call.args)
    result = _lower(Call(call.name, args, wide))
    return Cast(call.dtype, result)


def _classified(name: str, x: Expr) -> Expr:
    """Return isnan, isinf or isfinite of `x` as a comparison."""
    if name == "isnan":
        return NE(x, x)
    magnitude = Call("abs", (x,), x.dtype)
    infinity = const(math.inf, x.dtype)
    # Both comparisons are false for NaN.
    return EQ(magnitude, infinity) if name == "isinf" else LT(magnitude, infinity)


def _sigmoid(x: Expr) -> Expr:
    # exp of a negative number never overflows, and a small result keeps its digits.
    e = Var("e", x.dtype)
    one = const(1.0, x.dtype)
    is_negative = LT(x, const(0.0, x.dtype))
    exponent = Call("copysign", (x, const(-1.0, x.dtype)), x.dtype)
    numerator = Select(is_negative, e, one)
    quotient = Div(numerator, Add(one, e))
    return Let(e, Call("exp", (exponent,), x.dtype), quotient)


# Note [Rounding twice]
#
# A product of two f16 numbers is exact in f64 (22 digits). Adding an f16 number rounds only
# if the digits of the sum span more than 53 places. Then there are two cases. Either the
# sum overflows f16. Or the lesser part lies far below the last place of the greater one,
# and the sum is not near a tie of f16, which needs digits of both within 34 places. So the
# f64 sum rounds to f16 as the exact sum does.

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
from collections.abc import Callable

from refcomp.foundation.dtype import F32, F64, DType
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
from refcomp.ir.node import Node
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import Rewrite, map_children, rewriter

_KEPT_IN_HALF = ("abs", "copysign", "float_to_bits", "bits_to_float")


def lower_intrinsics(func: PrimFunc) -> PrimFunc:
    """Return `func` with only intrinsics that a host has."""
    return func.with_body(rewriter(_visit)(func.body))


def _visit(recurse: Rewrite, node: Node) -> Node:
    node = map_children(node, recurse)
    return _lower(node) if isinstance(node, Call) else node


def _lower(call: Call) -> Expr:
    dtype = call.args[0].dtype
    if call.name in _LOWERED:
        is_rounded_to_half = dtype.bits == 16 and not call.dtype.is_bool
        return _in_f32(call) if is_rounded_to_half else _LOWERED[call.name](*call.args)
    if dtype.is_float and dtype.bits == 16 and call.name not in _KEPT_IN_HALF:
        return _fma_in_f64(call) if call.name == "fma" else _in_f32(call)
    return call


def _in_f32(call: Call) -> Expr:
    wide = F32.with_lanes(call.dtype.lanes)
    args = tuple(Cast(wide, arg) for arg in call.args)
    return Cast(call.dtype, _lower(Call(call.name, args, wide)))


def _fma_in_f64(call: Call) -> Expr:
    # Note [Rounding twice].
    a, b, c = (Cast(F64.with_lanes(call.dtype.lanes), arg) for arg in call.args)
    return Cast(call.dtype, Add(Mul(a, b), c))


def _rsqrt(x: Expr) -> Expr:
    return Div(_one(x.dtype), Call("sqrt", (x,), x.dtype))


def _sigmoid(x: Expr) -> Expr:
    # exp of a negative number never overflows, and a small result keeps its digits.
    e = Var("e", x.dtype)
    exponent = Call("copysign", (x, const(-1.0, x.dtype)), x.dtype)
    numerator = Select(LT(x, const(0.0, x.dtype)), e, _one(x.dtype))
    return Let(
        e, Call("exp", (exponent,), x.dtype), Div(numerator, Add(_one(x.dtype), e))
    )


def _isnan(x: Expr) -> Expr:
    return NE(x, x)


def _isinf(x: Expr) -> Expr:
    return EQ(_magnitude(x), const(math.inf, x.dtype))


def _isfinite(x: Expr) -> Expr:
    return LT(_magnitude(x), const(math.inf, x.dtype))


def _magnitude(x: Expr) -> Expr:
    return Call("abs", (x,), x.dtype)


def _one(dtype: DType) -> Expr:
    return const(1.0, dtype)


_LOWERED: dict[str, Callable[..., Expr]] = {
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "isnan": _isnan,
    "isinf": _isinf,
    "isfinite": _isfinite,
}

# Note [Rounding twice]
#
# A product of two f16 numbers is exact in f64 (22 digits). Adding an f16 number rounds only
# if the digits of the sum span more than 53 places. Then there are two cases. Either the
# sum overflows f16. Or the lesser part lies far below the last place of the greater one,
# and the sum is not near a tie of f16, which needs digits of both within 34 places. So the
# f64 sum rounds to f16 as the exact sum does.

"""Random well-typed expressions: every node class, every dtype, scalars and vectors.

`exprs(dtype, leaves)` builds on the expressions given as leaves, on constants and on lets.
With `exact=True` it makes only what every target computes to the same bits: floats that hold
integers, combined by operations that round once.

Never made: handles and strings; nodes of te; reads of memory other than the leaves; vectors of
another length than asked for; expressions deeper than `depth` nodes plus two. With `exact`
also never: NaN, infinities and fractions as constants; float division other than by 1 and -1;
intrinsics with an error bound; reading a float's bits or the sign of a computed zero or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from refcomp.foundation.dtype import BOOL, SCALAR_DTYPES, DType
from refcomp.ir import expr as ir
from refcomp.ir.expr import Broadcast, Cast, Expr, FloatImm, IntImm, Let, Var
from refcomp.ir.intrinsics import INTRINSICS

LANES = (2, 4, 8)
_EXACT_CALLS = ("abs", "floor", "ceil", "trunc", "round", "popcount", "clz")
_EXACT_CALLS += ("isnan", "isinf", "isfinite")
_NUMERIC = (ir.Add, ir.Sub, ir.Mul, ir.Min, ir.Max)
_INTEGER = (ir.Div, ir.Mod, ir.FloorDiv, ir.FloorMod, ir.BitAnd, ir.BitOr, ir.BitXor)
_INTEGER += (ir.ShiftLeft, ir.ShiftRight)
_COMPARISONS = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)
_NAMES = ("x", "y", "t.inner", "exp", "out", "for", "f32", "a b", "ä", "i-1", "f32.inf", "")


def scalar_dtypes() -> st.SearchStrategy[DType]:
    """Every dtype of one lane."""
    return st.sampled_from(SCALAR_DTYPES)


def dtypes() -> st.SearchStrategy[DType]:
    """Every dtype, with one lane or a few."""
    return st.builds(DType.with_lanes, scalar_dtypes(), st.sampled_from((1, 1, *LANES)))


def names() -> st.SearchStrategy[str]:
    """Names of variables and buffers: plain ones, and ones that no text may hold as they are."""
    return st.sampled_from(("i", "j", "i", "k_1", *_NAMES))


def constants(dtype: DType, exact: bool = False) -> st.SearchStrategy[Expr]:
    """A constant of a scalar dtype; with `exact`, floats are small integers."""
    small = st.integers(-8, 8)
    if not dtype.is_float:
        low, high = dtype.min_value, dtype.max_value
        values = small.map(lambda v: min(max(v, low), high)) | st.integers(low, high)
        return values.map(lambda v: IntImm(v, dtype))
    if exact:
        return small.map(lambda v: FloatImm(float(v), dtype))
    return (small.map(float) | st.floats(width=32) | st.floats()).map(lambda v: FloatImm(v, dtype))


@st.composite
def exprs(
    draw: Callable[..., Any],
    dtype: DType,
    leaves: Sequence[Expr] = (),
    *,
    depth: int = 3,
    exact: bool = False,
    vectors: bool = True,
    bfloat: bool = True,
) -> Expr:
    """An expression of `dtype` over `leaves`; without `vectors`, no part of it is one, and
    without `bfloat`, no part of it is of that kind."""
    allowed = [d for d in SCALAR_DTYPES if bfloat or d.kind != "bfloat"]
    return _Maker(draw, exact, vectors, allowed).expr(dtype, tuple(leaves), depth)


class _Maker:
    """Draws nodes; `leaves` are what may be used where the node stands."""

    def __init__(
        self, draw: Callable[..., Any], exact: bool, vectors: bool, allowed: list[DType]
    ) -> None:
        self._draw, self._exact, self._vectors = draw, exact, vectors
        self._allowed = allowed

    def _dtype(self) -> DType:
        return self._draw(st.sampled_from(self._allowed))

    def expr(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        if depth == 0 or self._draw(st.integers(0, 5)) == 0:
            return self._leaf(dtype, leaves)
        make = self._draw(st.sampled_from(self._makers(dtype)))
        node: Expr = make(dtype, leaves, depth - 1)
        return node

    def _makers(self, dtype: DType) -> list[Callable[..., Expr]]:
        makers = [self._cast, self._select, self._if_then_else, self._let, self._call]
        if dtype.lanes > 1:
            makers.append(self._broadcast)
        if dtype.lanes > 1 and dtype.is_int:
            makers += [self._ramp] * 2
        if dtype.is_bool:
            return [*makers, *[self._comparison] * 8, self._logic, self._logic, self._not]
        return [*makers, *[self._binary] * 8, *([self._division] * dtype.is_float)]

    def _leaf(self, dtype: DType, leaves: tuple[Expr, ...]) -> Expr:
        fitting = [leaf for leaf in leaves if leaf.dtype == dtype]
        convertible = [leaf for leaf in leaves if leaf.dtype.lanes == dtype.lanes]
        if fitting and self._draw(st.integers(0, 3)):
            return self._draw(st.sampled_from(fitting))
        if convertible and self._draw(st.booleans()):
            return Cast(dtype, self._draw(st.sampled_from(convertible)))
        if dtype.lanes > 1:
            return Broadcast(self._leaf(dtype.element, leaves), dtype.lanes)
        return self._draw(constants(dtype, self._exact))

    def _cast(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        source = self._dtype().with_lanes(dtype.lanes)
        return Cast(dtype, self.expr(source, leaves, depth))

    def _choose(self, cls: Any, lanes: int, dtype: DType, *rest: Any) -> Expr:
        leaves, depth = rest
        condition = self.expr(BOOL.with_lanes(lanes), leaves, max(depth, 1))
        return cls(condition, self.expr(dtype, *rest), self.expr(dtype, *rest))

    def _select(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        return self._choose(ir.Select, dtype.lanes, dtype, leaves, depth)

    def _if_then_else(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        return self._choose(ir.IfThenElseExpr, 1, dtype, leaves, depth)

    def _let(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        of = self._dtype()
        if self._vectors and self._draw(st.booleans()):
            of = of.with_lanes(dtype.lanes)
        var = Var(self._draw(names()), of)
        value = self.expr(of, leaves, depth)
        return Let(var, value, self.expr(dtype, (*leaves, var), depth))

    def _call(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        element = dtype.element
        found = [
            (intrinsic, operand)
            for intrinsic in INTRINSICS.values()
            if not self._exact or intrinsic.name in _EXACT_CALLS
            for operand in self._allowed
            if operand.kind in intrinsic.kinds and intrinsic.result_dtype(operand) == element
        ]
        if not found:
            return self.expr(dtype, leaves, depth)
        intrinsic, operand = self._draw(st.sampled_from(found))
        of = operand.with_lanes(dtype.lanes)
        args = tuple(self.expr(of, leaves, depth) for _ in range(intrinsic.arity))
        return ir.Call(intrinsic.name, args, dtype)

    def _binary(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        classes = (*_NUMERIC, ir.Mod) if dtype.is_float else (*_NUMERIC, *_INTEGER)
        cls = self._draw(st.sampled_from(classes))
        return cls(self.expr(dtype, leaves, depth), self.expr(dtype, leaves, depth))

    def _division(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        if not self._exact:
            return ir.Div(self.expr(dtype, leaves, depth), self.expr(dtype, leaves, depth))
        one: Expr = FloatImm(self._draw(st.sampled_from((1.0, -1.0))), dtype.element)
        divisor = one if dtype.lanes == 1 else Broadcast(one, dtype.lanes)
        return ir.Div(self.expr(dtype, leaves, depth), divisor)

    def _comparison(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        of = self._dtype().with_lanes(dtype.lanes)
        cls = self._draw(st.sampled_from(_COMPARISONS))
        return cls(self.expr(of, leaves, depth), self.expr(of, leaves, depth))

    def _logic(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        cls = self._draw(st.sampled_from((ir.And, ir.Or, ir.Min, ir.Max)))
        return cls(self.expr(dtype, leaves, depth), self.expr(dtype, leaves, depth))

    def _not(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        return ir.Not(self.expr(dtype, leaves, depth))

    def _broadcast(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        return Broadcast(self.expr(dtype.element, leaves, depth), dtype.lanes)

    def _ramp(self, dtype: DType, leaves: tuple[Expr, ...], depth: int) -> Expr:
        base = self.expr(dtype.element, leaves, depth)
        stride = self.expr(dtype.element, leaves, min(depth, 1))
        return ir.Ramp(base, stride, dtype.lanes)

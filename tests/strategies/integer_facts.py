"""Random integer expressions over a few variables whose values are known, and facts of these.

`known_integers()` gives variables x, y, z of one integer dtype, facts about them, and all points
(values of the three) at which these facts hold. `integer_exprs` and `conditions` make expressions
over variables that can be evaluated without an error anywhere.

Never made: values beyond the range of -8 .. 40 for a variable; memory, calls, vectors and floats;
shifts of i64 by more than 3, so that index arithmetic does not overflow; expressions deeper than
asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from refcomp.arith import Facts
from refcomp.foundation.dtype import DType, as_dtype
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, IntImm, Var

Point = dict[Var, int]

_DIVISIONS = (ir.FloorDiv, ir.FloorMod, ir.FloorDiv, ir.FloorMod, ir.Div, ir.Mod)
_BINARY = (*_DIVISIONS, *(ir.Add, ir.Sub, ir.Mul) * 3, ir.Min, ir.Max)
_BITS = (ir.BitAnd, ir.BitOr, ir.BitXor)
_COMPARISONS = (ir.EQ, ir.NE, ir.LT, ir.LE, ir.GT, ir.GE)
_CONSTANTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, -1, -2, -3, -4)


@dataclass(frozen=True)
class KnownIntegers:
    """See the module docstring."""

    dtype: DType
    variables: tuple[Var, ...]
    facts: Facts
    points: list[Point]


@st.composite
def known_integers(draw: Callable[..., Any]) -> KnownIntegers:
    """Facts as a schedule makes them: z a symbol, x a constant loop, y a loop inside of it."""
    dtype = as_dtype(draw(st.sampled_from(("i64", "i64", "i64", "i8", "u8", "i16", "i32", "u64"))))
    x, y, z = (Var(name, dtype) for name in "xyz")
    low = draw(st.integers(-3 if dtype.kind == "int" else 0, 3))
    count = draw(st.integers(1, 6))
    facts = Facts().nonnegative(z).bind(x, IntImm(low, dtype), IntImm(count, dtype))
    minimum, extent, of_point = _inner_loop(draw, x, z, dtype)
    facts = facts.bind(y, minimum, extent)
    points = [
        {x: a, y: b, z: c}
        for c, a in itertools.product(range(7), range(low, low + count))
        for b in of_point(a, c)
    ]
    return KnownIntegers(dtype, (x, y, z), facts, points)


def _inner_loop(draw: Any, x: Var, z: Var, dtype: DType) -> tuple[Expr, Expr, Any]:
    """Minimum and extent, and the values as a function of those of x and z."""
    k = draw(st.integers(2, 5))
    zero, factor = IntImm(0, dtype), IntImm(k, dtype)
    rounded_up = ir.FloorDiv(ir.Add(z, IntImm(k - 1, dtype)), factor)
    loops = (
        (zero, factor, lambda a, c: range(k)),
        (zero, z, lambda a, c: range(c)),
        (zero, rounded_up, lambda a, c: range((c + k - 1) // k)),
        (zero, ir.FloorDiv(z, factor), lambda a, c: range(c // k)),
        (zero, ir.Mul(z, factor), lambda a, c: range(c * k)),
        (x, z, lambda a, c: range(a, a + c)),
    )
    loop: tuple[Expr, Expr, Any] = draw(st.sampled_from(loops))
    return loop


def integer_exprs(variables: tuple[Var, ...], depth: int) -> st.SearchStrategy[Expr]:
    """Integer expressions of at most `depth` operations one inside another."""
    dtype = variables[0].dtype
    constants = st.sampled_from(_CONSTANTS).map(lambda v: IntImm(v, dtype))
    if dtype.bits == 8:
        constants |= st.integers(-128, 255).map(lambda v: IntImm(v, dtype))
    leaves = st.sampled_from(variables) | constants
    if depth == 0:
        return leaves
    inner = integer_exprs(variables, depth - 1)
    divisors = st.sampled_from((1, 2, 3, 4, 5, 8, 16, -2)).map(lambda v: IntImm(v, dtype))
    return st.one_of(
        inner,
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from(_BINARY), inner, inner),
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from(_DIVISIONS), inner, divisors),
        st.builds(lambda cls, a, b: cls(a, b), st.sampled_from(_BITS), inner, inner),
        _shifts(inner, leaves, dtype),
        st.builds(
            lambda cls, c, a, b: cls(c, a, b),
            st.sampled_from((ir.Select, ir.IfThenElseExpr)),
            conditions(variables, depth - 1),
            inner,
            inner,
        ),
        st.builds(
            lambda t, a: ir.Cast(dtype, ir.Cast(as_dtype(t), a)),
            st.sampled_from(("i8", "u8", "i16", "i32", "i64", "u64")),
            inner,
        ),
        _lets(variables, depth),
    )


def _shifts(
    inner: st.SearchStrategy[Expr], leaves: st.SearchStrategy[Expr], dtype: DType
) -> st.SearchStrategy[Expr]:
    small = st.integers(0, 3).map(lambda v: IntImm(v, dtype))
    amounts = small if dtype.bits == 64 else leaves
    classes = st.sampled_from((ir.ShiftLeft, ir.ShiftRight))
    return st.builds(lambda cls, a, b: cls(a, b), classes, inner, amounts)


@st.composite
def _lets(draw: Callable[..., Any], variables: tuple[Var, ...], depth: int) -> Expr:
    var = Var("t", variables[0].dtype)
    value = draw(integer_exprs(variables, depth - 1))
    return ir.Let(var, value, draw(integer_exprs((*variables, var), depth - 1)))


def conditions(variables: tuple[Var, ...], depth: int) -> st.SearchStrategy[Expr]:
    """Bool expressions: comparisons, and what and, or, not make of them."""
    inner = integer_exprs(variables, max(depth, 0))
    compared = st.builds(lambda cls, a, b: cls(a, b), st.sampled_from(_COMPARISONS), inner, inner)
    if depth <= 0:
        return compared
    parts = conditions(variables, depth - 1)
    joined = st.builds(lambda cls, a, b: cls(a, b), st.sampled_from((ir.And, ir.Or)), parts, parts)
    return compared | joined | st.builds(ir.Not, parts)

"""Refuse a combiner that is not a commutative monoid: its result would depend on the schedule.

Three laws are tried on a few numbers: the identity is neutral, and combination is commutative and
associative. Expressions that cannot be evaluated here, such as calls of intrinsics, are trusted.
Equal values are not tried, because `argmax` may keep either of two equal maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Protocol

from refcomp.arith import simplify
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_constant
from refcomp.ir.expr import Expr, Var
from refcomp.ir.promotion import const

# Small, so that sums and products of three are exact in every dtype, and all different. A negative
# number finds a maximum whose identity is 0. Dtypes without negative numbers take 5.
_TRIED = (3, 1, 2, -5)
_Values = tuple[Expr, ...]


# A protocol, since reducer.py, which defines CommReducer, imports this module.
class _Reducer(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def lhs(self) -> tuple[Var, ...]: ...
    @property
    def identities(self) -> tuple[Expr, ...]: ...
    def combine(
        self, so_far: Sequence[Expr], next_values: Sequence[Expr]
    ) -> tuple[Expr, ...]: ...


def check_reducer(reducer: _Reducer) -> None:
    """Raise UserError, with numbers as the counterexample, if a law does not hold."""
    tried = [_values(reducer, k) for k in range(len(_TRIED))]
    neutral = tuple(reducer.identities)
    for x in tried:
        why = "the identity must change nothing"
        _require(reducer, "f(x, identity)", _fold(reducer, x, neutral), x, why=why)
        _require(reducer, "f(identity, x)", _fold(reducer, neutral, x), x, why=why)
    for x, y in combinations(tried, 2):
        shown = f"f({_show(x)}, {_show(y)})"
        found = _fold(reducer, x, y)
        swapped = _fold(reducer, y, x)
        _require(reducer, shown, found, swapped, why="the order must not matter")
    for x, y, z in permutations(tried, 3):
        grouped = _fold(reducer, _fold(reducer, x, y), z)
        other = _fold(reducer, x, _fold(reducer, y, z))
        shown = f"f(f({_show(x)}, {_show(y)}), {_show(z)})"
        _require(reducer, shown, grouped, other, why="the grouping must not matter")


def _values(reducer: _Reducer, k: int) -> _Values:
    """Return one value to try for each variable. The components of a tuple differ as well."""
    values = []
    for component, var in enumerate(reducer.lhs):
        value = _TRIED[(k + component) % len(_TRIED)]
        if var.dtype.is_bool:
            value %= 2
        elif var.dtype.kind == "uint":
            value = abs(value)
        values.append(const(value, var.dtype))
    return tuple(values)


def _fold(reducer: _Reducer, x: _Values, y: _Values) -> _Values:
    return tuple(simplify(result) for result in reducer.combine(x, y))


def _show(values: _Values) -> str:
    shown = ", ".join(f"{as_constant(value):g}" for value in values)
    return shown if len(values) == 1 else f"({shown})"


def _require(
    reducer: _Reducer, law: str, found: _Values, expected: _Values, *, why: str
) -> None:
    # None: simplifying did not reach a number, as for a call of an intrinsic.
    numbers = [as_constant(value) for value in (*found, *expected)]
    if None in numbers or numbers[: len(found)] == numbers[len(found) :]:
        return
    raise UserError(
        f"the combiner f of reducer {reducer.name} is not a reduction: {law} is {_show(found)} one "
        f"way and {_show(expected)} the other",
        why=f"{why}, as schedules split, reorder and share out the iterations",
        remedy="combine by an associative and commutative function with its identity",
    )

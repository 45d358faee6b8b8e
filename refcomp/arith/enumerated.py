"""The values of an index at all points of a small box of constant axes.

The ends of `i * 3 % 8`, `i * j` or `select(i < 3, i, 0)` do not follow from the ends of their
operands. So all values are computed, on whole numpy arrays, as `refcomp.ir.expr` defines them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from refcomp.arith.array_operators import Array, array_operator
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.expr import Expr, FloatImm, IntImm, Var
from refcomp.ir.rewrite import children

MAX_POINTS = 4096  # values of one expression
# Axes of a box, each of which is a dimension of the arrays; numpy permits 32 or 64 of them.
_MAX_RANK = 16
_KINDS = ("int", "uint", "bool", "float")


class Values(NamedTuple):
    """The values of an expression, with one dimension for each axis of the box."""

    array: Array
    axes: frozenset[Var]  # the axes that the expression depends on


class Enumeration:
    """A memo of the values of expressions at all points of a box.

    `axes` are the dimensions of the box. `lets` holds the values of other variables.
    """

    def __init__(self, axes: Mapping[Var, range], lets: Mapping[Var, Expr]) -> None:
        self._axes = axes
        self._lets = lets
        # id(expr) -> values; the expression is kept alive, so that its id is not reused.
        self._known: dict[int, tuple[Expr, Values | None]] = {}

    def values(self, expr: Expr) -> Values | None:
        """Return the values of `expr`; None if it is not followed or has too many values."""
        known = self._known.get(id(expr))
        if known is None:
            # Division by zero has a value in the IR (0), so numpy must not warn about it.
            with np.errstate(all="ignore"):
                known = expr, self._computed(expr)
            self._known[id(expr)] = known
        return known[1]

    def _computed(self, expr: Expr) -> Values | None:
        dtype = expr.dtype
        if dtype.lanes != 1 or dtype.kind not in _KINDS:
            return None
        if len(self._axes) > _MAX_RANK:
            return None
        match expr:
            case IntImm(value=value) | FloatImm(value=value):
                return Values(np.array(value, to_numpy(dtype)), frozenset())
            case Var():
                return self._of_variable(expr)
        operator = array_operator(expr)
        return operator and self._applied(operator, *children(expr))

    def _of_variable(self, var: Var) -> Values | None:
        if var in self._lets:
            return self.values(self._lets[var])
        if var not in self._axes or len(self._axes[var]) > MAX_POINTS:
            return None
        # Extent 1 on the other axes: an array stores one value for each value of its own axes.
        shape = [1] * len(self._axes)
        shape[list(self._axes).index(var)] = -1
        values = np.array(self._axes[var], to_numpy(var.dtype))
        return Values(values.reshape(shape), frozenset((var,)))

    def _applied(self, operator: Callable[..., Array], *exprs: Expr) -> Values | None:
        operands: list[Values] = []
        for expr in exprs:
            found = self.values(expr)
            if found is None:
                return None
            operands.append(found)
        axes = frozenset[Var]().union(*(operand.axes for operand in operands))
        if math.prod(len(self._axes[axis]) for axis in axes) > MAX_POINTS:
            return None
        return Values(operator(*(operand.array for operand in operands)), axes)

"""Values of expressions at many points at once, out of the values of their operands.

The points are those of a tensor (`refcomp.oracle.tensors.evaluate`) or threads in step
(`refcomp.oracle.lockstep`). Both add their own rules for variables, reads and lazy choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr
from refcomp.oracle.interpreter.expressions import call_pure
from refcomp.oracle.interpreter.scalars import Scalar
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.arrays import Array


class IterationPoints(Protocol):
    """Points at which expressions have values."""

    @property
    def libraries(self) -> Sequence[str]:
        """Return the C libraries that are searched first."""

    def value(self, expr: Expr) -> Array:
        """Return the value of `expr` at all points."""


def _cast(points: IterationPoints, cast: ir.Cast) -> Array:
    return arrays.convert(points.value(cast.value), cast.dtype.element)


def _binary(points: IterationPoints, expr: ir.BinaryExpr) -> Array:
    operator = arrays.OPERATORS[type(expr)]
    return operator(points.value(expr.a), points.value(expr.b))


def _not(points: IterationPoints, expr: ir.Not) -> Array:
    return np.logical_not(points.value(expr.a))


def _select(points: IterationPoints, expr: ir.Select) -> Array:
    operands = (expr.condition, expr.true_value, expr.false_value)
    return np.where(*map(points.value, operands))


def _call(points: IterationPoints, expr: ir.Call) -> Array:
    operands = [points.value(arg) for arg in expr.args]
    source = expr.args[0].dtype.element
    return arrays.call(expr.name, operands, source, expr.dtype.element)


def _pure_extern(points: IterationPoints, expr: ir.PureExtern) -> Array:
    def call_c(*scalars: Array) -> Scalar:
        plain = [scalar.item() for scalar in scalars]
        return call_pure(expr, plain, points.libraries)

    operands = [points.value(arg) for arg in expr.numbers]
    return arrays.each(call_c, to_numpy(expr.dtype), *operands)


ELEMENTWISE: dict[type[Expr], Callable[[Any, Any], Array]] = {
    ir.Cast: _cast,
    **dict.fromkeys(arrays.OPERATORS, _binary),
    ir.Not: _not,
    ir.Select: _select,
    ir.Call: _call,
    ir.PureExtern: _pure_extern,
}

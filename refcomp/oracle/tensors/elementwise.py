"""The value of an expression at many points at once, out of its operands' values there.

For all that has values at points: those of a tensor (`refcomp.oracle.tensors.evaluate`), threads in
step (`refcomp.oracle.lockstep`). What a variable, a read or a lazy choice is, each says itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr
from refcomp.oracle.interpreter.calls import call_pure
from refcomp.oracle.tensors import arrays
from refcomp.oracle.tensors.arrays import Array


class IterationPoints(Protocol):
    """Where expressions have values. C functions are sought in `libraries` first."""

    @property
    def libraries(self) -> Sequence[str]: ...

    def value(self, expr: Expr) -> Array:
        """The value of `expr` at all points."""


def _cast(points: IterationPoints, cast: ir.Cast) -> Array:
    return arrays.convert(points.value(cast.value), cast.dtype.element)


def _binary(points: IterationPoints, expr: ir.BinaryExpr) -> Any:
    return arrays.OPERATORS[type(expr)](points.value(expr.a), points.value(expr.b))


def _not(points: IterationPoints, expr: ir.Not) -> Any:
    return np.logical_not(points.value(expr.a))


def _select(points: IterationPoints, expr: ir.Select) -> Any:
    operands = (expr.condition, expr.true_value, expr.false_value)
    return np.where(*map(points.value, operands))


def _call(points: IterationPoints, expr: ir.Call) -> Array:
    operands = [points.value(arg) for arg in expr.args]
    return arrays.call(
        expr.name, operands, expr.args[0].dtype.element, expr.dtype.element
    )


def _pure_extern(points: IterationPoints, expr: ir.PureExtern) -> Array:
    operands = [points.value(arg) for arg in expr.args]
    return arrays.each(
        lambda *scalars: call_pure(expr, [s.item() for s in scalars], points.libraries),
        to_numpy(expr.dtype),
        *operands,
    )


ELEMENTWISE: dict[type[Any], Callable[[Any, Any], Any]] = {
    ir.Cast: _cast,
    **dict.fromkeys(arrays.OPERATORS, _binary),
    ir.Not: _not,
    ir.Select: _select,
    ir.Call: _call,
    ir.PureExtern: _pure_extern,
}

"""Legal values of a tensor expression at many points at once.

Variables have exact values, or `local` values that carry an error. Reads are those of tensors, and
of the buffers of statements (`refcomp.oracle.floats.statements`). What an undecided condition or
index selects is not known (error inf). Other nodes are refused (Unsupported).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.expr import Expr, Var
from refcomp.oracle.floats import intrinsics
from refcomp.oracle.floats import operations as approx
from refcomp.oracle.floats.legal_values import Approx, exact, unbounded, zeros
from refcomp.oracle.floats.rounding import FALSE
from refcomp.oracle.tensors.arrays import OPERATORS, Array
from refcomp.oracle.tensors.evaluate import EvaluateError, check_range, constant
from refcomp.te.tensor import TensorRead


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """Elements of a tensor, at which expressions have values."""

    values: Mapping[Var, Array]  # of variables: arrays that broadcast to `shape`
    tensors: Mapping[Any, Approx]  # values of the tensors and buffers that are read
    shape: tuple[int, ...]
    name: str  # of the compute, for messages
    local: Mapping[Var, Approx] = field(default_factory=dict)  # variables with errors
    _known: dict[int, Approx] = field(default_factory=dict, init=False)  # by id

    def binding(self, values: Mapping[Var, Array]) -> Points:
        """Return the same points with more exact variables."""
        return replace(self, values={**self.values, **values})

    def named(self, name: str) -> Points:
        """Return the same points under another name."""
        return replace(self, name=name)

    def where(self, chosen: Array) -> Points:
        """Return the points at which `chosen` (bool, of this shape) holds, in one row."""
        row = {
            var: np.broadcast_to(value, self.shape)[chosen]
            for var, value in self.values.items()
        }
        local = {
            var: value.spread(self.shape)[chosen] for var, value in self.local.items()
        }
        count = int(chosen.sum())
        return replace(self, values=row, shape=(count,), local=local)

    def value(self, expr: Expr) -> Approx:
        """Return the values of `expr`; a shared subexpression is evaluated once."""
        key = id(expr)
        if key not in self._known:
            rule = _EXPRESSIONS.get(type(expr))
            if rule is None:
                raise Unsupported(
                    f"the errors of {type(expr).__name__} are not bounded"
                )
            self._known[key] = rule(self, expr)
        return self._known[key]

    def spread(self, expr: Expr) -> Approx:
        """Return the values of `expr` in fresh arrays of this shape."""
        return self.value(expr).spread(self.shape)


def _var(points: Points, var: Var) -> Approx:
    if var in points.local:
        return points.local[var]
    if var not in points.values:
        raise EvaluateError(f"variable {var.name} has no value in {points.name}")
    return exact(points.values[var], var.dtype)


def _immediate(_points: Points, imm: ir.IntImm | ir.FloatImm) -> Approx:
    return exact(constant(imm.value, imm), imm.dtype)


def _cast(points: Points, cast: ir.Cast) -> Approx:
    value = points.value(cast.value)
    return approx.convert(value, cast.value.dtype, cast.dtype)


def _binary(points: Points, expr: ir.BinaryExpr) -> Approx:
    a = points.value(expr.a)
    b = points.value(expr.b)
    return approx.binary(type(expr), a, b, expr.a.dtype)


def _not(points: Points, expr: ir.Not) -> Approx:
    operand = points.value(expr.a)
    return replace(operand, value=np.logical_not(operand.value))


def _select(points: Points, expr: ir.Select) -> Approx:
    operands = (expr.condition, expr.true_value, expr.false_value)
    return approx.choose(*map(points.value, operands))


def _if_then_else(points: Points, expr: ir.IfThenElseExpr) -> Approx:
    """Evaluate each branch where it is chosen. An undecided choice is not known."""
    condition = points.spread(expr.condition)
    result = zeros(points.shape, expr.dtype)
    unrounded = zeros(points.shape, expr.dtype)
    has_products = False
    branches = (
        (condition.value, expr.true_value),
        (~condition.value, expr.false_value),
    )
    for chosen, branch in branches:
        if chosen.any():
            found = points.where(chosen).spread(branch)
            result[chosen] = found
            unrounded[chosen] = found.unrounded
            has_products |= found.contracted is not None
    if has_products:
        result = replace(result, contracted=unrounded)
    return unbounded(result, ~condition.is_exact)


def _let(points: Points, let: ir.Let) -> Approx:
    local = {**points.local, let.var: points.value(let.value)}
    return replace(points, local=local).value(let.body)


def _call(points: Points, expr: ir.Call) -> Approx:
    operands = [points.value(arg) for arg in expr.args]
    dtype = expr.args[0].dtype
    return intrinsics.call(expr.name, operands, dtype, expr.dtype)


def _read(points: Points, read: TensorRead) -> Approx:
    indices = [points.value(index) for index in read.indices]
    tensor = points.tensors[read.tensor]
    shape = tensor.value.shape
    undecided = _undecided(indices)
    if not undecided.any():
        values = tuple(index.value for index in indices)
        check_range(points.name, read, values, shape)
        return tensor.at(values, shape)
    return _element(tensor.spread(shape), indices, undecided)


def _load(points: Points, load: BufferLoad) -> Approx:
    indices = [points.value(index) for index in load.indices]
    return _element(points.tensors[load.buffer], indices, _undecided(indices))


def _undecided(indices: Sequence[Approx]) -> Array:
    """Return where it is not known which element is read."""
    if all(index.is_given for index in indices):
        return FALSE
    return reduce(or_, [~index.is_exact for index in indices], FALSE)


def _element(whole: Approx, indices: Sequence[Approx], undecided: Array) -> Approx:
    extents = whole.value.shape
    place = tuple(
        np.clip(index.value, 0, extent - 1)
        for index, extent in zip(indices, extents, strict=True)
    )
    element = whole[place]
    return unbounded(element, undecided) if undecided.any() else element


_EXPRESSIONS: dict[type[Expr], Callable[[Points, Any], Approx]] = {
    Var: _var,
    ir.IntImm: _immediate,
    ir.FloatImm: _immediate,
    ir.Cast: _cast,
    **dict.fromkeys(OPERATORS, _binary),
    ir.Not: _not,
    ir.Select: _select,
    ir.IfThenElseExpr: _if_then_else,
    ir.Let: _let,
    ir.Call: _call,
    TensorRead: _read,
    BufferLoad: _load,
}


def is_plain(expr: Expr) -> bool:
    """Return True if `value` evaluates this kind of node, and it is not an intrinsic."""
    return type(expr) in _EXPRESSIONS and not isinstance(expr, ir.Call)

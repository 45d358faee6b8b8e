"""What a tensor expression is worth, known up to an error, at many points at once.

Needs values of its variables: exact ones, and `local` ones that carry an error. Reads tensors, and
buffers of statements (`refcomp.oracle.floats.statements`). What an undecided condition or
index chooses is not known (error inf). Refuses nodes of no tensor expression (Unsupported).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.expr import Expr, Var
from refcomp.oracle.floats import intrinsics
from refcomp.oracle.floats import operations as approx
from refcomp.oracle.floats.legal_values import Approx, exact, lost, zeros
from refcomp.oracle.tensors.arrays import OPERATORS, Array
from refcomp.oracle.tensors.evaluate import EvaluateError, check_range, constant
from refcomp.te.tensor import TensorRead


class Points:
    """Values of variables at some points, as arrays that broadcast to `shape`; `local` has those
    of variables that are known up to an error, `tensors` what is read: of tensors and buffers."""

    def __init__(
        self,
        values: Mapping[Var, Array],
        tensors: Mapping[Any, Approx],
        shape: tuple[int, ...],
        name: str,
        local: Mapping[Var, Approx] | None = None,
    ) -> None:
        self.values, self.tensors, self.shape, self.name = values, tensors, shape, name
        self.local = local or {}
        self.memo: dict[int, Approx] = {}

    def where(self, chosen: Array) -> Points:
        """The points at which `chosen` (bool, of this shape) holds, in one row."""
        flat = {
            v: np.broadcast_to(a, self.shape)[chosen] for v, a in self.values.items()
        }
        local = {v: a.spread(self.shape)[chosen] for v, a in self.local.items()}
        return Points(flat, self.tensors, (int(chosen.sum()),), self.name, local)

    def value(self, expr: Expr) -> Approx:
        """The expression at all these points; a shared subexpression is evaluated once."""
        key = id(expr)
        if key not in self.memo:
            rule = _EXPRESSIONS.get(type(expr))
            if rule is None:
                raise Unsupported(
                    f"the errors of {type(expr).__name__} are not bounded"
                )
            self.memo[key] = rule(self, expr)
        return self.memo[key]


def _var(points: Points, var: Var) -> Approx:
    if var in points.local:
        return points.local[var]
    if var not in points.values:
        raise EvaluateError(f"variable {var.name} has no value in {points.name}")
    return exact(points.values[var], var.dtype)


def _immediate(_points: Points, imm: ir.IntImm | ir.FloatImm) -> Approx:
    return exact(constant(imm.value, imm), imm.dtype)


def _cast(points: Points, cast: ir.Cast) -> Approx:
    return approx.convert(points.value(cast.value), cast.value.dtype, cast.dtype)


def _binary(points: Points, expr: ir.BinaryExpr) -> Approx:
    return approx.binary(
        type(expr), points.value(expr.a), points.value(expr.b), expr.a.dtype
    )


def _not(points: Points, expr: ir.Not) -> Approx:
    operand = points.value(expr.a)
    return replace(operand, value=np.logical_not(operand.value))


def _select(points: Points, expr: ir.Select) -> Approx:
    return approx.choose(
        *map(points.value, (expr.condition, expr.true_value, expr.false_value))
    )


def _if_then_else(points: Points, expr: ir.IfThenElseExpr) -> Approx:
    """Only what is chosen is evaluated; where that is undecided, nothing is known."""
    condition = points.value(expr.condition).spread(points.shape)
    result, unrounded = zeros(points.shape, expr.dtype), zeros(points.shape, expr.dtype)
    has_products = False
    for chosen, branch in (
        (condition.value, expr.true_value),
        (~condition.value, expr.false_value),
    ):
        if chosen.any():
            within = points.where(chosen)
            found = within.value(branch).spread(within.shape)
            result[chosen], unrounded[chosen] = found, found.unrounded
            has_products |= found.contracted is not None
    result = replace(result, contracted=unrounded) if has_products else result
    return lost(result, condition.error > 0)


def _let(points: Points, let: ir.Let) -> Approx:
    local = {**points.local, let.var: points.value(let.value)}
    within = Points(points.values, points.tensors, points.shape, points.name, local)
    return within.value(let.body)


def _call(points: Points, expr: ir.Call) -> Approx:
    operands = [points.value(arg) for arg in expr.args]
    return intrinsics.call(expr.name, operands, expr.args[0].dtype, expr.dtype)


def _read(points: Points, read: TensorRead) -> Approx:
    indices = [points.value(index) for index in read.indices]
    tensor = points.tensors[read.tensor]
    shape = tensor.value.shape
    unsure = _is_unsure(indices)
    if not unsure.any():
        check_range(points.name, read, [i.value for i in indices], shape)
    return _element(tensor.spread(shape), indices, unsure)


def _load(points: Points, load: BufferLoad) -> Approx:
    indices = [points.value(index) for index in load.indices]
    return _element(points.tensors[load.buffer], indices, _is_unsure(indices))


def _is_unsure(indices: Sequence[Approx]) -> Any:
    """Where it is not known which element is read."""
    return np.logical_or.reduce(
        np.broadcast_arrays(*[i.error > 0 for i in indices], np.False_)
    )


def _element(whole: Approx, indices: Sequence[Approx], unsure: Any) -> Approx:
    extents = whole.value.shape
    at = tuple(
        np.clip(i.value, 0, extent - 1)
        for i, extent in zip(indices, extents, strict=True)
    )
    return lost(whole[at], unsure) if unsure.any() else whole[at]


_EXPRESSIONS: dict[type[Any], Callable[[Points, Any], Approx]] = {
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

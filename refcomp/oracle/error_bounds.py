"""Evaluates tensor expressions with a bound, per element, of the error of any legal evaluation.

    found = bound_errors([C], {A: a, B: b})[0]
    # every legal C lies within found.error of found.value

Legal is what rounds to nearest in the dtype of each node, or leaves roundings out by contracting
a product and a sum; combines the terms of a reduction in any order (with `Licence.reassociate`)
or in that of its axes; and keeps the ulp bounds of the intrinsics. What travels through an
expression stands in `refcomp.oracle.approximate`.

Sums of n terms t in any order make n - 1 local errors, each at most half an ulp of a partial sum.
A partial sum, of whatever terms, is no greater than the positive or the negative terms together:
Note [Sums in any order]. In the order of the axes each local error is that of its own partial sum
(Higham, section 3.3), and the least and the greatest legal sum are followed step by step: Note
[Sums in order]. Products in any order: (1 + u)^(n - 1) (section 3.1). Minima and maxima do
not round. Reducers of the user's own are bounded in the order of their axes; where the order is
free and they are not made of these, nothing is known of the result.
Refuses scans and extern operations (Unsupported), and reads out of range (EvaluateError).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refcomp.dtype import DType
from refcomp.errors import Unsupported
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, Var
from refcomp.oracle import approximate as approx
from refcomp.oracle.approximate import WIDE, Approx, exact
from refcomp.oracle.arrays import OPERATORS, Array, convert
from refcomp.oracle.evaluate import (
    EvaluateError,
    bind_feeds,
    check_range,
    constant,
    grid_of,
    reduction_steps,
    shape_of,
)
from refcomp.oracle.sums import Products, Sums
from refcomp.python_limits import deep_recursion
from refcomp.te.operation import ComputeOp, Operation, PlaceholderOp, reachable_operations
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import Tensor, TensorRead

_INFLATION = 1 + 2.0**-30  # the bounds themselves are computed in f64, and rounded


@dataclass(frozen=True, slots=True)
class Licence:
    """What an evaluation may do: `reassociate` the terms of a reduction; add up floats in another
    dtype, `accumulate`, than the reduction's own and round at the end."""

    reassociate: bool = True
    accumulate: DType | None = None


@dataclass(frozen=True, slots=True)
class Bounded:
    """The elements of one tensor: the reference `value` (long double for floats), the greatest
    `error` of a legal one, whether a branch or an overflow is in doubt, and the condition number
    of what was added up (1: no cancellation; inf: all of it)."""

    dtype: DType
    value: Any
    error: Any
    doubtful: Any
    condition: Any

    @property
    def nearest(self) -> Any:
        """The reference rounded once to the tensor's dtype."""
        if not self.dtype.is_float:
            return self.value
        with np.errstate(all="ignore"):
            wide = self.value.astype(np.float64) if self.dtype.bits < 64 else self.value
            return convert(wide, self.dtype)

    @property
    def condition_is_lost(self) -> Any:
        """Where terms cancel so far that a legal value may have either sign, or be 0."""
        return (self.condition > 1) & (self.error >= np.abs(self.value))


@deep_recursion()
def bound_errors(
    outputs: Sequence[Tensor],
    feeds: Mapping[Tensor, Array],
    scalars: Mapping[Var, Any] | None = None,
    licence: Licence = Licence(),
) -> list[Bounded]:
    """The Bounded of each of `outputs`. `feeds` gives the placeholders they need, exactly, and may
    give computed tensors, which are then taken as they are; `scalars` as `evaluate` takes them.
    Raises UserError, EvaluateError as it does; Unsupported."""
    operations = _operations(outputs, feeds)
    values = {var: constant(value, var) for var, value in (scalars or {}).items()}
    arrays: dict[Tensor, Array] = {}
    with np.errstate(all="ignore"):
        bind_feeds(_given(operations, feeds), feeds, values, arrays)
        known = {tensor: exact(array, tensor.dtype) for tensor, array in arrays.items()}
        for op in operations:
            if not all(tensor in known for tensor in op.outputs):
                known.update(zip(op.outputs, _compute(op, values, known, licence), strict=True))
        return [_to_bounded(known[tensor], tensor, values) for tensor in outputs]


def _operations(outputs: Sequence[Tensor], feeds: Mapping[Tensor, Array]) -> list[Operation]:
    """What is needed, producers first; nothing behind a computed tensor that is given."""
    needed = {tensor.op for tensor in outputs}
    order = reachable_operations(needed)
    for op in reversed(order):
        if op in needed and not all(tensor in feeds for tensor in op.outputs):
            needed.update(tensor.op for tensor in op.inputs)
    return [op for op in order if op in needed]


def _given(operations: Sequence[Operation], feeds: Mapping[Tensor, Array]) -> list[Tensor]:
    return [
        tensor
        for op in operations
        for tensor in op.outputs
        if isinstance(op, PlaceholderOp) or tensor in feeds
    ]


def _to_bounded(result: Approx, tensor: Tensor, values: Mapping[Var, Array]) -> Bounded:
    full = result.spread(shape_of(tensor, values))
    magnitude, size = full.magnitude, np.abs(full.value)
    if not tensor.dtype.is_float:
        condition: Any = np.ones(full.value.shape)
    else:
        ratio = np.where(magnitude == 0, 1.0, magnitude / size)
        condition = np.where(np.isfinite(full.value), ratio, 1.0).astype(np.float64)
    return Bounded(tensor.dtype, full.value, full.error * _INFLATION, full.doubtful, condition)


def _compute(
    op: Operation,
    values: Mapping[Var, Array],
    known: Mapping[Tensor, Approx],
    licence: Licence,
) -> list[Approx]:
    if not isinstance(op, ComputeOp):
        raise Unsupported(
            f"the errors of {op.name}, {op.what}, are not bounded",
            why="bounds are known of computes only",
            remedy="give its values among the feeds, and judge what is around it",
        )
    shape = shape_of(op.outputs[0], values)
    if 0 in shape:
        zero = np.zeros(shape)
        return [Approx(zero.astype(WIDE), zero, zero != 0, zero) for _ in op.outputs]
    points = _Points({**values, **dict(grid_of(op.axis, shape))}, known, shape, op.name)
    if op.reduction is not None:
        return _reduce(op.reduction, points, licence)
    return [points.value(body).spread(shape) for body in op.body]


# Reductions.


def _reduce(reduce: Reduce, points: _Points, licence: Licence) -> list[Approx]:
    """Each result by the rule of its combiner; by the combiner itself where it has none."""
    gathered = [_gatherer(reduce, k, points.shape, licence) for k in range(len(reduce.sources))]
    results = [
        points.value(identity).spread(points.shape) for identity in reduce.reducer.identities
    ]
    unsure = np.zeros(points.shape, np.bool_)
    for step in reduction_steps(reduce.axes, points.values):
        here = _Points({**points.values, **step}, points.tensors, points.shape, points.name)
        condition = here.value(reduce.condition).spread(points.shape)
        unsure |= condition.error > 0
        chosen = condition.value
        if not chosen.any():
            continue
        part, within = (..., here) if chosen.all() else (chosen, here.where(chosen))
        sources = [within.value(s).spread(within.shape) for s in reduce.sources]
        for gatherer, source in zip(gathered, sources, strict=True):
            if gatherer is not None:
                gatherer.add(source, part)
        if not all(gathered):
            _combine(reduce, results, sources, part, within)
    free = licence.reassociate and any(map(_rounds, reduce.reducer.results))
    found = [
        gatherer.result() if gatherer is not None else _if_ordered(result, free)
        for gatherer, result in zip(gathered, results, strict=True)
    ]
    return [_lost(result, unsure) for result in found]


def _gatherer(reduce: Reduce, k: int, shape: tuple[int, ...], licence: Licence) -> Any:
    """What adds up, or multiplies, the terms of result k; None where it is another function."""
    reducer, dtype = reduce.reducer, reduce.sources[k].dtype
    body, own = reducer.results[k], {reducer.lhs[k], reducer.rhs[k]}
    if not dtype.is_float or not isinstance(body, ir.Binary) or {body.a, body.b} != own:
        return None
    if isinstance(body, ir.Add):
        return Sums(shape, dtype, licence.reassociate, licence.accumulate)
    if isinstance(body, ir.Mul) and licence.reassociate:
        return Products(shape, dtype)
    return None


def _combine(
    reduce: Reduce, results: list[Approx], sources: Sequence[Approx], part: Any, within: _Points
) -> None:
    """One step, in the order of the axes."""
    reducer = reduce.reducer
    local = dict(zip(reducer.lhs, (result.at(part) for result in results), strict=True))
    local |= zip(reducer.rhs, sources, strict=True)
    combined = _Points({}, {}, within.shape, within.name, local)
    fresh = [combined.value(body).spread(within.shape) for body in reducer.results]
    for result, value in zip(results, fresh, strict=True):
        result.value[part], result.error[part] = value.value, value.error
        result.doubtful[part], result.magnitude[part] = value.doubtful, value.magnitude


def _rounds(body: Expr) -> bool:
    """Whether combining floats by `body` may round, so that the order shows."""
    return body.dtype.is_float and isinstance(body, _ROUNDING)


_ROUNDING = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Cast, ir.Call, ir.PureExtern)


def _if_ordered(result: Approx, free: bool) -> Approx:
    return _lost(result, np.True_) if free else result


def _lost(result: Approx, where: Any) -> Approx:
    """`result`, of which nothing is known at `where`."""
    error, doubtful = np.where(where, np.inf, result.error), result.doubtful | where
    return replace(result, error=error, doubtful=doubtful)


# Expressions.


class _Points:
    """Values of variables at some points, as arrays that broadcast to `shape`; `local` has those
    of variables that are known up to an error."""

    def __init__(
        self,
        values: Mapping[Var, Array],
        tensors: Mapping[Tensor, Approx],
        shape: tuple[int, ...],
        name: str,
        local: Mapping[Var, Approx] | None = None,
    ) -> None:
        self.values, self.tensors, self.shape, self.name = values, tensors, shape, name
        self.local = local or {}
        self.memo: dict[int, Approx] = {}

    def where(self, chosen: Array) -> _Points:
        """The points at which `chosen` (bool, of this shape) holds, in one row."""
        flat = {v: np.broadcast_to(a, self.shape)[chosen] for v, a in self.values.items()}
        local = {v: a.spread(self.shape).at(chosen) for v, a in self.local.items()}
        return _Points(flat, self.tensors, (int(chosen.sum()),), self.name, local)

    def value(self, expr: Expr) -> Approx:
        """The expression at all these points; a shared subexpression is evaluated once."""
        key = id(expr)
        if key not in self.memo:
            rule = _EXPRESSIONS.get(type(expr))
            if rule is None:
                raise Unsupported(f"the errors of {type(expr).__name__} are not bounded")
            self.memo[key] = rule(self, expr)
        return self.memo[key]


def _var(points: _Points, var: Var) -> Approx:
    if var in points.local:
        return points.local[var]
    if var not in points.values:
        raise EvaluateError(f"variable {var.name} has no value in {points.name}")
    return exact(points.values[var], var.dtype)


def _immediate(_points: _Points, imm: ir.IntImm | ir.FloatImm) -> Approx:
    return exact(constant(imm.value, imm), imm.dtype)


def _cast(points: _Points, cast: ir.Cast) -> Approx:
    return approx.convert(points.value(cast.value), cast.value.dtype, cast.dtype)


def _binary(points: _Points, expr: ir.Binary) -> Approx:
    return approx.binary(type(expr), points.value(expr.a), points.value(expr.b), expr.a.dtype)


def _not(points: _Points, expr: ir.Not) -> Approx:
    operand = points.value(expr.a)
    return replace(operand, value=np.logical_not(operand.value))


def _select(points: _Points, expr: ir.Select) -> Approx:
    return approx.choose(*map(points.value, (expr.condition, expr.true_value, expr.false_value)))


def _if_then_else(points: _Points, expr: ir.IfThenElseExpr) -> Approx:
    """Only what is chosen is evaluated; where that is undecided, nothing is known."""
    condition = points.value(expr.condition).spread(points.shape)
    zero = np.zeros(points.shape)
    value = zero.astype(WIDE) if expr.dtype.is_float else zero.astype(expr.dtype.dtype)
    result = Approx(value, zero.copy(), zero != 0, zero.astype(WIDE))
    for chosen, branch in (
        (condition.value, expr.true_value),
        (~condition.value, expr.false_value),
    ):
        if chosen.any():
            within = points.where(chosen)
            part = within.value(branch).spread(within.shape)
            result.value[chosen], result.error[chosen] = part.value, part.error
            result.doubtful[chosen], result.magnitude[chosen] = part.doubtful, part.magnitude
    return _lost(result, condition.error > 0)


def _let(points: _Points, let: ir.Let) -> Approx:
    local = {**points.local, let.var: points.value(let.value)}
    within = _Points(points.values, points.tensors, points.shape, points.name, local)
    return within.value(let.body)


def _call(points: _Points, expr: ir.Call) -> Approx:
    operands = [points.value(arg) for arg in expr.args]
    return approx.call(expr.name, operands, expr.args[0].dtype, expr.dtype)


def _read(points: _Points, read: TensorRead) -> Approx:
    indices = [points.value(index) for index in read.indices]
    tensor = points.tensors[read.tensor]
    shape = tensor.value.shape
    lost = np.logical_or.reduce(np.broadcast_arrays(*[i.error > 0 for i in indices], np.False_))
    if not lost.any():
        check_range(points.name, read, [i.value for i in indices], shape)
    at = tuple(np.clip(i.value, 0, extent - 1) for i, extent in zip(indices, shape, strict=True))
    found = tensor.spread(shape).at(at)
    return _lost(found, lost) if lost.any() else found


_EXPRESSIONS: dict[type[Any], Callable[[_Points, Any], Approx]] = {
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
}


# Note [Sums in any order]
# ~~~~~~~~~~~~~~~~~~~~~~~~
# The error of a sum is the sum of what each addition rounds off, whatever the tree. Terms that are
# 0 add nothing. Let P be the sum of the positive terms, N of the negative ones' sizes, A = P + N.
# The exact sum of any part of the terms lies in [-N, P], and the computed one is off by at most
# (n - 1) u A, in any order and for any n (S. M. Rump, Error estimation of floating-point summation
# and dot product, BIT 52, 2012; Higham's gamma_(n-1) A of section 4.2 is a little more). So each
# of the n - 1 additions rounds off at most half an ulp of max(P, N) + (n - 1) u A, and all of them
# at most (n - 1) u A. Whole multiples of some power of two whose A has few enough digits are added
# exactly. Errors of the terms themselves are added, and counted in P and N.


# Note [Sums in order]
# ~~~~~~~~~~~~~~~~~~~~
# Rounding to nearest keeps the order of numbers, and so does adding. If all legal values of a
# partial sum lie in [l, h], and those of the next term, rounded or contracted, in [t - e, t + e],
# then those of the next partial sum lie between l + (t - e) and h + (t + e), both rounded. The ends
# are thus computed as the program computes the sum, with the same roundings; only what is free, a
# contraction, drives them apart. So the bound is about the error that was made, where half an ulp
# for each addition is what could have been made at worst: for n terms about sqrt(n) times as much.
# That running bound still holds, and the lesser of both is taken.

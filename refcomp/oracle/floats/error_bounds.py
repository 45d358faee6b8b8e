"""Evaluates tensor expressions with a bound, per element, of the error of any legal evaluation.

    found = bound_errors([C], {A: a, B: b})[0]
    # every legal C lies within found.error of found.value

Legal is what rounds to nearest in the dtype of each node, or leaves roundings out by contracting
a product and a sum; combines the terms of a reduction in any order (with `Licence.reassociate`)
or in that of its axes; and keeps the ulp bounds of the intrinsics. What travels through an
expression stands in `refcomp.oracle.floats.operations`.

Sums of n terms t in any order make n - 1 local errors, each at most half an ulp of a partial sum.
A partial sum, of whatever terms, is no greater than the positive or the negative terms together:
Note [Sums in any order]. No term is lost to underflow: sums of subnormals are exact, and
contracted products have their own half of the smallest subnormal among the errors of the terms.
In the order of the axes each local error is that of its own partial sum (Higham, section 3.3), and
the least and the greatest legal sum are followed step by step: Note [Sums in order]. Products in
any order: (1 + u)^(n - 1) (section 3.1) and underflow, Note [Products in any order]. Minima and
maxima do not round. Reducers of the user's own are bounded in the order of their axes; where the
order is free and they are not made of these, nothing is known of the result. Scans are bounded row
by row, loops of extern operations in the order that they are written in
(`refcomp.oracle.floats.statements`). Refuses reads out of range (EvaluateError).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, Var
from refcomp.oracle.floats.expressions import Points
from refcomp.oracle.floats.legal_values import (
    NO_OTHERS,
    Approx,
    code_of,
    exact,
    join,
    lost,
    zeros,
)
from refcomp.oracle.floats.rounding import WIDE, to_dtype
from refcomp.oracle.floats.statements import approximate_extern
from refcomp.oracle.floats.sums import Products, Sums
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.evaluate import (
    bind_feeds,
    check_request,
    constant,
    elements_of,
    given_tensors,
    reduction_steps,
    shape_of,
)
from refcomp.oracle.tensors.scan import run_scan
from refcomp.te.extern import ExternOp
from refcomp.te.operation import (
    ComputeOp,
    Operation,
    reachable_operations,
)
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import Tensor

_INFLATION = WIDE(1 + 2.0**-30)  # the bounds themselves are rounded to WIDE


@dataclass(frozen=True, slots=True)
class Licence:
    """What an evaluation may do: `reassociate` the terms of a reduction; add up floats in another
    dtype, `accumulate`, than the reduction's own and round at the end."""

    reassociate: bool = True
    accumulate: DType | None = None


@dataclass(frozen=True, slots=True)
class Bounded:
    """Legal values of the elements of one tensor.

    Attributes:
        dtype: that of the tensor. value: the reference, a long double for floats. error: the
        greatest distance of a legal finite value from it, a long double. doubtful: bool; the error
        holds because of a branch or a jump that rounding decides. condition: condition number of
        what was added up (1: no cancellation; inf: all of it). others: bits
        (`refcomp.oracle.floats.legal_values`) of infinities and NaN that are legal, too.
    """

    dtype: DType
    value: Any
    error: Any
    doubtful: Any
    condition: Any
    others: Any = NO_OTHERS

    @property
    def nearest(self) -> Any:
        """The reference rounded once to the tensor's dtype."""
        if not self.dtype.is_float:
            return self.value
        with np.errstate(all="ignore"):
            return to_dtype(self.value, self.dtype)

    @property
    def condition_is_lost(self) -> Any:
        """Where terms cancel so far that a legal value may have either sign, or be 0."""
        return (self.condition > 1) & (self.error >= np.abs(self.value))

    def allows(self, actual: Any) -> Any:
        """Return where `actual` is an infinity or NaN that is legal beside the interval."""
        return (code_of(actual) & self.others) != 0


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
    check_request(outputs, feeds, scalars)
    operations = _operations(outputs, feeds)
    values = {var: constant(value, var) for var, value in (scalars or {}).items()}
    arrays: dict[Tensor, Array] = {}
    with np.errstate(all="ignore"):
        bind_feeds(given_tensors(operations, feeds), feeds, values, arrays)
        known = {tensor: exact(array, tensor.dtype) for tensor, array in arrays.items()}
        _Bounds(values, known, licence).add(operations)
        return [_to_bounded(known[tensor], tensor, values) for tensor in outputs]


def _operations(
    outputs: Sequence[Tensor], feeds: Mapping[Tensor, Array]
) -> list[Operation]:
    """What is needed, producers first; nothing behind a computed tensor that is given."""
    needed = {tensor.op for tensor in outputs}
    order = reachable_operations(needed)
    for op in reversed(order):
        if op in needed and not all(tensor in feeds for tensor in op.outputs):
            needed.update(tensor.op for tensor in op.inputs)
    return [op for op in order if op in needed]


def _to_bounded(result: Approx, tensor: Tensor, values: Mapping[Var, Array]) -> Bounded:
    full = result.spread(shape_of(tensor, values))
    magnitude, size = full.magnitude, np.abs(full.value)
    if not tensor.dtype.is_float:
        condition: Any = np.ones(full.value.shape)
    else:
        ratio = np.where(magnitude == 0, 1.0, magnitude / size)
        condition = np.where(np.isfinite(full.value), ratio, 1.0).astype(np.float64)
    error = full.error * _INFLATION
    return Bounded(
        tensor.dtype, full.value, error, full.doubtful, condition, full.others
    )


class _Bounds:
    """What is `known` of tensors so far."""

    def __init__(
        self, values: Mapping[Var, Array], known: dict[Tensor, Approx], licence: Licence
    ) -> None:
        self.values, self.known, self.licence = values, known, licence

    def add(self, operations: Sequence[Operation]) -> None:
        """Adds the outputs of operations, producers first, unless they are known."""
        scans = [op for op in operations if isinstance(op, ScanOp)]
        by_row = {inner for op in scans for inner in op.body_operations()}
        for op in operations:
            if all(tensor in self.known for tensor in op.outputs):
                continue
            if op in by_row:  # computed with its scan, row by row
                for tensor in op.outputs:
                    self.known[tensor] = zeros(
                        shape_of(tensor, self.values), tensor.dtype
                    )
            elif isinstance(op, ScanOp):
                self._add_scan(op)
            elif isinstance(op, ExternOp):
                found = approximate_extern(op, self.values, self.known)
                self.known.update(zip(op.outputs, found, strict=True))
            elif isinstance(op, ComputeOp):
                self.known.update(zip(op.outputs, self._compute(op), strict=True))

    def _add_scan(self, op: ScanOp) -> None:
        dtypes = {id(self.known[tensor]): tensor.dtype for tensor in op.update}
        for tensor in op.init:
            self.known[tensor] = self.known[tensor].spread(
                shape_of(tensor, self.values)
            )

        def zeros_like(rows: Approx) -> Approx:
            return zeros(rows.value.shape, dtypes[id(rows)])

        run_scan(op, self.known, self._compute, zeros_like)

    def _compute(self, op: ComputeOp, row: int | None = None) -> list[Approx]:
        """The tensors of `op`; with `row`, only that one of their rows."""
        shape, values = elements_of(op, self.values, row)
        if 0 in shape:
            return [zeros(shape, tensor.dtype) for tensor in op.outputs]
        points = Points(values, self.known, shape, op.name)
        if op.reduction is not None:
            return _reduce(op.reduction, points, self.licence)
        return [points.value(body).spread(shape) for body in op.body]


# Reductions.


def _reduce(reduce: Reduce, points: Points, licence: Licence) -> list[Approx]:
    """Each result by the rule of its combiner; by the combiner itself where it has none."""
    gathered = [
        _gatherer(reduce, k, points.shape, licence) for k in range(len(reduce.sources))
    ]
    results = [
        points.value(identity).spread(points.shape)
        for identity in reduce.reducer.identities
    ]
    free = licence.reassociate and any(map(_rounds, reduce.reducer.results))
    unsure = np.zeros(points.shape, np.bool_)
    for step in reduction_steps(reduce.axes, points.values):
        here = Points(
            {**points.values, **step}, points.tensors, points.shape, points.name
        )
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
            _combine(
                reduce, results, sources, part, within, licence.reassociate and not free
            )
    found = [
        gatherer.result() if gatherer is not None else _if_ordered(result, free)
        for gatherer, result in zip(gathered, results, strict=True)
    ]
    return [lost(result, unsure) for result in found]


def _gatherer(reduce: Reduce, k: int, shape: tuple[int, ...], licence: Licence) -> Any:
    """What adds up, or multiplies, the terms of result k; None where it is another function."""
    reducer, dtype = reduce.reducer, reduce.sources[k].dtype
    body, own = reducer.results[k], {reducer.lhs[k], reducer.rhs[k]}
    if (
        not dtype.is_float
        or not isinstance(body, ir.BinaryExpr)
        or {body.a, body.b} != own
    ):
        return None
    if isinstance(body, ir.Add):
        return Sums(shape, dtype, licence.reassociate, licence.accumulate)
    if isinstance(body, ir.Mul) and licence.reassociate:
        return Products(shape, dtype)
    return None


def _combine(
    reduce: Reduce,
    results: list[Approx],
    sources: Sequence[Approx],
    part: Any,
    within: Points,
    in_both_orders: bool,
) -> None:
    """Do one step, in the order of the axes. What never rounds shows another order only in the sign
    of a zero, and in comparisons with NaN."""
    reducer = reduce.reducer
    found = [result[part] for result in results]
    fresh = _combined(reducer, found, sources, within)
    if in_both_orders and any(map(_shows_order, found, sources)):
        swapped = _combined(reducer, sources, found, within)
        fresh = [join(a, b, np.True_) for a, b in zip(fresh, swapped, strict=True)]
    for result, value in zip(results, fresh, strict=True):
        result[part] = value.spread(within.shape)


def _shows_order(a: Approx, b: Approx) -> bool:
    is_zero = (a.value == 0) & (b.value == 0)
    is_nan = (a.value != a.value) | (b.value != b.value)
    return bool(np.any(is_zero | is_nan))


def _combined(
    reducer: CommReducer, lhs: Sequence[Approx], rhs: Sequence[Approx], within: Points
) -> list[Approx]:
    local = dict(zip((*reducer.lhs, *reducer.rhs), (*lhs, *rhs), strict=True))
    combined = Points({}, {}, within.shape, within.name, local)
    return [combined.value(body).spread(within.shape) for body in reducer.results]


def _rounds(body: Expr) -> bool:
    """Whether combining floats by `body` may round, so that the order shows."""
    return body.dtype.is_float and isinstance(body, _ROUNDING)


_ROUNDING = (ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod, ir.Cast, ir.Call, ir.PureExtern)


def _if_ordered(result: Approx, free: bool) -> Approx:
    return lost(result, np.True_) if free else result


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


# Note [Sums that may overflow]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# Rounding and adding are monotone, so a partial sum is at most that of its positive terms alone, in
# the same tree, which rounds to (1 + (p - 1) u) P at most, of p terms. Where that reaches the limit
# of overflow some tree may become inf, where the same of N does -inf, where both do NaN; all others
# stay finite, and within the error. No tree is finite where the sum of all terms is beyond the
# limit by more than its error. In the order of the axes the ends of each partial sum are known;
# once both are infinite, no sum is finite any more. A product that overflows may be contracted into
# the sum, and then counts with its value; that makes P or N reach the limit, so that its infinity
# is legal, too. With another dtype for the sums, the lesser limit says what may overflow, the
# greater one what must.


# Note [Products in any order]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# A partial product lies between the product of the sizes below 1 and that of those above 1, the
# latter called `above`. One rounding is off by u times its result, or by half the smallest
# subnormal, eta / 2, where that is below the normal numbers. The further factors multiply such an
# error by `above` at most. So n - 1 roundings add (1 + u)^(n - 1) - 1 times the product, and
# (n - 1) (1 + u)^(n - 1) above eta / 2 where a partial product may be subnormal. One that
# overflows is infinite to the end, or NaN once it meets a factor, or partial product, of 0.


# Note [Sums in order]
# ~~~~~~~~~~~~~~~~~~~~
# Rounding to nearest keeps the order of numbers, and so does adding. If all legal values of a
# partial sum lie in [l, h], and those of the next term, rounded or contracted, in [t - e, t + e],
# then those of the next partial sum lie between l + (t - e) and h + (t + e), both rounded. The ends
# are thus computed as the program computes the sum, with the same roundings; only what is free, a
# contraction, drives them apart. So the bound is about the error that was made, where half an ulp
# for each addition is what could have been made at worst: for n terms about sqrt(n) times as much.
# That running bound still holds, and the lesser of both is taken.

"""Evaluates tensor expressions with a bound, per element, of the error of any legal evaluation.

    found = bound_errors([C], {A: a, B: b})[0]
    # every legal C lies within found.error of found.value

A legal evaluation

- rounds to nearest in the dtype of each node, or leaves roundings out by contracting a product and
  a sum into a fused multiply-add;
- combines the terms of a reduction in any order (with `Licence.reassociate`), or in that of its
  axes;
- keeps the ulp bounds of the intrinsics.

`refcomp.oracle.floats.operations` explains how errors propagate through an expression.
`refcomp.oracle.floats.sums` bounds sums and products of many terms, in any order and in that of the
axes. Minima and maxima do not round. Other reducers are bounded in the order of their axes; if the
order is free and they may round, nothing is known of the result. Scans are bounded row by row, and
statements of extern operations in their own order (`refcomp.oracle.floats.statements`). A read out
of range is refused (EvaluateError).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import Unsupported
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import walk
from refcomp.oracle.floats.expressions import Points, is_plain
from refcomp.oracle.floats.legal_values import (
    NO_OTHERS,
    Approx,
    code_of,
    exact,
    join,
    unbounded,
    zeros,
)
from refcomp.oracle.floats.rounding import FALSE, TRUE, WIDE, ZERO, to_dtype
from refcomp.oracle.floats.statements import approximate_extern
from refcomp.oracle.floats.sums import Products, Sums
from refcomp.oracle.interpreter.scalars import Scalar
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.evaluate import (
    bind_feeds,
    check_request,
    compute_elements,
    constant,
    elements_of,
    given_tensors,
    shape_of,
)
from refcomp.oracle.tensors.lane_axes import with_lane_axes
from refcomp.oracle.tensors.reduction_steps import reduction_steps
from refcomp.oracle.tensors.scan import run_scan
from refcomp.te.operation import (
    ComputeOp,
    ExternOp,
    Operation,
    ScanOp,
    reachable_operations,
)
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.tensor import Tensor, TensorRead

_INFLATION = WIDE(1 + 2.0**-30)  # the bounds themselves are rounded to WIDE


@dataclass(frozen=True, slots=True)
class Licence:
    """The freedom that an evaluation has beyond the definition; an argument of `bound_errors`.

    Attributes:
        reassociate: True if the terms of a reduction may be combined in any order; False if they
            are combined in the order of its axes.
        accumulate: another dtype in which floats may be added up before the sum is rounded once;
            None if they are added up in the dtype of the sum only.

    Example::

        >>> A = rc.placeholder((100,), name="A")
        >>> k = rc.reduce_axis(100, name="k")
        >>> B = rc.compute((1,), lambda i: rc.sum(A[k], k), name="B")
        >>> feeds = {A: np.full(100, 0.1, "float32")}
        >>> in_order = rc.oracle.Licence(reassociate=False)
        >>> (strict,) = rc.oracle.bound_errors([B], feeds, licence=in_order)
        >>> (free,) = rc.oracle.bound_errors([B], feeds)
        >>> bool(strict.error[0] < free.error[0])
        True
    """

    reassociate: bool = True
    accumulate: DType | None = None


@dataclass(frozen=True, slots=True)
class Bounded:
    """The legal values of the elements of a tensor, which `bound_errors` returns.

    All arrays have the tensor's shape. A finite value is legal if it lies within `error` of
    `value`.

    Attributes:
        dtype: the dtype of the tensor.
        value: the reference; floats are long doubles.
        error: long double: the greatest distance of a legal finite value from the reference.
        doubtful: bool: the error includes that rounding decides a branch or a discontinuity.
        condition: float64: the condition number of the sum; 1 if nothing cancels, inf if everything
            does.
        others: bits (`refcomp.oracle.floats.legal_values`) of infinities and NaN that are legal,
            too.

    Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapters 2
    to 4.

    Example::

        >>> A = rc.placeholder((2,), name="A")
        >>> B = rc.compute((2,), lambda i: A[i] * 0.1, name="B")
        >>> a = np.array([1, 2], "float32")
        >>> (bounded,) = rc.oracle.bound_errors([B], {A: a})
        >>> print(bounded.nearest)
        [0.1 0.2]
        >>> bool(np.all(abs(a / 10 - bounded.value) <= bounded.error))
        True
        >>> bounded.condition_is_lost.tolist(), bounded.doubtful.tolist()
        ([False, False], [False, False])
    """

    dtype: DType
    value: Array
    error: Array
    doubtful: Array
    condition: Array
    others: Array = field(default_factory=lambda: NO_OTHERS)

    @property
    def nearest(self) -> Array:
        """Return the reference rounded once to the tensor's dtype."""
        if not self.dtype.is_float:
            return self.value
        with np.errstate(all="ignore"):
            return to_dtype(self.value, self.dtype)

    @property
    def condition_is_lost(self) -> Array:
        """Return where terms cancel so far that a legal value may have either sign, or be 0."""
        cancels = self.condition > 1
        return np.logical_and(cancels, self.error >= np.abs(self.value))

    def allows(self, actual: Array) -> Array:
        """Return where `actual` is a legal infinity or NaN beside the interval.

        Args:
            actual: values of the tensor's shape.

        Returns:
            An array of bool.

        Example::

            >>> A = rc.placeholder((1,), name="A")
            >>> B = rc.compute((1,), lambda i: A[i] + 1.0, name="B")
            >>> (bounded,) = rc.oracle.bound_errors([B], {A: np.ones(1, "float32")})
            >>> bounded.allows(np.array([np.inf], "float32")).tolist()
            [False]
        """
        return np.not_equal(code_of(actual) & self.others, 0)


@deep_recursion()
def bound_errors(
    outputs: Sequence[Tensor],
    feeds: Mapping[Tensor, Array | Bounded],
    scalars: Mapping[Var, Scalar] | None = None,
    licence: Licence = Licence(),
) -> list[Bounded]:
    """Return the legal values of each of `outputs`: a reference with a bound of its rounding error.

    Args:
        outputs: the tensors to bound.
        feeds: an array for each placeholder that they need. Computed tensors may be given, too, and
            are then exact; nothing that they alone need is evaluated. A Bounded instead of an array
            gives a tensor that is not exact.
        scalars: a number for each scalar variable, as for `evaluate`.
        licence: what an evaluation may do.

    Raises:
        UserError: as for `evaluate`.
        EvaluateError: as for `evaluate`.
        Unsupported: no bound is known for a node.

    Example::

        >>> A = rc.placeholder((1000,), name="A")
        >>> k = rc.reduce_axis((0, 1000), name="k")
        >>> B = rc.compute((1,), lambda i: rc.sum(A[k], axis=k), name="B")
        >>> a = np.full(1000, 0.1, "float32")
        >>> (bounded,) = rc.oracle.bound_errors([B], {A: a})
        >>> rc.oracle.judge_bounded(a.sum(keepdims=True), bounded).agrees
        True
        >>> rc.oracle.judge_bounded(np.array([100.2], "float32"), bounded).agrees
        False
    """
    check_request(outputs, feeds, scalars)
    outputs, feeds = with_lane_axes(outputs, feeds)
    needed = {tensor.op for tensor in outputs}
    order = reachable_operations(needed)
    for op in reversed(order):
        if op in needed and not all(tensor in feeds for tensor in op.outputs):
            needed.update(tensor.op for tensor in op.inputs)
    operations = [op for op in order if op in needed]
    values = {var: constant(value, var) for var, value in (scalars or {}).items()}
    nearest = {
        tensor: feed.nearest if isinstance(feed, Bounded) else feed
        for tensor, feed in feeds.items()
    }
    arrays: dict[Tensor, Array] = {}
    with np.errstate(all="ignore"):
        bind_feeds(given_tensors(operations, nearest), nearest, values, arrays)
        known = {}
        for tensor, array in arrays.items():
            feed = feeds[tensor]
            if isinstance(feed, Bounded):
                known[tensor] = _approx(feed)
            else:
                known[tensor] = exact(array, tensor.dtype)
        _Evaluation(values, known, licence).add(operations)
        return [_bounded(known[tensor], tensor, values) for tensor in outputs]


def _approx(bounded: Bounded) -> Approx:
    """Return the legal values that are given for a tensor."""
    absolute = np.abs(bounded.value)
    summed = bounded.condition * absolute
    return Approx(
        value=bounded.value,
        error=bounded.error,
        doubtful=bounded.doubtful,
        # The condition number of a sum that cancels to 0 is infinite.
        magnitude=np.where(np.isfinite(summed), summed, bounded.error),
        others=bounded.others,
    )


def _bounded(result: Approx, tensor: Tensor, values: Mapping[Var, Array]) -> Bounded:
    result = result.spread(shape_of(tensor, values))
    condition = np.ones(result.value.shape)
    if tensor.dtype.is_float:
        ratio = result.magnitude / result.absolute
        has_condition = np.isfinite(result.value) & (result.magnitude != 0)
        condition = np.where(has_condition, ratio, 1.0).astype(np.float64)
    return Bounded(
        dtype=tensor.dtype,
        value=result.value,
        error=result.error * _INFLATION,
        doubtful=result.doubtful,
        condition=condition,
        others=result.others,
    )


class _Evaluation:
    """The evaluation of operations, producers first."""

    def __init__(
        self, values: Mapping[Var, Array], known: dict[Tensor, Approx], licence: Licence
    ) -> None:
        self._values = values  # of scalars and symbols
        self._known = known  # legal values of tensors so far
        self._licence = licence

    def add(self, operations: Sequence[Operation]) -> None:
        """Add the outputs of operations that are not known."""
        scans = [op for op in operations if isinstance(op, ScanOp)]
        computed_by_scans = {inner for op in scans for inner in op.body_operations()}
        for op in operations:
            if all(tensor in self._known for tensor in op.outputs):
                continue
            if op in computed_by_scans:
                for tensor in op.outputs:
                    shape = shape_of(tensor, self._values)
                    self._known[tensor] = zeros(shape, tensor.dtype)
            elif isinstance(op, ScanOp):
                for tensor in op.init:
                    shape = shape_of(tensor, self._values)
                    self._known[tensor] = self._known[tensor].spread(shape)
                run_scan(op, self._known, self._compute, _zeros_like)
            elif isinstance(op, ExternOp):
                found = approximate_extern(op, self._values, self._known)
                self._known.update(zip(op.outputs, found, strict=True))
            elif isinstance(op, ComputeOp):
                found = self._compute(op)
                self._known.update(zip(op.outputs, found, strict=True))

    def _compute(self, op: ComputeOp, row: int | None = None) -> list[Approx]:
        """Return the outputs of `op`; with `row`, only this row of each."""
        known = self._known
        if _cannot_err(op, known):
            # The same values, without the arrays of errors that are all 0.
            given = {tensor: known[tensor].value for tensor in op.inputs}
            found = compute_elements(op, self._values, given, row)
            pairs = zip(found, op.outputs, strict=True)
            return [exact(array, tensor.dtype) for array, tensor in pairs]
        shape, values = elements_of(op, self._values, row)
        if 0 in shape:
            return [zeros(shape, tensor.dtype) for tensor in op.outputs]
        points = Points(values, self._known, shape, op.name)
        if op.reduction is not None:
            return _reduce(op.reduction, points, self._licence)
        return [points.spread(body) for body in op.body]


def _zeros_like(rows: Approx) -> Approx:
    value = np.zeros_like(rows.value)
    return Approx(
        value=value,
        error=ZERO,
        doubtful=FALSE,
        magnitude=ZERO,
        keeps_sign=TRUE,
    ).spread(value.shape)


def _cannot_err(op: ComputeOp, known: Mapping[Tensor, Approx]) -> bool:
    """Return True if each legal evaluation of `op` gives the same values, whatever the order.

    So it is if all operands are given, and the elements are integers, or extrema of floats that are
    only chosen. Zeros of both signs, infinities and NaN may show the order of floats.
    """
    reduction = op.reduction
    if reduction is not None:
        reducer = reduction.reducer
        operands = zip(reducer.results, reducer.lhs, reducer.rhs, strict=True)
        if not all(_is_symmetric(body, {a, b}) for body, a, b in operands):
            return False
    nodes = [node for body in op.body for node in walk(body)]
    if not all(node is reduction or _never_rounds(node) for node in nodes):
        return False
    given = [known[tensor] for tensor in op.inputs]
    if not all(one.is_given for one in given):
        return False
    has_floats = any(isinstance(node, Expr) and node.dtype.is_float for node in nodes)
    return not has_floats or (
        reduction is not None and all(_has_one_order(one.value) for one in given)
    )


def _is_symmetric(body: Expr, operands: set[Expr]) -> bool:
    symmetric: tuple[type[ir.BinaryExpr], ...] = (ir.Min, ir.Max)
    if not body.dtype.is_float:
        symmetric += (ir.Add, ir.Mul, ir.And, ir.Or)
    return isinstance(body, symmetric) and {body.a, body.b} == operands


def _never_rounds(node: Node) -> bool:
    if not isinstance(node, Expr) or not is_plain(node):
        return False
    if isinstance(node, ir.FloatImm):
        return _has_one_order(np.asarray(node.value, WIDE))
    if node.dtype.is_float:
        return isinstance(node, TensorRead)
    return not isinstance(node, ir.Cast) or not node.value.dtype.is_float


def _has_one_order(value: Array) -> bool:
    """Return True if an extremum of elements does not depend on their order."""
    if value.dtype != WIDE:
        return True
    is_plain_number = np.isfinite(value) & ((value != 0) | ~np.signbit(value))
    return bool(is_plain_number.all())


# Reductions.


def _reduce(reduce: Reduce, points: Points, licence: Licence) -> list[Approx]:
    """Return the results; a combiner without a rule is applied in the order of the axes."""
    reducer = reduce.reducer
    accumulators = [
        _accumulator(reduce, k, points.shape, licence)
        for k in range(len(reduce.sources))
    ]
    results = [points.spread(identity) for identity in reducer.identities]
    rounds = any(map(_may_round, reducer.results))
    is_free = licence.reassociate and rounds
    undecided = np.zeros(points.shape, np.bool_)
    for step in reduction_steps(reduce, points, _exact_integers):
        here = points.binding(step.values)
        within = here if step.inside is None else here.where(step.inside)
        condition = within.value(reduce.condition)
        if not condition.is_given:
            undecided |= step.spread(~condition.is_exact, points.shape)
        chosen = step.spread(condition.value, points.shape)
        if not chosen.any():
            continue
        part = ... if chosen.all() else chosen
        within = here if part is ... else here.where(chosen)
        sources = [within.spread(source) for source in reduce.sources]
        for accumulator, source in zip(accumulators, sources, strict=True):
            if accumulator is not None:
                accumulator.add(source, part)
        if None not in accumulators:
            continue
        left = [result[part] for result in results]
        combined = _combined(reducer, left, sources, within)
        # Another order of what never rounds shows in signs of zeros, and in comparisons with NaN.
        if licence.reassociate and not rounds and any(map(_shows_order, left, sources)):
            swapped = _combined(reducer, sources, left, within)
            pairs = zip(combined, swapped, strict=True)
            combined = [join(a, b, TRUE) for a, b in pairs]
        for result, value in zip(results, combined, strict=True):
            result[part] = value.spread(within.shape)
    found = []
    for accumulator, result in zip(accumulators, results, strict=True):
        if accumulator is not None:
            result = accumulator.result()
        elif is_free:
            result = unbounded(result, TRUE)
        found.append(unbounded(result, undecided))
    return found


def _exact_integers(points: Points, bound: Expr) -> Array:
    """Return the values of a bound of a range."""
    found = points.value(bound)
    if not found.is_given and not np.all(found.is_exact):
        raise Unsupported(
            f"the errors of a reduction whose range ends at {bound} are not bounded",
            why="rounding decides how many iterations it has",
        )
    return np.asarray(found.value)


def _accumulator(
    reduce: Reduce, k: int, shape: tuple[int, ...], licence: Licence
) -> Sums | Products | None:
    """Return what adds up, or multiplies, the terms of result k; None for another combiner."""
    reducer = reduce.reducer
    dtype = reduce.sources[k].dtype
    body = reducer.results[k]
    if not dtype.is_float or not isinstance(body, ir.BinaryExpr):
        return None
    operands = {body.a, body.b}
    if operands != {reducer.lhs[k], reducer.rhs[k]}:
        return None
    if isinstance(body, ir.Add):
        return Sums(shape, dtype, licence.reassociate, licence.accumulate)
    if isinstance(body, ir.Mul) and licence.reassociate:
        return Products(shape, dtype)
    return None


def _shows_order(a: Approx, b: Approx) -> bool:
    """Return True if exchanging operands of a minimum or maximum may give another result."""
    are_zeros = (a.value == 0) & (b.value == 0)
    return bool(np.any(are_zeros | a.is_nan | b.is_nan))


def _combined(
    reducer: CommReducer, lhs: Sequence[Approx], rhs: Sequence[Approx], within: Points
) -> list[Approx]:
    local = dict(zip(reducer.lhs, lhs, strict=True))
    local.update(zip(reducer.rhs, rhs, strict=True))
    points = replace(within, values={}, tensors={}, local=local)
    return [points.spread(body) for body in reducer.results]


def _may_round(body: Expr) -> bool:
    """Return True if combining floats by `body` may round, so that the order matters."""
    return body.dtype.is_float and isinstance(body, _ROUNDING)


_ROUNDING = (
    ir.Add,
    ir.Sub,
    ir.Mul,
    ir.Div,
    ir.Mod,
    ir.Cast,
    ir.Call,
    ir.PureExtern,
)

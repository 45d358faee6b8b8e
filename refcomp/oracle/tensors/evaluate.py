"""Evaluates tensor expressions by numpy, straight from their definition: no schedule, no loop IR.

Every operation is computed for all its elements at once, node by node in the node's own dtype, so
each node rounds once. A reduction combines its elements in the order of its axes, one step at a
time in the reducer's own dtype. What `if_then_else` or the `where` of a reduction does not choose
is not evaluated. A read out of range is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir import expr as ir
from refcomp.ir.expr import Expr, Var
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import variables_in
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.scalars import Scalar, make_scalar
from refcomp.oracle.interpreter.statements import run_to_end
from refcomp.oracle.interpreter.symbols import solve_symbols, unknown_symbol
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.elementwise import ELEMENTWISE
from refcomp.oracle.tensors.lane_axes import with_lane_axes
from refcomp.oracle.tensors.reduction_steps import reduction_steps
from refcomp.oracle.tensors.scan import run_scan
from refcomp.te.operation import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    reachable_operations,
)
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import Tensor, TensorRead


class EvaluateError(RefcompError):
    """The error of a computation that breaks a rule of te, such as a read out of range.

    `evaluate` and `bound_errors` raise it.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> i = rc.placeholder((3,), "int64", name="i")
        >>> B = rc.compute((3,), lambda k: A[i[k]], name="B")
        >>> feeds = {A: np.ones(3, "float32"), i: np.array([0, 1, 7])}
        >>> rc.oracle.evaluate([B], feeds)
        Traceback (most recent call last):
            ...
        refcomp.oracle.tensors.evaluate.EvaluateError: B reads A at index 7 of dimension 0...
    """


@deep_recursion()
def evaluate(
    outputs: Sequence[Tensor],
    feeds: Mapping[Tensor, Array],
    scalars: Mapping[Var, Scalar] | None = None,
) -> list[Array]:
    """Return the values of `outputs` as fresh arrays, computed by numpy from their definition.

    Args:
        outputs: the tensors to compute.
        feeds: an array for each placeholder that they need, of its dtype and shape. Lanes of
            vectors are the last dimension of an array.
        scalars: a number for each scalar variable. Symbols that are missing here are solved from
            the shapes of the feeds.

    Raises:
        UserError: a feed is missing or does not fit, or a symbol has no size.
        EvaluateError: a read out of range.

    Example::

        >>> n = rc.var("n")
        >>> A = rc.placeholder((n,), name="A")
        >>> B = rc.compute((n,), lambda i: A[n - 1 - i], name="B")
        >>> print(*rc.oracle.evaluate([B], {A: np.array([1, 2, 3], "float32")}))
        [3. 2. 1.]
    """
    check_request(outputs, feeds, scalars)
    outputs, feeds = with_lane_axes(outputs, feeds)
    operations = reachable_operations(tensor.op for tensor in outputs)
    scans = [op for op in operations if isinstance(op, ScanOp)]
    computed_by_scans = {inner for op in scans for inner in op.body_operations()}
    values = {var: constant(value, var) for var, value in (scalars or {}).items()}
    known: dict[Tensor, Array] = {}

    def compute_row(op: ComputeOp, row: int) -> list[Array]:
        return compute_elements(op, values, known, row)

    with np.errstate(all="ignore"):
        bind_feeds(given_tensors(operations), feeds, values, known)
        for op in operations:
            if op in computed_by_scans:
                for tensor in op.outputs:
                    known[tensor] = _zeros(tensor, values)
            elif isinstance(op, ComputeOp):
                computed = compute_elements(op, values, known)
                known.update(zip(op.outputs, computed, strict=True))
            elif isinstance(op, ExternOp):
                run_extern(op, values, known)
            elif isinstance(op, ScanOp):
                run_scan(op, known, compute_row)
    return [known[tensor].copy() for tensor in outputs]


def constant(value: Scalar, like: Expr) -> Array:
    """Return a number as an array of rank 0 of the dtype of `like`."""
    return np.asarray(make_scalar(value, like.dtype), to_numpy(like.dtype))


def given_tensors(
    operations: Sequence[Operation], also: Container[Tensor] = ()
) -> list[Tensor]:
    """Return the outputs of `operations` that are not computed.

    These are the placeholders, except the states of scans, and the tensors in `also`.
    """
    states = {t for op in operations if isinstance(op, ScanOp) for t in op.state}
    return [
        tensor
        for op in operations
        for tensor in op.outputs
        if tensor not in states and (isinstance(op, PlaceholderOp) or tensor in also)
    ]


def check_request(outputs: object, feeds: object, scalars: object) -> None:
    """Raise UserError if an argument of `evaluate` has a wrong type."""
    if not isinstance(outputs, list | tuple) or not all(
        isinstance(tensor, Tensor) for tensor in outputs
    ):
        raise UserError(
            f"{outputs!r} is not a list of tensors", remedy="pass a list such as [C]"
        )
    if not isinstance(feeds, Mapping):
        raise UserError(
            f"feeds are a {type(feeds).__name__}, not arrays by tensor",
            remedy="pass a dict: {A: array}",
        )
    if scalars is not None and not isinstance(scalars, Mapping):
        raise UserError(
            f"scalars are a {type(scalars).__name__}, not numbers by variable",
            remedy="pass a dict: {n: 3}",
        )


def bind_feeds(
    needed: Sequence[Tensor],
    feeds: Mapping[Tensor, Array],
    values: dict[Var, Array],
    known: dict[Tensor, Array],
) -> None:
    """Add the `needed` tensors to `known`, and the sizes of their symbols to `values`.

    Raises UserError if a feed is missing or does not fit.
    """
    for tensor in needed:
        if tensor not in feeds:
            raise UserError(
                f"no value is given for placeholder {tensor.name}",
                remedy="add an array for it to the feeds",
            )
        feed = feeds[tensor]
        if not isinstance(feed, np.ndarray | np.generic):
            raise UserError(
                f"the value of {tensor.name} cannot be a {type(feed).__name__}",
                remedy="pass a numpy array",
            )
        if feed.dtype != to_numpy(tensor.dtype):
            raise UserError(
                f"{tensor.name} has dtype {tensor.dtype}, {feed.dtype} given"
            )
        if feed.ndim != tensor.ndim:
            raise UserError(f"{tensor.name} has rank {tensor.ndim}, {feed.ndim} given")
        known[tensor] = feed
    given = {var: int(value) for var, value in values.items() if not var.dtype.is_float}
    shapes = [(tensor, feeds[tensor].shape) for tensor in needed]
    for symbol, size in solve_symbols(shapes, given).items():
        values.setdefault(symbol, np.asarray(size, np.int64))
    for tensor in needed:
        shape = shape_of(tensor, values)
        if shape != known[tensor].shape:
            used = (var for extent in tensor.shape for var in variables_in(extent))
            sizes = [f"{var.name} is {int(values[var])}" for var in dict.fromkeys(used)]
            raise UserError(
                f"{tensor.name} has shape {shape}, {known[tensor].shape} given",
                where=_declaration(tensor),
                why=", ".join(sizes),
                remedy="give arrays whose shapes agree",
            )


def shape_of(tensor: Tensor, values: Mapping[Var, Array]) -> tuple[int, ...]:
    """Return the shape of `tensor` as numbers; a negative extent is 0.

    Raises UserError if a symbol in it has no size.
    """
    symbol = unknown_symbol(tensor, values)
    if symbol is not None:
        raise UserError(
            f"the shape of {tensor.name} needs the size of {symbol.name}, which is not known",
            where=_declaration(tensor),
            why=f"no array that is given determines {symbol.name}",
            remedy=f"give it among the scalars: {{{symbol.name}: 10}}",
        )
    points = _Points(values, {}, (), f"the shape of {tensor.name}")
    return tuple(max(0, int(points.value(extent))) for extent in tensor.shape)


def _declaration(tensor: Tensor) -> str:
    return f"{tensor.name}: {tensor.dtype}[{', '.join(map(print_expr, tensor.shape))}]"


def _zeros(tensor: Tensor, values: Mapping[Var, Array]) -> Array:
    return np.zeros(shape_of(tensor, values), to_numpy(tensor.dtype))


def compute_elements(
    op: ComputeOp,
    values: Mapping[Var, Array],
    known: Mapping[Tensor, Array],
    row: int | None = None,
) -> list[Array]:
    """Return the outputs of `op`; with `row`, only this row of each."""
    shape, values = elements_of(op, values, row)
    if 0 in shape:
        return [np.empty(shape, to_numpy(tensor.dtype)) for tensor in op.outputs]
    points = _Points(values, known, shape, op.name)
    reduce = op.reduction
    if reduce is not None:
        return _reduce(reduce, points)
    return [points.spread(body) for body in op.body]


def elements_of(
    op: ComputeOp, values: Mapping[Var, Array], row: int | None
) -> tuple[tuple[int, ...], dict[Var, Array]]:
    """Return the shape of the outputs of `op`, and the values of variables at their elements.

    The values of axes are arrays that broadcast to the shape. With `row`, the shape has only this
    row, and so have the values.
    """
    shape = shape_of(op.outputs[0], values)
    begins = [0] * len(shape)
    if row is not None:
        shape = (1, *shape[1:])
        begins[0] = row
    at_elements = dict(values)
    for place, axis in enumerate(op.axis):
        extents = [1] * len(shape)
        extents[place] = shape[place]
        numbers = np.arange(shape[place], dtype=np.int64) + begins[place]
        at_elements[axis.var] = numbers.reshape(extents)
    return shape, at_elements


def run_extern(
    op: ExternOp, values: Mapping[Var, Array], known: dict[Tensor, Array]
) -> None:
    """Add the outputs of an extern operation to `known`, which has its inputs.

    The interpreter runs its statement. Raises EvaluateError if an element stays unwritten.
    """
    for tensor in op.outputs:
        known[tensor] = _zeros(tensor, values)
    frame = Frame()
    for var, value in values.items():
        frame.values[var] = make_scalar(value, var.dtype)
    for requirement in op.requires:
        if not frame.evaluate(requirement.condition):
            origin = requirement.origin
            assert origin is not None
            raise EvaluateError(
                f"{origin.by}: {origin.failure}",
                where=origin.line,
                why=f"{op.name} needs {print_expr(requirement.condition)}",
                remedy="feed arrays and numbers whose sizes fit",
            )
    for buffer, tensor in op.buffers.items():
        array = known[tensor]
        is_fresh = tensor in op.outputs
        frame.memory[buffer] = Memory(buffer, array.shape, array, is_fresh)
    run_to_end(frame, op.body)
    for buffer in op.out_buffers:
        written = frame.memory[buffer].written
        if written is not None and not written.all():
            raise EvaluateError(
                f"{op.name} leaves element {int(np.argmin(written))} of {buffer.name} unwritten",
                remedy="let its statement write all elements of its outputs",
            )


def _reduce(reduce: Reduce, points: _Points) -> list[Array]:
    reducer = reduce.reducer
    results = [points.spread(identity) for identity in reducer.identities]
    for step in reduction_steps(reduce, points, _Points.value):
        here = points.binding(step.values)
        within = here if step.inside is None else here.where(step.inside)
        chosen = step.spread(within.value(reduce.condition), points.shape)
        if not chosen.any():
            continue
        # Choosing all points by `...` keeps their index arrays small: they only broadcast.
        part = ... if chosen.all() else chosen
        within = here if part is ... else here.where(chosen)
        elements = [result[part] for result in results]
        bound = dict(zip(reducer.lhs, elements, strict=True))
        bound.update(zip(reducer.rhs, map(within.value, reduce.sources), strict=True))
        operands = replace(within, values=bound, tensors={})
        # A list: every result is combined from the values before the step.
        combined = [operands.value(body) for body in reducer.results]
        for result, value in zip(results, combined, strict=True):
            result[part] = value
    return results


@dataclass(frozen=True, eq=False, slots=True)
class _Points:
    """Elements of a tensor, at which expressions have values."""

    values: Mapping[Var, Array]  # of variables: arrays that broadcast to `shape`
    tensors: Mapping[Tensor, Array]  # values of the tensors that are read
    shape: tuple[int, ...]
    name: str  # of the compute, for messages
    libraries: Sequence[str] = ()
    _known: dict[int, Array] = field(default_factory=dict, init=False)  # by id

    def binding(self, values: Mapping[Var, Array]) -> _Points:
        """Return the same points with more variables."""
        return replace(self, values={**self.values, **values})

    def named(self, name: str) -> _Points:
        """Return the same points under another name."""
        return replace(self, name=name)

    def where(self, chosen: Array) -> _Points:
        """Return the points at which `chosen` (bool, of this shape) is True, in one row."""
        row = {
            var: np.broadcast_to(value, self.shape)[chosen]
            for var, value in self.values.items()
        }
        count = int(chosen.sum())
        return replace(self, values=row, shape=(count,))

    def value(self, expr: Expr) -> Array:
        """Return the value of `expr` at all points; a shared subexpression is evaluated once."""
        key = id(expr)
        if key not in self._known:
            rule = _EXPRESSIONS.get(type(expr))
            if rule is None:
                raise EvaluateError(
                    f"{type(expr).__name__} is not part of a tensor expression"
                )
            value = rule(self, expr)
            self._known[key] = np.asarray(value, to_numpy(expr.dtype))
        return self._known[key]

    def spread(self, expr: Expr) -> Array:
        """Return the value of `expr` as a fresh array of this shape."""
        return np.array(np.broadcast_to(self.value(expr), self.shape))


def _var(points: _Points, var: Var) -> Array:
    if var not in points.values:
        raise EvaluateError(f"variable {var.name} has no value in {points.name}")
    return points.values[var]


def _immediate(_points: _Points, imm: ir.IntImm | ir.FloatImm) -> Array:
    return constant(imm.value, imm)


def _if_then_else(points: _Points, expr: ir.IfThenElseExpr) -> Array:
    condition = np.broadcast_to(points.value(expr.condition), points.shape)
    result = np.empty(points.shape, to_numpy(expr.dtype))
    branches = ((condition, expr.true_value), (~condition, expr.false_value))
    for chosen, branch in branches:
        if chosen.any():
            result[chosen] = points.where(chosen).value(branch)
    return result


def _let(points: _Points, let: ir.Let) -> Array:
    value = points.value(let.value)
    return points.binding({let.var: value}).value(let.body)


def _read(points: _Points, read: TensorRead) -> Array:
    indices = tuple(points.value(index) for index in read.indices)
    tensor = points.tensors[read.tensor]
    check_range(points.name, read, indices, tensor.shape)
    return tensor[indices]


def check_range(
    name: str, read: TensorRead, indices: Sequence[Array], shape: Sequence[int]
) -> None:
    """Raise EvaluateError if compute `name` reads out of range."""
    for dim, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        outside = (index < 0) | (index >= extent)
        if outside.any():
            raise EvaluateError(
                f"{name} reads {read.tensor.name} at index {index[outside].flat[0]} "
                f"of dimension {dim}, which has {extent} elements",
                remedy="guard the read with if_then_else, or clip the index",
            )


_EXPRESSIONS: dict[type[Expr], Callable[[_Points, Any], Array]] = {
    Var: _var,
    **ELEMENTWISE,
    ir.IntImm: _immediate,
    ir.FloatImm: _immediate,
    ir.IfThenElseExpr: _if_then_else,
    ir.Let: _let,
    TensorRead: _read,
}

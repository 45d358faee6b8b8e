"""Evaluates tensor expressions by numpy, straight from their definition: no schedule, no loop IR.

Every operation is computed for all its points at once, node by node in the node's own dtype, so
that each node rounds once. A reduction combines its elements in the order of its axes, one step
at a time in the reducer's own dtype. What `if_then_else` and the `where` of a reduction do not
choose is not evaluated. A read out of range is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from refcomp.oracle.interpreter.scalars import make_scalar
from refcomp.oracle.interpreter.statements import run_to_end
from refcomp.oracle.interpreter.symbols import solve_symbols, unknown_symbol
from refcomp.oracle.tensors.arrays import Array
from refcomp.oracle.tensors.elementwise import ELEMENTWISE
from refcomp.oracle.tensors.scan import run_scan
from refcomp.te.extern import ExternOp
from refcomp.te.operation import (
    ComputeOp,
    Operation,
    PlaceholderOp,
    reachable_operations,
)
from refcomp.te.reducer import Reduce
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import IterVar, Tensor, TensorRead


class EvaluateError(RefcompError):
    """The computation breaks a rule: an element that is not there, a variable without a value."""


@deep_recursion()
def evaluate(
    outputs: Sequence[Tensor],
    feeds: Mapping[Tensor, Array],
    scalars: Mapping[Var, Any] | None = None,
) -> list[Array]:
    """The values of `outputs` as fresh arrays.

    `feeds` gives every placeholder they need, with its dtype and shape; `scalars` gives a number
    for each scalar variable. Symbols are solved from the shapes of the feeds, unless `scalars` has
    them. Raises UserError for feeds that are missing or do not fit and for symbols without a size,
    EvaluateError for a read out of range.
    """
    check_request(outputs, feeds, scalars)
    operations = reachable_operations(tensor.op for tensor in outputs)
    scans = [op for op in operations if isinstance(op, ScanOp)]
    by_row = {inner for op in scans for inner in op.body_operations()}
    values = {var: constant(value, var) for var, value in (scalars or {}).items()}
    known: dict[Tensor, Array] = {}
    with np.errstate(all="ignore"):
        bind_feeds(_given(operations), feeds, values, known)
        for op in operations:
            if op in by_row:
                for tensor in op.outputs:  # computed with its scan, row by row
                    shape = shape_of(tensor, values)
                    known[tensor] = np.zeros(shape, to_numpy(tensor.dtype))
            elif isinstance(op, ComputeOp):
                known.update(zip(op.outputs, _compute(op, values, known), strict=True))
            elif isinstance(op, ExternOp):
                run_extern(op, values, known)
            elif isinstance(op, ScanOp):
                run_scan(
                    op, known, lambda inner, row: _compute(inner, values, known, row)
                )
    return [known[tensor].copy() for tensor in outputs]


def constant(value: Any, like: Expr) -> Array:
    """A number as an array of rank 0 of the dtype of `like`."""
    return np.asarray(make_scalar(value, like.dtype), to_numpy(like.dtype))


def _given(operations: Sequence[Operation]) -> list[Tensor]:
    states = {t for op in operations if isinstance(op, ScanOp) for t in op.state}
    given = (op.outputs[0] for op in operations if isinstance(op, PlaceholderOp))
    return [tensor for tensor in given if tensor not in states]


def check_request(outputs: Any, feeds: Any, scalars: Any) -> None:
    """UserError for anything but a list of tensors, arrays by tensor, and numbers by variable."""
    if not isinstance(outputs, list | tuple) or not all(
        isinstance(t, Tensor) for t in outputs
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
    """Adds the `needed` tensors to `known`, and the sizes of their symbols to `values`. UserError
    for feeds that are missing or do not fit."""
    for tensor in needed:
        if tensor not in feeds:
            raise UserError(f"no value is given for placeholder {tensor.name}")
        known[tensor] = _checked_feed(tensor, feeds[tensor])
    given = {var: int(value) for var, value in values.items() if not var.dtype.is_float}
    shapes = [(tensor, feeds[tensor].shape) for tensor in needed]
    for symbol, size in solve_symbols(shapes, given).items():
        values.setdefault(symbol, np.asarray(size, np.int64))
    for tensor in needed:
        shape = shape_of(tensor, values)
        if shape != known[tensor].shape:
            symbols = dict.fromkeys(
                var for dim in tensor.shape for var in variables_in(dim)
            )
            sizes = (f"{var.name} is {int(values[var])}" for var in symbols)
            raise UserError(
                f"{tensor.name} has shape {shape}, {known[tensor].shape} given",
                where=_declared(tensor),
                why=", ".join(sizes),
                remedy="give arrays whose shapes agree",
            )


def _checked_feed(tensor: Tensor, feed: Array) -> Array:
    if feed.dtype != to_numpy(tensor.dtype):
        raise UserError(f"{tensor.name} has dtype {tensor.dtype}, {feed.dtype} given")
    if feed.ndim != tensor.ndim:
        raise UserError(f"{tensor.name} has rank {tensor.ndim}, {feed.ndim} given")
    return feed


def _integer(expr: Expr, values: Mapping[Var, Array], place: str) -> int:
    return int(_Points(values, {}, (), place).value(expr))


def shape_of(tensor: Tensor, values: Mapping[Var, Array]) -> tuple[int, ...]:
    """Return the shape of `tensor` as numbers; a negative extent is 0. UserError when a symbol in
    it has no size."""
    symbol = unknown_symbol(tensor, values)
    if symbol is not None:
        raise UserError(
            f"the size of {symbol.name} is not known, which the shape of {tensor.name} needs",
            where=_declared(tensor),
            why=f"no array that is given determines {symbol.name}",
            remedy=f"give it among the scalars: {{{symbol.name}: 10}}",
        )
    return tuple(
        max(0, _integer(dim, values, f"the shape of {tensor.name}"))
        for dim in tensor.shape
    )


def _declared(tensor: Tensor) -> str:
    return f"{tensor.name}: {tensor.dtype}[{', '.join(map(print_expr, tensor.shape))}]"


def _compute(
    op: ComputeOp,
    values: Mapping[Var, Array],
    known: Mapping[Tensor, Array],
    row: int | None = None,
) -> list[Array]:
    """The tensors of `op`; with `row`, only that one of their rows."""
    shape = shape_of(op.outputs[0], values)
    shape = shape if row is None else (1, *shape[1:])
    if 0 in shape:
        return [np.empty(shape, to_numpy(tensor.dtype)) for tensor in op.outputs]
    grid = dict(grid_of(op.axis, shape))
    if row is not None:
        grid[op.axis[0].var] += row
    points = _Points({**values, **grid}, known, shape, op.name)
    reduce = op.reduction
    if reduce is not None:
        return _reduce(reduce, points)
    return [np.array(np.broadcast_to(points.value(body), shape)) for body in op.body]


def run_extern(
    op: ExternOp, values: Mapping[Var, Array], known: dict[Tensor, Array]
) -> None:
    """Adds the outputs of an extern operation to `known`, which has its inputs: its statement means
    what the interpreter says."""
    for tensor in op.outputs:
        known[tensor] = np.zeros(shape_of(tensor, values), to_numpy(tensor.dtype))
    frame = Frame()
    frame.values.update(
        (var, make_scalar(value, var.dtype)) for var, value in values.items()
    )
    for buffer, tensor in op.buffers.items():
        is_fresh = tensor in op.outputs
        frame.memory[buffer] = Memory(
            buffer, known[tensor].shape, known[tensor], is_fresh
        )
    run_to_end(frame, op.body)
    for buffer in op.out_buffers:
        written = frame.memory[buffer].written
        if written is not None and not written.all():
            raise EvaluateError(
                f"{op.name} leaves element {int(np.argmin(written))} of {buffer.name} unwritten",
                remedy="let its statement write all elements of its outputs",
            )


def grid_of(
    axes: Sequence[IterVar], shape: tuple[int, ...]
) -> Iterator[tuple[Var, Array]]:
    """Each axis' values, shaped so that together they broadcast to all points."""
    for place, (axis, extent) in enumerate(zip(axes, shape, strict=True)):
        dims = [1] * len(shape)
        dims[place] = extent
        yield axis.var, np.arange(extent, dtype=np.int64).reshape(dims)


def _reduce(reduce: Reduce, points: _Points) -> list[Array]:
    reducer = reduce.reducer
    results = [
        np.array(np.broadcast_to(points.value(identity), points.shape))
        for identity in reducer.identities
    ]
    for step in reduction_steps(reduce.axes, points.values):
        here = _Points(
            {**points.values, **step}, points.tensors, points.shape, points.name
        )
        chosen = np.broadcast_to(here.value(reduce.condition), points.shape)
        if not chosen.any():
            continue
        # Choosing all points by a slice keeps their index arrays small: they only broadcast.
        within, part = (here, ...) if chosen.all() else (here.where(chosen), chosen)
        bound = dict(
            zip(reducer.lhs, (result[part] for result in results), strict=True)
        )
        bound |= zip(reducer.rhs, map(within.value, reduce.sources), strict=True)
        combined = _Points(bound, {}, within.shape, points.name)
        # A list first: every result is combined from the values before the step.
        for result, fresh in zip(
            results, [*map(combined.value, reducer.results)], strict=True
        ):
            result[part] = fresh
    return results


def reduction_steps(
    axes: Sequence[IterVar], values: Mapping[Var, Array]
) -> Iterator[dict[Var, Array]]:
    """The values of the axes at each point of a reduction, in order."""
    ranges = []
    for axis in axes:
        place = f"the range of axis {axis.name}"
        begin, extent = (
            _integer(bound, values, place) for bound in (axis.minimum, axis.extent)
        )
        ranges.append(range(begin, begin + max(0, extent)))
    for position in itertools.product(*ranges):
        yield {
            a.var: np.asarray(v, np.int64) for a, v in zip(axes, position, strict=True)
        }


class _Points:
    """Values of variables at some points, as arrays that broadcast to `shape`.

    `value(expr)` is the expression at all these points, a shared subexpression evaluated once.
    """

    libraries: Sequence[str] = ()

    def __init__(
        self,
        values: Mapping[Var, Array],
        tensors: Mapping[Tensor, Array],
        shape: tuple[int, ...],
        name: str = "",
    ) -> None:
        self.values, self.tensors, self.shape, self.name = values, tensors, shape, name
        self.memo: dict[int, Array] = {}

    def where(self, chosen: Array) -> _Points:
        """The points at which `chosen` (bool, of this shape) holds, in one row."""
        flat = {
            v: np.broadcast_to(a, self.shape)[chosen] for v, a in self.values.items()
        }
        return _Points(flat, self.tensors, (int(chosen.sum()),), self.name)

    def value(self, expr: Expr) -> Array:
        key = id(expr)
        if key not in self.memo:
            handler = _EXPRESSIONS.get(type(expr))
            if handler is None:
                raise EvaluateError(
                    f"{type(expr).__name__} is no part of a tensor expression"
                )
            self.memo[key] = np.asarray(handler(self, expr), to_numpy(expr.dtype))
        return self.memo[key]


def _var(points: _Points, var: Var) -> Array:
    if var not in points.values:
        raise EvaluateError(f"variable {var.name} has no value in {points.name}")
    return points.values[var]


def _immediate(_points: _Points, imm: ir.IntImm | ir.FloatImm) -> Array:
    return constant(imm.value, imm)


def _if_then_else(points: _Points, expr: ir.IfThenElseExpr) -> Array:
    condition = np.broadcast_to(points.value(expr.condition), points.shape)
    result = np.empty(points.shape, to_numpy(expr.dtype))
    for chosen, branch in (
        (condition, expr.true_value),
        (~condition, expr.false_value),
    ):
        if chosen.any():
            result[chosen] = points.where(chosen).value(branch)
    return result


def _let(points: _Points, let: ir.Let) -> Array:
    values = {**points.values, let.var: points.value(let.value)}
    return _Points(values, points.tensors, points.shape, points.name).value(let.body)


def _read(points: _Points, read: TensorRead) -> Array:
    indices = tuple(points.value(index) for index in read.indices)
    tensor = points.tensors[read.tensor]
    check_range(points.name, read, indices, tensor.shape)
    value: Array = tensor[indices]
    return value


def check_range(
    name: str, read: TensorRead, indices: Sequence[Array], shape: Sequence[int]
) -> None:
    """EvaluateError when compute `name` reads out of range."""
    for dim, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        outside = (index < 0) | (index >= extent)
        if outside.any():
            raise EvaluateError(
                f"{name} reads {read.tensor.name} at index {index[outside].flat[0]} "
                f"of dimension {dim}, which has {extent} elements",
                remedy="guard the read with if_then_else, or clip the index",
            )


_EXPRESSIONS: dict[type[Any], Callable[[_Points, Any], Any]] = {
    Var: _var,
    **ELEMENTWISE,
    ir.IntImm: _immediate,
    ir.FloatImm: _immediate,
    ir.IfThenElseExpr: _if_then_else,
    ir.Let: _let,
    TensorRead: _read,
}

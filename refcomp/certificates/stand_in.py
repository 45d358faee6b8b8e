"""Stand-ins for computations that are too large to interpret: the same schedule on smaller tensors.

    C[i, j] = sum over k of A[i, k] * B[k, j],  all of 1024      ->     all of 33, say

Axes of constant extent become as short as possible. If a split divides an extent with a remainder,
it divides the shorter extent with the same remainder. Of a tensor that is read, only the part that
is read is kept. If this part is not known, as with indices that are data, the tensor keeps its
size. Axes keep their names, so that the recorded primitives can be replayed. Symbols stay symbols.

Only computes and placeholders have stand-ins; scans and extern operations have none. A stand-in is
another computation. It shows what the schedule does, but not what passes do with the very extents
of the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm, prod
from typing import cast

from refcomp.arith import Facts, interval
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import RefcompError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    children,
    map_children,
    rewriter,
    variables_in,
    walk,
    with_changes,
)
from refcomp.ir.stmt import For, Stmt
from refcomp.lowering.lower import lower
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.schedule.schedule import Schedule, replay
from refcomp.schedule.stage_graph import find_stage
from refcomp.te.dependent_ranges import hulls, ranged_axes
from refcomp.te.operation import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    reachable_operations,
)
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar, Tensor, TensorRead

_MAX_UNCHANGED = 7  # extents up to this one stay as they are
_MAX_PERIOD = 64  # iterations of all factors together


@dataclass(frozen=True, slots=True)
class StandIn:
    """A schedule with its arguments, in place of a larger one."""

    schedule: Schedule
    args: tuple[Tensor | Var, ...]
    extents: Mapping[str, int]  # the shorter ones, by stage and axis


def points_of(schedule: Schedule, sizes: Mapping[Var, int]) -> int:
    """Return how many values computes combine and extern operations write."""
    points = 0
    for stage in schedule.stages:
        op = stage.op
        if isinstance(op, ExternOp):
            points += trips_of(op.body, sizes)
        elif isinstance(op, ComputeOp):
            points += prod(_extents_of(op, sizes))
    return points


def _extents_of(op: ComputeOp, sizes: Mapping[Var, int]) -> list[int]:
    """Return the extents of all axes; of an axis whose extent depends on others, the greatest."""
    reduced: Sequence[IterVar] = op.reduce_axis
    unknown: list[int] = []
    if op.reduction is not None and op.reduction.ranges:
        found = hulls(op.reduction, op.axis)
        if found is None:
            # An axis whose extent is read goes over a dimension of a tensor that is read, usually.
            dims = (dim for tensor in op.inputs for dim in tensor.shape)
            longest = max(evaluate_expr(dim, sizes) for dim in dims)
            unknown = [max(0, longest)] * len(reduced)
        reduced = found or ()
    axes = (*op.axis, *reduced)
    return [*(max(0, evaluate_expr(a.extent, sizes)) for a in axes), *unknown]


def trips_of(node: Node, sizes: Mapping[Var, int]) -> int:
    """Return about how often the innermost statements run."""
    inner = [child for child in children(node) if isinstance(child, Stmt)]
    trips = sum(trips_of(child, sizes) for child in inner)
    if isinstance(node, For):
        # Variables of outer loops count as 0.
        bindings = dict.fromkeys(variables_in(node.extent), 0) | dict(sizes)
        trips *= max(cast(int, evaluate_expr(node.extent, bindings)), 1)
    return max(trips, 1)


def factors_of(schedule: Schedule) -> list[int]:
    """Return the numbers greater than 1 among the arguments of steps, as factors of splits."""
    factors = []
    for step in schedule.steps:
        for value in (*step.args, *(value for _, value in step.options)):
            if type(value) is int and value > 1:
                factors.append(value)
    return factors


def find_stand_in(
    schedule: Schedule,
    args: Sequence[Tensor | Var],
    sizes: Mapping[Var, int],
    max_points: int,
) -> StandIn | None:
    """Return a stand-in that combines at most `max_points` values, if there is one."""
    for stage in schedule.stages:
        if not isinstance(stage.op, ComputeOp | PlaceholderOp):
            return None
    for period, count in product(_periods(factors_of(schedule)), (2, 1)):
        made = _Shrinking(schedule, period, count, sizes).stand_in(args)
        if made is not None and points_of(made.schedule, sizes) <= max_points:
            return made
    return None


def _periods(factors: Sequence[int]) -> Iterator[int]:
    """Yield numbers of iterations that an axis may be shortened by, the best first."""
    together = lcm(*factors)
    if 1 < together <= _MAX_PERIOD:
        yield together
    yield from sorted({f for f in factors if f <= _MAX_PERIOD} | {4, 1}, reverse=True)


class _Shrinking:
    """The operations of one schedule, built again with shorter axes.

    An axis of a larger extent keeps `count` periods and the remainder.
    """

    def __init__(
        self, schedule: Schedule, period: int, count: int, sizes: Mapping[Var, int]
    ) -> None:
        self.schedule = schedule
        self.period = period
        self.count = count
        self.sizes = sizes
        # The extents that are read, of each tensor that has been read so far.
        self.needed: dict[Tensor, list[int]] = {}
        self.tensors: dict[Tensor, Tensor] = {}  # those that take the place of others
        self.extents: dict[str, int] = {}  # as in StandIn

    def stand_in(self, args: Sequence[Tensor | Var]) -> StandIn | None:
        """Return the schedule on shorter axes; None if it is illegal on these."""
        order = reachable_operations(self.schedule.outputs)
        # Consumers first: what they read decides how long their producers are.
        axes = {op: self._axes(op) for op in reversed(order)}
        for op in order:
            self._rebuild(op, *axes[op])
        try:
            outputs = [self.tensors[op.outputs[0]].op for op in self.schedule.outputs]
            made = replay(outputs, self.schedule.steps)
            fresh = tuple(self._argument(arg, made) for arg in args)
            lower(made, fresh)
        except RefcompError:
            return None
        return StandIn(made, fresh, self.extents)

    def _argument(self, arg: Tensor | Var, made: Schedule) -> Tensor | Var:
        """Return the argument in the place of `arg`, which a step may have made."""
        if not isinstance(arg, Tensor):
            return arg
        if arg in self.tensors:
            return self.tensors[arg]
        if find_stage(self.schedule.stages, arg) is None:
            return arg  # a placeholder that nothing reads
        name = self.schedule.stage_of(arg).name
        (stage,) = [stage for stage in made.stages if stage.name == name]
        return stage.op.outputs[arg.value_index]

    def _axes(self, op: Operation) -> tuple[list[IterVar], list[IterVar]]:
        """Return the shorter axes of `op` and those it reduces over; record what it reads."""
        if not isinstance(op, ComputeOp):
            return [], []
        read = [self.needed[t] for t in op.outputs if t in self.needed]
        needed = [max(extents) for extents in zip(*read, strict=True)]
        own = []
        for position, axis in enumerate(op.axis):
            extent = needed[position] if needed else 0
            if op in self.schedule.outputs:
                extent = max(extent, self._short(axis))
            own.append(self._shortened(op, axis, extent))
        reduced = [self._shortened(op, a, self._short(a)) for a in op.reduce_axis]
        ranged = reduced
        if op.reduction is not None and op.reduction.ranges:
            ranged = ranged_axes(_with_axes(op.reduction, reduced))
        self._record_reads(op, [*own, *ranged])
        return own, reduced

    def _short(self, axis: IterVar) -> int:
        extent = as_int(axis.extent) or 0
        if extent <= _MAX_UNCHANGED:
            return extent
        short = self.period * self.count + extent % self.period
        return min(extent, max(short, 2))

    def _shortened(self, op: Operation, axis: IterVar, extent: int) -> IterVar:
        if not isinstance(axis.extent, IntImm) or extent >= axis.extent.value:
            return axis
        self.extents[f"{op.name}.{axis.name}"] = extent
        return replace(axis, extent=IntImm(extent, I64))

    def _record_reads(self, op: ComputeOp, axes: Sequence[IterVar]) -> None:
        facts = Facts()
        for symbol, size in self.sizes.items():
            facts = facts.bind(symbol, IntImm(size, I64), IntImm(1, I64))
        for axis in axes:
            facts = facts.bind(axis.var, axis.minimum, axis.extent)
        for read in (node for body in op.body for node in walk(body)):
            if isinstance(read, TensorRead):
                tensor = read.tensor
                dims = zip(read.indices, tensor.shape, strict=True)
                found = [_extent_read(index, dim, facts) for index, dim in dims]
                known = self.needed.get(tensor, [0] * tensor.ndim)
                self.needed[tensor] = list(map(max, known, found))

    def _rebuild(
        self, op: Operation, axes: Sequence[IterVar], reduced: Sequence[IterVar]
    ) -> None:
        """Build `op` again on the shorter axes, and replace its tensors."""
        fresh: Operation
        shapes: list[tuple[Expr, ...]] = []
        if isinstance(op, ComputeOp):
            fresh = replace(op, axis=tuple(axes), body=tuple(self._body(op, reduced)))
            shapes = [tuple(axis.extent for axis in axes)] * len(op.outputs)
        else:
            fresh = PlaceholderOp(op.name, op.line)
            for tensor in op.outputs:
                needed = self.needed.get(tensor, [0] * tensor.ndim)
                shape: list[Expr] = []
                for dim, extent in zip(tensor.shape, needed, strict=True):
                    if isinstance(dim, IntImm):
                        shape.append(IntImm(min(dim.value, extent), I64))
                    else:
                        shape.append(dim)  # a symbol, which gets a small size anyway
                shapes.append(tuple(shape))
        pairs = zip(op.outputs, shapes, strict=True)
        fresh.outputs = tuple(
            Tensor(fresh, k, shape, old.dtype) for k, (old, shape) in enumerate(pairs)
        )
        self.tensors.update(zip(op.outputs, fresh.outputs, strict=True))

    def _body(self, op: ComputeOp, reduced: Sequence[IterVar]) -> Iterator[Expr]:
        def redirect(recurse: Rewrite, node: Node) -> Node:
            node = map_children(node, recurse)
            if isinstance(node, TensorRead):
                return TensorRead(self.tensors[node.tensor], node.indices)
            return node

        visit = rewriter(redirect)
        reduction = op.reduction
        if reduction is None:
            yield from map(visit, op.body)
            return
        sources = tuple(map(visit, reduction.sources))
        condition = visit(reduction.condition)
        shorter = _with_axes(reduction, reduced)
        ranges = tuple(map(visit, shorter.ranges))
        for k in range(len(op.body)):
            yield Reduce(reduction.reducer, sources, shorter.axes, condition, k, ranges)


def _with_axes(reduction: Reduce, axes: Sequence[IterVar]) -> Reduce:
    """Return a reduction over `axes`, shorter ones in the places of its own."""
    ranges: list[Expr] = []
    for place, axis in enumerate(axes):
        if reduction.ranges:
            minimum, extent = reduction.ranges[2 * place : 2 * place + 2]
            is_constant = isinstance(extent, IntImm)
            ranges += [minimum, axis.extent if is_constant else extent]
    return with_changes(reduction, axes=tuple(axes), ranges=tuple(ranges))


def _extent_read(index: Expr, dim: Expr, facts: Facts) -> int:
    """Return the extent of a dimension that `index` reads; all of `dim` if it is not known."""
    extent = as_int(dim) or 0
    if any(isinstance(node, TensorRead) for node in walk(index)):
        return extent
    high = interval(index, facts).high
    return extent if high is None else min(extent, max(high + 1, 1))

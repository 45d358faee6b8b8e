"""Stand-ins for computations that are too large to interpret: the same schedule on smaller tensors.

    C[i, j] = sum over k of A[i, k] * B[k, j],  all of 1024      ->     all of 33, say

Axes of constant extent become as short as they may be: what is left over by the factors that loops
are split by stays left over. What is read of a tensor then tells how much of it is needed; where
that is not known, as with indices that are data, it keeps its size. The axes keep their names, and
so the recorded primitives can be replayed. Symbols stay symbols.

Needs: computes and placeholders alone; scans and extern operations have no stand-ins. A stand-in is
another computation: it shows what the schedule does, not what passes do with the very extents of
the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm, prod
from typing import Any, cast

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
)
from refcomp.ir.stmt import For, Stmt
from refcomp.lowering.lower import lower
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.schedule.schedule import Schedule, replay
from refcomp.te.extern import ExternOp
from refcomp.te.operation import (
    ComputeOp,
    Operation,
    PlaceholderOp,
    reachable_operations,
)
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar, Tensor, TensorRead

_SHORT = 7  # axes up to here stay as they are
_MOST_WHOLE = 64  # iterations of all factors together


@dataclass(frozen=True, slots=True)
class StandIn:
    """A schedule with its arguments, and `extents`: what became of axes, by stage and axis."""

    schedule: Schedule
    args: tuple[Any, ...]
    extents: Mapping[str, int]


def points_of(schedule: Schedule, sizes: Mapping[Var, int]) -> int:
    """How many values the computes of the schedule combine, and extern operations write."""
    return sum(_points(stage.op, sizes) for stage in schedule.stages)


def _points(op: Operation, sizes: Mapping[Var, int]) -> int:
    if isinstance(op, ExternOp):
        return trips_of(op.body, sizes)
    if not isinstance(op, ComputeOp):
        return 0
    return prod(
        max(0, evaluate_expr(a.extent, sizes)) for a in (*op.axis, *op.reduce_axis)
    )


def trips_of(node: Node, sizes: Mapping[Var, int]) -> int:
    """About how often the innermost statements run."""
    trips = sum(
        trips_of(child, sizes) for child in children(node) if isinstance(child, Stmt)
    )
    if isinstance(node, For):
        around: dict[Var, int] = dict.fromkeys(variables_in(node.extent), 0)
        trips *= max(
            int(cast(int, evaluate_expr(node.extent, around | dict(sizes)))), 1
        )
    return max(trips, 1)


def factors_of(schedule: Schedule) -> list[int]:
    """The numbers greater than 1 among the arguments of the steps, such as factors of splits."""
    given = (
        value
        for step in schedule.steps
        for value in (*step.args, *(given for _, given in step.options))
    )
    return [value for value in given if type(value) is int and value > 1]


def find_stand_in(
    schedule: Schedule, args: Sequence[Any], sizes: Mapping[Var, int], most: int
) -> StandIn | None:
    """A stand-in that combines at most `most` values; None where there is none."""
    if not all(
        isinstance(stage.op, ComputeOp | PlaceholderOp) for stage in schedule.stages
    ):
        return None
    for whole, count in product(_wholes(factors_of(schedule)), (2, 1)):
        made = _Shrinking(schedule, whole, count, sizes).stand_in(args)
        if made is not None and points_of(made.schedule, sizes) <= most:
            return made
    return None


def _wholes(factors: Sequence[int]) -> Iterator[int]:
    """Numbers of iterations of which only some are kept, the best first."""
    together = lcm(*factors)
    if 1 < together <= _MOST_WHOLE:
        yield together
    yield from sorted({f for f in factors if f <= _MOST_WHOLE} | {4, 1}, reverse=True)


class _Shrinking:
    """The operations of a schedule, made anew with shorter axes."""

    def __init__(
        self, schedule: Schedule, whole: int, count: int, sizes: Mapping[Var, int]
    ) -> None:
        self.schedule, self.whole, self.count, self.sizes = (
            schedule,
            whole,
            count,
            sizes,
        )
        self.order = reachable_operations(schedule.outputs)
        self.needed: dict[Tensor, list[int]] = {}
        self.tensors: dict[Tensor, Tensor] = {}
        self.extents: dict[str, int] = {}

    def stand_in(self, args: Sequence[Any]) -> StandIn | None:
        """The schedule on shorter axes; None where it is not legal on these."""
        axes = {op: self._axes(op) for op in reversed(self.order)}
        for op in self.order:
            self._make(op, *axes[op])
        try:
            outputs = [self.tensors[op.outputs[0]].op for op in self.schedule.outputs]
            made = replay(outputs, self.schedule.steps)
            fresh = tuple(self._argument(arg, made) for arg in args)
            lower(made, fresh)
        except RefcompError:
            return None
        return StandIn(made, fresh, self.extents)

    def _argument(self, arg: Any, made: Schedule) -> Any:
        """The argument in the place of `arg`, which a step may have made."""
        if not isinstance(arg, Tensor) or arg in self.tensors:
            return self.tensors.get(arg, arg)
        name = self.schedule.stage_of(arg).name
        (stage,) = [stage for stage in made.stages if stage.name == name]
        return stage.op.outputs[arg.value_index]

    def _axes(self, op: Operation) -> tuple[list[IterVar], list[IterVar]]:
        """The axes of `op` and those it reduces over, shorter; notes what it reads."""
        if not isinstance(op, ComputeOp):
            return [], []
        needs = [self.needed[t] for t in op.outputs if t in self.needed]
        least = [max(column) for column in zip(*needs, strict=True)] or [0] * len(
            op.axis
        )
        is_output = op in self.schedule.outputs
        own = [
            self._shorter(op, axis, self._short(axis) if is_output else 0, need)
            for axis, need in zip(op.axis, least, strict=True)
        ]
        reduced = [
            self._shorter(op, axis, self._short(axis), 0) for axis in op.reduce_axis
        ]
        self._note_reads(op, [*own, *reduced])
        return own, reduced

    def _short(self, axis: IterVar) -> int:
        extent = as_int(axis.extent) or 0
        if extent <= _SHORT:
            return extent
        return min(extent, max(self.whole * self.count + extent % self.whole, 2))

    def _shorter(self, op: Operation, axis: IterVar, short: int, least: int) -> IterVar:
        extent = as_int(axis.extent)
        shorter = max(short, least)
        if extent is None or extent <= shorter:
            return axis
        self.extents[f"{op.name}.{axis.name}"] = shorter
        return replace(axis, extent=IntImm(shorter, I64))

    def _note_reads(self, op: ComputeOp, axes: Sequence[IterVar]) -> None:
        facts = Facts()
        for symbol, size in self.sizes.items():
            facts = facts.bind(symbol, IntImm(size, I64), IntImm(1, I64))
        for axis in axes:
            facts = facts.bind(axis.var, axis.minimum, axis.extent)
        for read in (node for body in op.body for node in walk(body)):
            if isinstance(read, TensorRead):
                found = [
                    _needed(index, dim, facts)
                    for index, dim in zip(read.indices, read.tensor.shape, strict=True)
                ]
                known = self.needed.get(read.tensor, [0] * len(found))
                self.needed[read.tensor] = list(map(max, known, found))

    def _make(
        self, op: Operation, own: Sequence[IterVar], reduced: Sequence[IterVar]
    ) -> None:
        if isinstance(op, ComputeOp):
            fresh: Any = replace(
                op, axis=tuple(own), body=tuple(self._body(op, reduced))
            )
            shapes = [tuple(axis.extent for axis in own)] * len(op.outputs)
        else:
            fresh = PlaceholderOp(op.name, op.line)
            shapes = [self._shape(tensor) for tensor in op.outputs]
        pairs = zip(op.outputs, shapes, strict=True)
        fresh.outputs = tuple(
            Tensor(fresh, k, s, t.dtype) for k, (t, s) in enumerate(pairs)
        )
        self.tensors.update(zip(op.outputs, fresh.outputs, strict=True))

    def _body(self, op: ComputeOp, reduced: Sequence[IterVar]) -> Iterator[Expr]:
        visit, reduction = rewriter(self._redirected), op.reduction
        if reduction is None:
            yield from map(visit, op.body)
            return
        sources, condition = (
            tuple(map(visit, reduction.sources)),
            visit(reduction.condition),
        )
        for k in range(len(op.body)):
            yield Reduce(reduction.reducer, sources, tuple(reduced), condition, k)

    def _redirected(self, recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if isinstance(node, TensorRead):
            return TensorRead(self.tensors[node.tensor], node.indices)
        return node

    def _shape(self, tensor: Tensor) -> tuple[Expr, ...]:
        needed = self.needed.get(tensor, [0] * tensor.ndim)
        return tuple(
            IntImm(min(dim.value, need), I64) if isinstance(dim, IntImm) else dim
            for dim, need in zip(tensor.shape, needed, strict=True)
        )


def _needed(index: Expr, dim: Expr, facts: Facts) -> int:
    """How long a dimension has to be for `index`: as long as it is, where that is not known."""
    most = as_int(dim) or 0
    reads = any(isinstance(node, TensorRead) for node in walk(index))
    high = None if reads else interval(index, facts).high
    return most if high is None else min(most, max(high + 1, 1))

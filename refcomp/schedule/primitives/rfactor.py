"""rfactor: divide a reduction into two.

The first keeps the results along one of the loops apart. The second combines these results.

    B[i] = sum over k of A[i, k]         with k split into k.outer, k.inner of 4 iterations:

    B.rf[k.inner, i] = sum over k.outer of A[i, k.outer * 4 + k.inner]
    B[i] = sum over k.inner.v of B.rf[k.inner.v, i]

The order of combination changes, as reducers allow (`refcomp.te.check_reducer`). Iterations beyond
the end of the reduction contribute the identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce as fold
from typing import NoReturn, TypeVar

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import BOOL, I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.snippets import Snippet
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, And, Expr, IfThenElseExpr, IntImm, Max, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.schedule.axes import root_indices
from refcomp.schedule.dependent_axes import (
    LoopPlace,
    LoopRanges,
    bind_loops,
    connected,
    infer_ranges,
)
from refcomp.schedule.relations import Relation
from refcomp.schedule.scan_body import scan_attach_point
from refcomp.schedule.stage import Provenance, Stage, StageLoops
from refcomp.schedule.stage_graph import add_stage, replace_body
from refcomp.te.dependent_ranges import reads_element
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.operation import ComputeOp
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.tensor import DATA_PARALLEL, REDUCTION, AxisRange, IterVar, Tensor, axis

T = TypeVar("T")
_ALWAYS = IntImm(1, BOOL)
_NEVER = IntImm(0, BOOL)
_NONE = IntImm(0, I64)


def rfactor(
    stage: Stage, provenance: Provenance, axis: object, factor_axis: object = 0
) -> tuple[Tensor, ...]:
    """Move the reduction over all loops but `axis` to a new stage, and reduce over `axis` here.

    `axis` becomes dimension `factor_axis` of the new stage's tensors, counted from the end if it is
    negative. The other reduction loops move to the new stage, with their marks and hints. Axes that
    `axis` and they were split from are lost. The loops over the output stay here.

    Returns:
        The tensors of the new stage.
    """
    op = stage.op
    if not isinstance(op, ComputeOp) or op.reduction is None:
        what = (
            "it has no reduction" if isinstance(op, ComputeOp) else f"it is {op.what}"
        )
        remedy = "factor a stage that a reducer, such as sum, computes"
        if isinstance(op, HybridOp):
            remedy += "; or keep partial results in an array of the hybrid function, and combine "
            remedy += "them in a loop behind"
        _refuse(stage, what, remedy)
    loop = _checked_loop(stage, axis)
    position = _checked_position(op, factor_axis, stage)
    parts = _Parts(stage, loop, position)
    tensors = parts.make_stage(provenance)
    _reduce_the_rest(stage, parts, position, tensors, provenance)
    return tensors


def _checked_loop(stage: Stage, given: object) -> IterVar:
    loop = stage.replaceable_leaf(given, "rfactor")
    if loop.kind != REDUCTION:
        known = ", ".join(
            leaf.name for leaf in stage.loops.leaves if leaf.kind == REDUCTION
        )
        why = "it is not a reduction axis, so its results are apart already"
        stage.refuse(
            "rfactor",
            loop.name,
            why,
            f"use one of {known}",
            earlier=[stage.declaration()],
        )
    if reads_element(loop.minimum) or reads_element(loop.extent):
        why = f"the number of iterations of loop {loop.name} is read from a tensor"
        remedy = "split it by a factor, and call rfactor for the inner loop"
        _refuse(stage, why, remedy, [stage.declaration()])
    for attached in stage.attached:
        why = f"stage {attached.name} is computed at one of its loops"
        point = attached.attach_point
        earlier = [] if point is None else [point.snippet(f"stage {attached.name}")]
        _refuse(stage, why, "call rfactor first", earlier)
    return loop


def _checked_position(op: ComputeOp, given: object, stage: Stage) -> int:
    rank = len(op.axis)
    if (
        isinstance(given, int)
        and not isinstance(given, bool)
        and -rank - 1 <= given <= rank
    ):
        return given if given >= 0 else given + rank + 1
    raise UserError(
        f"cannot place the factored axis of stage {stage.name} at {given!r}",
        where=f"stage {stage.name}",
        why=f"its results have {rank} dimensions, and the new tensor has one more",
        remedy=f"pass a factor_axis of {-rank - 1} .. {rank}",
    )


class _Parts:
    """The axes and expressions of the new stage."""

    def __init__(self, stage: Stage, loop: IterVar, position: int) -> None:
        assert isinstance(stage.op, ComputeOp) and stage.op.reduction is not None
        self.stage = stage  # whose reduction is divided
        self.loop = loop  # whose results are kept apart
        self.op = stage.op
        self.reduction = stage.op.reduction
        # The axes that `loop` was split from or fused with, directly or not. They are lost.
        self.touched = connected(loop, stage.loops.relations)
        self.alone = self._touched_loops()
        self.ranges = _ranges_of(self.alone, self.reduction)
        # Axes of the new stage: first that of `loop`, then one for each axis of the output.
        self.length = _length(loop, self.ranges)
        self.factored = axis(loop.name, 0, self.length, DATA_PARALLEL)
        self.outputs = []
        for own in self.op.axis:
            self.outputs.append(axis(f"{own.name}.rf", 0, own.extent, DATA_PARALLEL))
        self.axes = [*self.outputs[:position], self.factored, *self.outputs[position:]]
        # The other loops of the reduction, which move to the new stage.
        reductions = [leaf for leaf in stage.loops.leaves if leaf.kind == REDUCTION]
        self.others = [leaf for leaf in reductions if leaf is not loop]
        # The new stage reduces over untouched axes, and over the loops that are left of the others.
        before, after = self._untouched()
        left = [a for a in self.others if a in self.touched]
        self.reduced = (*before, *left, *after)

    def _untouched(self) -> tuple[list[IterVar], list[IterVar]]:
        """Return the untouched axes of the reduction: those to list before the loops, and after.

        The range of an axis may depend on axes that are listed before it.
        """
        axes = self.reduction.axes
        untouched = [a for a in axes if a not in self.touched]
        if not self.reduction.ranges:
            return untouched, []
        first = min(k for k, a in enumerate(axes) if a in self.touched)
        before = [a for a in axes[:first] if a not in self.touched]
        return before, [a for a in untouched if a not in before]

    def _touched_loops(self) -> Stage:
        """Return a stage of the loops that are connected with `loop`, and of untouched axes.

        For it, `root_indices` finds the indices and guards that lowering would find.
        """
        loops = [a for a in self.stage.loops.leaves if a in self.touched]
        relations = [r for r in self.stage.loops.relations if r.outer in self.touched]
        before, after = self._untouched()
        leaves = [*self.op.axis, *before, *loops, *after]
        remaining = StageLoops(leaves, relations)
        alone = Stage(self.op, self.op.name, is_output=False, loops=remaining)
        # Its results are kept apart, so its range must not depend on axes.
        alone.threads.bound[self.loop] = self.loop
        return alone

    def make_stage(self, provenance: Provenance) -> tuple[Tensor, ...]:
        """Insert the new stage, move the reduction loops to it, and return its tensors."""
        name = f"{self.op.name}.rf"
        op = ComputeOp(
            name,
            provenance.line,
            tuple(self.axes),
            self._bodies(),
            waits_for_scan=self.op.waits_for_scan,
        )
        shape = tuple(a.extent for a in self.axes)
        dtypes = enumerate(tensor.dtype for tensor in self.op.outputs)
        op.outputs = tuple(Tensor(op, k, shape, dtype) for k, dtype in dtypes)
        stage = add_stage(op, op.name, self.stage, after=False, provenance=provenance)
        stage.placement = scan_attach_point(self.stage) or "root"
        old = self.stage.loops
        fresh = stage.loops
        fresh.leaves = [*self.axes, *self.others]
        kept = [r for r in old.relations if r.outer not in self.touched]
        fresh.relations = [relation for relation in kept if _is_of_reduction(relation)]
        _move(old.marks, fresh.marks)
        _move(self.stage.threads.bound, stage.threads.bound)
        _move(old.provenance, fresh.provenance)
        fresh.provenance[self.factored] = provenance
        self._move_hints(old, fresh)
        return op.outputs

    def _move_hints(self, old: StageLoops, fresh: StageLoops) -> None:
        """Move the hints of the reduction loops with the loops."""
        moved = {self.loop: self.factored} | {a: a for a in self.others}
        for pragma in old.pragmas:
            if pragma.axis in moved:
                fresh.pragmas.append(replace(pragma, axis=moved[pragma.axis]))
        for prefetch in old.prefetches:
            if prefetch.axis in moved:
                fresh.prefetches.append(replace(prefetch, axis=moved[prefetch.axis]))
        old.pragmas = [hint for hint in old.pragmas if hint.axis not in moved]
        old.prefetches = [hint for hint in old.prefetches if hint.axis not in moved]

    def _bodies(self) -> tuple[Expr, ...]:
        """Return the value of each output in terms of the new stage's axes."""
        indices, guards = self._indices()
        condition = substitute(self.reduction.condition, indices)
        # Where the guards fail, the condition must not be evaluated: it may read memory.
        if guards:
            is_inside = fold(And, guards)
            if as_int(condition):
                condition = is_inside
            else:
                condition = IfThenElseExpr(is_inside, condition, _NEVER)
        given = self.reduction.sources
        sources = tuple(substitute(source, indices) for source in given)
        reducer = self.reduction.reducer
        if self.reduced:
            ranges = tuple(self._ranges_left(indices))
            return _reductions(reducer, sources, self.reduced, condition, ranges)
        # Nothing is left to reduce: each element is one source, or the identity.
        if as_int(condition):
            return sources
        pairs = zip(sources, reducer.identities, strict=True)
        return tuple(IfThenElseExpr(condition, *pair) for pair in pairs)

    def _indices(self) -> tuple[dict[Var, Expr], list[Expr]]:
        """Return the operation's axes in terms of the new stage's axes, and the guards."""
        ranges = self.ranges
        found = root_indices(
            self.alone,
            ranges.extents,
            _facts(self.alone, ranges),
            begins=ranges.begins,
            more_guards=ranges.guards,
            output_facts=_output_facts(self.alone, ranges),
        )
        # The factored axis counts from 0, the loop from its minimum.
        factored = simplify(self.factored.var + ranges.begins[self.loop])
        fresh: dict[Var, Expr] = {self.loop.var: factored}
        fresh |= {a.var: b.var for a, b in zip(self.op.axis, self.outputs, strict=True)}
        indices = dict(fresh)
        for root in self.stage.roots:
            if root in self.touched:
                value = substitute(found.values[root], fresh)
                indices[root.var] = simplify(value)
        # Untouched axes keep their ranges.
        touched = [guard for guard in found.guards if guard.axis in self.touched]
        guards = [substitute(guard.condition, fresh) for guard in touched]
        return indices, guards

    def _ranges_left(self, indices: Mapping[Var, Expr]) -> Iterator[Expr]:
        """Yield minimum and extent of each axis that is left, if one depends on others."""
        if not self.reduction.ranges:
            return
        for left in self.reduced:
            known = AxisRange(self.ranges.begins[left], self.ranges.extents[left])
            if left not in self.touched:
                known = self.reduction.range_of(left)
            yield substitute(known.minimum, indices)
            yield substitute(known.extent, indices)


def _reductions(
    reducer: CommReducer,
    sources: tuple[Expr, ...],
    axes: tuple[IterVar, ...],
    condition: Expr,
    ranges: tuple[Expr, ...] = (),
) -> tuple[Expr, ...]:
    """Return each value of the reduction as an expression."""
    return tuple(
        Reduce(reducer, sources, axes, condition, k, ranges)
        for k in range(len(sources))
    )


def _ranges_of(alone: Stage, reduction: Reduce) -> LoopRanges:
    variables = {leaf: leaf.var for leaf in alone.loops.leaves}
    facts = _shape_facts(alone.loops.leaves)
    place = LoopPlace(facts, variables, keeps_reads=True)
    return infer_ranges(alone, reduction, place)


def _length(loop: IterVar, ranges: LoopRanges) -> Expr:
    """Return the extent as a dimension, which must not be negative.

    A loop from 2 to m has extent -1 for m = 1.
    """
    extent = ranges.extents[loop]
    is_proved = prove(LE(_NONE, extent), _shape_facts([loop]))
    return extent if is_proved else simplify(Max(extent, _NONE))


def _shape_facts(loops: Sequence[IterVar]) -> Facts:
    """Return the fact that the shape variables in the extents are not negative."""
    symbols = [var for loop in loops for var in variables_in(loop.extent)]
    own = {loop.var for loop in loops}
    facts = Facts()
    for symbol in dict.fromkeys(symbols):
        if symbol not in own:
            facts = facts.nonnegative(symbol)
    return facts


def _facts(alone: Stage, ranges: LoopRanges) -> Facts:
    """Return the facts that hold inside all loops of a stage."""
    leaves = alone.loops.leaves
    variables = {leaf: leaf.var for leaf in leaves}
    return bind_loops(_shape_facts(leaves), leaves, ranges, variables)


def _output_facts(alone: Stage, ranges: LoopRanges) -> Facts | None:
    """Return what holds outside of the reduction, if it may be empty for some elements."""
    if not ranges.dependent:
        return None
    outputs = [leaf for leaf in alone.loops.leaves if leaf.kind != REDUCTION]
    variables = {leaf: leaf.var for leaf in outputs}
    return bind_loops(_shape_facts(alone.loops.leaves), outputs, ranges, variables)


def _is_of_reduction(relation: Relation) -> bool:
    return relation.outer.kind == REDUCTION


def _move(old: dict[IterVar, T], fresh: dict[IterVar, T]) -> None:
    """Move the entries of reduction axes."""
    for loop in [loop for loop in old if loop.kind == REDUCTION]:
        fresh[loop] = old.pop(loop)


def _reduce_the_rest(
    stage: Stage,
    parts: _Parts,
    position: int,
    tensors: Sequence[Tensor],
    provenance: Provenance,
) -> None:
    """Let the stage reduce `tensors` over an axis that replaces the loop."""
    loop = parts.loop
    rest = axis(f"{loop.name}.v", 0, parts.length, REDUCTION)
    op = stage.op
    assert isinstance(op, ComputeOp) and op.reduction is not None
    at = [*op.axis[:position], rest, *op.axis[position:]]
    sources = tuple(tensor[tuple(at)] for tensor in tensors)
    reducer = op.reduction.reducer
    replace_body(stage, _reductions(reducer, sources, (rest,), _ALWAYS))
    loops = stage.loops
    loops.relations = [r for r in loops.relations if not _is_of_reduction(r)]
    leaves = [rest if leaf is loop else leaf for leaf in loops.leaves]
    loops.leaves = [leaf for leaf in leaves if leaf is rest or leaf.kind != REDUCTION]
    loops.provenance[rest] = provenance


def _refuse(
    stage: Stage, why: str, remedy: str, earlier: Iterable[Snippet] = ()
) -> NoReturn:
    raise UserError(
        f"cannot factor the reduction of stage {stage.name}",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy,
        earlier=earlier,
    )

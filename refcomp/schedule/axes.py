"""Extents and indices of the axes of one stage.

`infer_extents` computes the extent of every axis, from the axes of the operation down to the loops.
`root_indices` expresses the axes of the operation by the loops. It also returns guards, which skip
iterations outside of the tensor. There are two reasons for these. The last iterations of a split
lie beyond the end if its factor does not divide the extent. And the region of an attached stage may
reach beyond its tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.records import record
from refcomp.ir.expr import LE, LT, Expr, IntImm, Var
from refcomp.schedule.relations import Fuse, Split
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import REDUCTION, IterVar


@record
class Region:
    """The part of a stage's tensors that is computed at a time."""

    origin: tuple[Expr, ...]  # the first index in each dimension
    extent: tuple[Expr, ...]  # the number of elements in each dimension


@record(eq=False)
class AxisGuard:
    """A condition. An iteration for which it is false is skipped."""

    axis: IterVar | None  # the axis that is kept in range; None if threads are selected
    condition: Expr


@record
class Indices:
    """The axes of a stage, as functions of its loops."""

    values: Mapping[IterVar, Expr]  # axis -> an expression of loop variables
    guards: tuple[AxisGuard, ...]  # an iteration runs only if all of them hold


def infer_extents(
    stage: Stage,
    region: Region | None = None,
    dependent: Mapping[IterVar, Expr] = MappingProxyType({}),
    known: Facts | None = None,
) -> dict[IterVar, Expr]:
    """Return the extent of every axis of the stage.

    Args:
        stage: the stage.
        region: the part of its tensors that is computed; by default all.
        dependent: the extents of the reduction axes whose ranges depend on other axes.
        known: what holds for the variables of extents; None if they are shape variables.
    """
    extents = {axis: axis.extent for axis in (*stage.roots, *stage.loops.singles)}
    extents |= dependent
    if region is not None:
        # Not strict, here and below: a region has no reduction axes, which come last.
        extents |= zip(stage.roots, region.extent, strict=False)
    for relation in stage.loops.relations:
        if isinstance(relation, Split):
            outer, inner = relation.extents(extents[relation.parent], known)
            extents[relation.outer] = outer
            extents[relation.inner] = inner
        else:
            product = extents[relation.outer] * extents[relation.inner]
            extents[relation.fused] = simplify(product)
    return extents


def root_indices(
    stage: Stage,
    extents: Mapping[IterVar, Expr],
    facts: Facts,
    variables: Mapping[IterVar, Var] | None = None,
    region: Region | None = None,
    begins: Mapping[IterVar, Expr] = MappingProxyType({}),
    more_guards: Sequence[AxisGuard] = (),
    output_facts: Facts | None = None,
) -> Indices:
    """Express the axes of a stage by its loops, with the guards that cannot be proved redundant.

    Args:
        stage: the stage.
        extents: the result of `infer_extents`.
        facts: the ranges of the loop variables.
        variables: the variables of the loops; by default the variables of the leaves.
        region: the part of the tensors that is computed; by default all.
        begins: the first values of axes whose ranges depend on other axes.
        more_guards: guards beside those that splits and the region need.
        output_facts: what holds outside of the reduction; by default `facts`. Loops of an empty
            range imply nothing for what is computed outside of them, such as initial values.

    Values of the operation's axes include the minimum of the axis, or the origin of the region.
    Values of derived axes count from 0.
    """
    values: dict[IterVar, Expr] = {leaf: leaf.var for leaf in stage.loops.leaves}
    values.update(variables or {})
    around = facts if output_facts is None else output_facts
    splits = [r for r in stage.loops.relations if isinstance(r, Split)]
    outers = {split.outer for split in splits}
    guards: list[AxisGuard] = []
    for relation in reversed(stage.loops.relations):
        if isinstance(relation, Fuse):
            inner_extent = extents[relation.inner]
            outer, inner = relation.indices(values[relation.fused], inner_extent)
            values[relation.outer] = simplify(outer, around)
            values[relation.inner] = simplify(inner, around)
        else:
            step = extents[relation.inner]
            value = simplify(
                values[relation.outer] * step + values[relation.inner], around
            )
            values[relation.parent] = value
            # outer * step + inner < extent implies outer < ceil(extent / step): the guard of a
            # split's parent is also that of its outer axis.
            if relation.parent not in outers:
                is_inside = LT(value, extents[relation.parent])
                guards.append(AxisGuard(relation.parent, is_inside))
    origins = {root: begins.get(root, root.minimum) for root in stage.roots}
    _add_origins(stage, values, origins, region, around)
    if region is not None:
        guards += _domain_guards(stage, values)
    guards += more_guards
    if output_facts is None:
        return Indices(values, _needed(guards, facts))
    # The guards of the output first: they are evaluated outside of the reduction.
    of_output = [g for g in guards if g.axis is None or g.axis.kind != REDUCTION]
    needed = _needed(of_output, around)
    for guard in needed:
        facts = facts.assume(guard.condition)
    of_reduction = [guard for guard in guards if guard not in of_output]
    return Indices(values, (*needed, *_needed(of_reduction, facts)))


def _add_origins(
    stage: Stage,
    values: dict[IterVar, Expr],
    minima: Mapping[IterVar, Expr],
    region: Region | None,
    facts: Facts,
) -> None:
    """Add the minimum, or the origin of the region, to the values of the operation's axes.

    A loop over such an axis itself already begins at the minimum.
    """
    leaves = set(stage.loops.leaves)
    origins = {root: first for root, first in minima.items() if root not in leaves}
    if region is not None:
        origins |= zip(stage.roots, region.origin, strict=False)
    for root, origin in origins.items():
        values[root] = simplify(origin + values[root], facts)


def _domain_guards(stage: Stage, values: Mapping[IterVar, Expr]) -> list[AxisGuard]:
    guards: list[AxisGuard] = []
    for axis, dim in zip(stage.roots, stage.op.outputs[0].shape, strict=False):
        guards.append(AxisGuard(axis, LT(values[axis], dim)))
        guards.append(AxisGuard(axis, LE(IntImm(0, I64), values[axis])))
    return guards


def _needed(guards: list[AxisGuard], facts: Facts) -> tuple[AxisGuard, ...]:
    """Return the guards that cannot be proved to hold always.

    Guards of the operation's own axes come first, since they often imply the others.
    """
    needed = []
    for guard in reversed(guards):
        # Later guards are evaluated only if this guard holds, so it is a fact for their proofs.
        if not prove(guard.condition, facts):
            needed.append(guard)
            facts = facts.assume(guard.condition)
    return tuple(needed)

"""Bounds and indices of one stage: from its operation's own axes down to its loops, and back up.

`infer_extents` gives the extent of every axis of a stage. `root_indices` gives the value of each
of the operation's axes in terms of the loop variables, and the conditions under which an iteration
lies inside: splits that do not divide visit points beyond the end, and what an attached stage is
asked for may lie beyond its tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import LE, LT, Expr, IntImm, Var
from refcomp.schedule.relations import Fuse, Split
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import IterVar


@dataclass(frozen=True, slots=True)
class Region:
    """The part of a stage's tensors that is computed at a time: from `origin`, `extent` elements,
    in each dimension."""

    origin: tuple[Expr, ...]
    extent: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AxisGuard:
    """A condition that must hold for an iteration to count."""

    # The axis that the condition keeps inside; None for a choice among threads.
    axis: IterVar | None
    condition: Expr


@dataclass(frozen=True, slots=True)
class Indices:
    """The axes of a stage, as functions of its loops."""

    # Axis -> its value, an expression of loop variables.
    values: Mapping[IterVar, Expr]
    # They must all hold for an iteration to count.
    guards: tuple[AxisGuard, ...]


def infer_extents(stage: Stage, region: Region | None = None) -> dict[IterVar, Expr]:
    """The extent of every axis of the stage, when `region` is computed: all without one."""
    extents = {root: root.extent for root in stage.roots}
    if region is not None:
        extents |= zip(stage.roots, region.extent, strict=False)
    for relation in stage.loops.relations:
        if isinstance(relation, Split):
            outer, inner = relation.extents(extents[relation.parent])
            extents[relation.outer], extents[relation.inner] = outer, inner
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
) -> Indices:
    """The axes as expressions of the loops, and the guards that are not proved needless.

    `variables` are those of the loops, the leaves' own if None; `facts` knows their ranges. Values
    of the operation's axes are absolute (the minimum, or the region's origin, is added); those of
    derived axes count from 0.
    """
    values: dict[IterVar, Expr] = {leaf: leaf.var for leaf in stage.loops.leaves}
    values.update(variables or {})
    outers = {
        relation.outer
        for relation in stage.loops.relations
        if isinstance(relation, Split)
    }
    guards: list[AxisGuard] = []
    for relation in reversed(stage.loops.relations):
        if isinstance(relation, Fuse):
            inner_extent = extents[relation.inner]
            outer, inner = relation.indices(values[relation.fused], inner_extent)
            values[relation.outer] = simplify(outer, facts)
            values[relation.inner] = simplify(inner, facts)
        else:
            step = extents[relation.inner]
            value = simplify(
                values[relation.outer] * step + values[relation.inner], facts
            )
            values[relation.parent] = value
            # outer * step + inner < extent implies outer < ceil(extent / step): the guard of a
            # split's parent is also that of its outer axis.
            if relation.parent not in outers:
                is_inside = LT(value, extents[relation.parent])
                guards.append(AxisGuard(relation.parent, is_inside))
    _add_origins(stage, values, region, facts)
    if region is not None:
        guards += _domain_guards(stage, values)
    return Indices(values, _needed(guards, facts))


def _add_origins(
    stage: Stage, values: dict[IterVar, Expr], region: Region | None, facts: Facts
) -> None:
    """A loop over one of the operation's axes itself counts from the axis' minimum already."""
    leaves = set(stage.loops.leaves)
    origins = {root: root.minimum for root in stage.roots if root not in leaves}
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
    """The guards that are not proved, the operation's own axes first: they often imply the rest."""
    needed = []
    for guard in reversed(guards):
        if not prove(guard.condition, facts):
            needed.append(guard)
            facts = facts.assume(guard.condition)
    return tuple(needed)

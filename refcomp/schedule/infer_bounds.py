"""Bounds and indices: from an operation's own axes down to its loops, and back up.

`infer_extents` gives the extent of every axis of a stage. `root_indices` gives the value of each
of the operation's axes in terms of the loop variables, and the conditions under which an iteration
lies inside: splits that do not divide visit points beyond the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.arith import Facts, prove, simplify
from refcomp.ir.expr import LT, Expr
from refcomp.schedule.relations import Fuse, Split
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import IterVar


@dataclass(frozen=True, slots=True)
class Indices:
    """`values`: each axis as an expression of loop variables. `guards`: conditions, each with the
    axis it keeps inside, that must all hold for an iteration to count."""

    values: Mapping[IterVar, Expr]
    guards: tuple[tuple[IterVar, Expr], ...]


def infer_extents(stage: Stage) -> dict[IterVar, Expr]:
    """The extent of every axis of the stage, when all of the operation is computed."""
    extents = {root: root.extent for root in stage.roots}
    for relation in stage.relations:
        if isinstance(relation, Split):
            outer, inner = relation.extents(extents[relation.parent])
            extents[relation.outer], extents[relation.inner] = outer, inner
        else:
            product = extents[relation.outer] * extents[relation.inner]
            extents[relation.fused] = simplify(product)
    return extents


def root_indices(stage: Stage, extents: Mapping[IterVar, Expr], facts: Facts) -> Indices:
    """The axes as expressions of the loops, and the guards that are not proved needless.

    `facts` knows the ranges of the loop variables. Values of the operation's axes are absolute (the
    minimum is added); those of derived axes count from 0.
    """
    values: dict[IterVar, Expr] = {leaf: leaf.var for leaf in stage.leaves}
    outers = {relation.outer for relation in stage.relations if isinstance(relation, Split)}
    guards: list[tuple[IterVar, Expr]] = []
    for relation in reversed(stage.relations):
        if isinstance(relation, Fuse):
            inner_extent = extents[relation.inner]
            outer, inner = relation.indices(values[relation.fused], inner_extent)
            values[relation.outer] = simplify(outer, facts)
            values[relation.inner] = simplify(inner, facts)
        else:
            step = extents[relation.inner]
            value = simplify(values[relation.outer] * step + values[relation.inner], facts)
            values[relation.parent] = value
            # outer * step + inner < extent implies outer < ceil(extent / step): the guard of a
            # split's parent is also that of its outer axis.
            if relation.parent not in outers:
                guards.append((relation.parent, LT(value, extents[relation.parent])))
    leaves = set(stage.leaves)
    for root in stage.roots:
        if root not in leaves:
            values[root] = simplify(root.minimum + values[root], facts)
    return Indices(values, _needed(guards, facts))


def _needed(guards: list[tuple[IterVar, Expr]], facts: Facts) -> tuple[tuple[IterVar, Expr], ...]:
    """The guards that are not proved, the operation's own axes first: they often imply the rest."""
    needed = []
    for axis, guard in reversed(guards):
        if not prove(guard, facts):
            needed.append((axis, guard))
            facts = facts.assume(guard)
    return tuple(needed)

"""Which guards an attached stage needs: those without which it might touch what is not there.

Before:  if (io * 8 + i < n) { T[i] = P[io, i] }        with T a tile, P whole tiles
After:   T[i] = P[io, i]

What is computed of a region beyond the stage's tensor is read by nobody, and lies in memory that
is the region's own. So a guard that only keeps that from being computed may go, if all reads stay
inside of what was computed, and all writes in the region. Whole tiles without conditions are what
keeps accumulators in registers. Guards of reduction axes and of stages at the root always stay,
and so do all guards of a stage that reads at an index which is read from a tensor itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.arith import Facts, prove, simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.expr import LE, LT, Expr, IntImm, PureExtern
from refcomp.ir.rewrite import substitute, walk
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.schedule.axes import AxisGuard, Region
from refcomp.te.tensor import REDUCTION, Tensor, TensorRead


@dataclass(frozen=True, slots=True, eq=False)
class _IndexRange:
    """An index of an access, which must be at least `low` and below `end`."""

    index: Expr
    low: Expr
    end: Expr


def needed_guards(
    bounds: StageBounds, regions: Mapping[Tensor, Region]
) -> list[AxisGuard]:
    """The guards of a stage that stay; `regions` are what is computed of attached stages."""
    kept: list[AxisGuard] = list(bounds.indices.guards)
    if bounds.region is None or not kept:
        return kept
    ranges = _ranges(bounds, bounds.region, regions)
    if ranges is None:
        return kept
    for guard in tuple(kept):
        rest = [other for other in kept if other is not guard]
        if guard.axis is None or guard.axis.kind == REDUCTION:
            continue
        if _all_hold(ranges, bounds.facts, rest):
            kept = rest
    return kept


def _all_hold(
    ranges: Sequence[_IndexRange], facts: Facts, guards: Sequence[AxisGuard]
) -> bool:
    for guard in guards:
        facts = facts.assume(guard.condition)
    return all(
        prove(LE(one.low, one.index), facts) and prove(LT(one.index, one.end), facts)
        for one in ranges
    )


def _ranges(
    bounds: StageBounds, region: Region, regions: Mapping[Tensor, Region]
) -> list[_IndexRange] | None:
    """What must hold of every access; None where that cannot be said."""
    values = [bounds.indices.values[axis] for axis in bounds.stage.roots]
    written = list(_in_region(values[: len(region.origin)], region, bounds.facts))
    named = {axis.var: bounds.indices.values[axis] for axis in bounds.stage.roots}
    read: list[_IndexRange] = []
    for node in (node for body in bounds.bodies for node in walk(body)):
        if isinstance(node, PureExtern):
            return None
        if isinstance(node, TensorRead):
            indices = [
                simplify(substitute(index, named), bounds.facts)
                for index in node.indices
            ]
            if any(
                isinstance(part, TensorRead)
                for index in indices
                for part in walk(index)
            ):
                return None
            read += _in_tensor(node.tensor, indices, regions, bounds.facts)
    return _distinct([*written, *read], bounds.facts)


def _distinct(ranges: Sequence[_IndexRange], facts: Facts) -> list[_IndexRange]:
    """Each of them once: the reads of a stencil have much in common."""
    intern = facts.table.intern
    keys = (
        tuple(id(intern(e)) for e in (one.index, one.low, one.end)) for one in ranges
    )
    return list(dict(zip(keys, ranges, strict=True)).values())


def _in_tensor(
    tensor: Tensor,
    indices: Sequence[Expr],
    regions: Mapping[Tensor, Region],
    facts: Facts,
) -> Iterator[_IndexRange]:
    for index, dim in zip(indices, tensor.shape, strict=True):
        yield _IndexRange(index, IntImm(0, I64), dim)
    if tensor in regions:
        yield from _in_region(indices, regions[tensor], facts)


def _in_region(
    indices: Sequence[Expr], region: Region, facts: Facts
) -> Iterator[_IndexRange]:
    for index, origin, extent in zip(
        indices, region.origin, region.extent, strict=True
    ):
        yield _IndexRange(simplify(index - origin, facts), IntImm(0, I64), extent)

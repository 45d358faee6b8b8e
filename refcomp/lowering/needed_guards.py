"""Finds the guards that an attached stage needs to stay inside its memory.

Before:  if (io * 8 + i < n) { T[i] = P[io, i] }        with T a tile, P whole tiles
After:   T[i] = P[io, i]

A region may reach beyond the stage's tensor. Nobody reads the part beyond, and the memory of the
region has room for it. A guard that only keeps this part from being computed is therefore not
needed under two conditions. All reads stay inside of the computed elements, and all writes inside
of the region. It also does harm: accumulators stay in registers only in whole tiles without
conditions.

Three kinds of guards always stay: of reduction axes, of stages at the root, and of stages
that read at an index which is itself read from a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
    is_write: bool = False  # of the stage's own result

    def holds(self, facts: Facts) -> bool:
        """Return True if the index is proved to lie in the range."""
        if not prove(LE(self.low, self.index), facts):
            return False
        return prove(LT(self.index, self.end), facts)


def needed_guards(
    bounds: StageBounds, regions: Mapping[Tensor, Region]
) -> list[AxisGuard]:
    """Return the guards of a stage that are needed.

    `regions` has the part of each attached stage's tensor that is computed.
    """
    kept = list(bounds.indices.guards)
    if bounds.region is None or not kept:
        return kept
    ranges = _ranges(bounds, bounds.region, regions)
    if ranges is None:
        return kept
    for guard in tuple(kept):
        rest = [other for other in kept if other is not guard]
        if guard.axis is None or guard.axis.kind == REDUCTION:
            continue
        inside = bounds.facts
        around = bounds.output_facts
        for other in rest:
            inside = inside.assume(other.condition)
            if other.axis is None or other.axis.kind != REDUCTION:
                around = around.assume(other.condition)
        if all(one.holds(around if one.is_write else inside) for one in ranges):
            kept = rest
    return kept


def _ranges(
    bounds: StageBounds, region: Region, regions: Mapping[Tensor, Region]
) -> list[_IndexRange] | None:
    """Return the conditions on all accesses, None if some are not known."""
    facts = bounds.facts
    roots = bounds.stage.roots
    values = [bounds.indices.values[axis] for axis in roots]
    named = {axis.var: bounds.indices.values[axis] for axis in roots}
    own = values[: len(region.origin)]
    ranges: list[_IndexRange] = []
    for one in _in_region(own, region, bounds.output_facts):
        ranges.append(replace(one, is_write=True))
    for node in (node for body in bounds.bodies for node in walk(body)):
        if isinstance(node, PureExtern):
            return None  # a C function may fail on values beyond the tensor
        if isinstance(node, TensorRead):
            tensor = node.tensor
            indices: list[Expr] = []
            for index in node.indices:
                value = simplify(substitute(index, named), facts)
                # Nothing is known of an index that is read from a tensor.
                if any(isinstance(part, TensorRead) for part in walk(value)):
                    return None
                indices.append(value)
            for index, dim in zip(indices, tensor.shape, strict=True):
                ranges.append(_IndexRange(index, IntImm(0, I64), dim))
            if tensor in regions:
                ranges += _in_region(indices, regions[tensor], facts)
    # The reads of a stencil have much in common: each range is proved once.
    intern = facts.table.intern
    distinct: dict[tuple[int, ...], _IndexRange] = {}
    for one in ranges:
        parts = (one.index, one.low, one.end)
        distinct[(*(id(intern(part)) for part in parts), one.is_write)] = one
    return list(distinct.values())


def _in_region(
    indices: Sequence[Expr], region: Region, facts: Facts
) -> Iterator[_IndexRange]:
    for index, origin, extent in zip(
        indices, region.origin, region.extent, strict=True
    ):
        yield _IndexRange(simplify(index - origin, facts), IntImm(0, I64), extent)

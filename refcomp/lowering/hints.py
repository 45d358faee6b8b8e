"""The memory hints of stages: double buffers, strides, prefetches; and imported texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NoReturn

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.constants import as_ints
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.rewrite import substitute, variables_in, walk
from refcomp.ir.stmt import Allocate, Pragma, Prefetch, Stmt
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.loops import origin_of
from refcomp.schedule.axes import Region
from refcomp.schedule.placement import loops_around, place_text, placement_lines
from refcomp.schedule.stage import Prefetched, Stage
from refcomp.te.tensor import IterVar, Tensor, TensorRead

_DOUBLE_BUFFER = "double_buffer"


def allocated(stage: Stage, buffer: Buffer, body: Stmt) -> Stmt:
    """Return `body` inside the allocation of `buffer`, which holds a tensor of `stage`."""
    allocate = Allocate(buffer, body)
    if stage.memory.is_double_buffered:
        return Pragma(_DOUBLE_BUFFER, IntImm(1, I64), allocate)
    return allocate


def imported_texts(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return the LLVM IR that the pragmas of `stages` import, each text once."""
    values = (pragma.value for stage in stages for pragma in stage.loops.pragmas)
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str)))


def aligned_shape(stage: Stage, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return `shape` with inner dimensions padded until the strides are as requested."""
    dims = list(shape)
    # Inner dimensions first: the strides of outer ones depend on their padding.
    for dim in sorted(stage.memory.alignments, reverse=True):
        alignment = stage.memory.alignments[dim]
        factor = alignment.factor
        offset = alignment.offset
        sizes = as_ints(dims[dim + 1 :])
        if sizes is None:
            why = "the dimensions inside it have no constant extents"
            _refuse(stage, dim, why=why, remedy="split them first")
        rest = prod(sizes[1:])
        # Remainders repeat after `factor` steps: no longer extent can succeed.
        extents = range(sizes[0], sizes[0] + factor)
        fitting = (extent for extent in extents if extent * rest % factor == offset)
        padded = next(fitting, None)
        if padded is None:
            _refuse(
                stage,
                dim,
                why=f"no multiple of {rest} leaves {offset} "
                f"when it is divided by {factor}",
                remedy="use a factor and an offset that have no common divisor",
            )
        dims[dim + 1] = IntImm(padded, I64)
    return tuple(dims)


def _refuse(stage: Stage, dim: int, *, why: str, remedy: str) -> NoReturn:
    raise UserError(
        f"cannot align dimension {dim} of stage {stage.name}",
        where=place_text(stage),
        why=why,
        remedy=remedy,
        earlier=[stage.declaration(), *placement_lines(stage)],
    )


def prefetches_at(
    bounds: StageBounds,
    axis: IterVar,
    buffers: Mapping[Tensor, Buffer],
    regions: Mapping[Tensor, Region],
) -> Iterator[Stmt]:
    """Yield a prefetch for each read that the stage wants prefetched in loop `axis`.

    `regions` has the part of a tensor that its buffer holds, if that is not the whole.
    """
    stage = bounds.stage
    position = stage.loops.position
    for hint in stage.loops.prefetches:
        tensor = hint.tensor
        if hint.axis is not axis or tensor not in buffers:
            continue
        # Nothing is there yet if the loop itself computes the tensor.
        producers = [s for s in stage.siblings if tensor in s.op.outputs]
        around = [loop for loop in loops_around(producers[0]) if loop.stage is stage]
        if any(position(loop.axis) >= position(axis) for loop in around):
            continue
        for indices in _first_reads(bounds, hint):
            if tensor in regions:
                pairs = zip(indices, regions[tensor].origin, strict=True)
                indices = tuple(simplify(index - origin) for index, origin in pairs)
            yield Prefetch(buffers[tensor], indices, origin_of(bounds, axis))


def _first_reads(bounds: StageBounds, hint: Prefetched) -> Iterator[tuple[Expr, ...]]:
    """Yield the indices of each read at the first iteration of the loops inside.

    The loop of `hint` itself is `offset` iterations ahead.
    """
    stage = bounds.stage
    variables = bounds.variables
    position = stage.loops.position
    inside = stage.loops.leaves[position(hint.axis) + 1 :]
    # Bound loops do not begin in a kernel: their threads run already.
    kernel = bounds.place.kernel
    is_outside = (
        kernel is not None
        and kernel.stage is stage
        and position(hint.axis) < kernel.start
    )
    ahead: dict[Var, Expr] = {}
    for leaf in inside:
        if is_outside or leaf not in stage.threads.bound:
            ahead[variables[leaf]] = bounds.ranges.begins[leaf]
    ahead[variables[hint.axis]] = variables[hint.axis] + hint.offset
    # Bounds of loops that are read from tensors behind this place.
    unread = {
        bound.var
        for bound in bounds.ranges.read
        if position(bound.loop) > position(hint.axis)
    }
    roots = {root.var: bounds.indices.values[root] for root in stage.roots}
    seen: set[int] = set()
    for node in (node for body in bounds.bodies for node in walk(body)):
        if not isinstance(node, TensorRead) or node.tensor is not hint.tensor:
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        # An index that is read from a tensor is known only at the time of the read.
        parts = (part for index in node.indices for part in walk(index))
        if any(isinstance(part, TensorRead) for part in parts):
            continue
        values = [substitute(index, roots) for index in node.indices]
        values = [substitute(value, ahead) for value in values]
        if not unread.isdisjoint(
            var for value in values for var in variables_in(value)
        ):
            continue
        yield tuple(map(simplify, values))

"""What stages wish of their memory: prefetches, strides, double buffers."""

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
from refcomp.ir.rewrite import substitute, walk
from refcomp.ir.stmt import Allocate, Pragma, Prefetch, Stmt
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.loops import origin_of
from refcomp.schedule.axes import Region
from refcomp.schedule.placement import loops_around, place_text
from refcomp.schedule.stage import Prefetched, Stage
from refcomp.te.tensor import IterVar, Tensor, TensorRead

_DOUBLE_BUFFER = "double_buffer"


def allocated(stage: Stage, buffer: Buffer, body: Stmt) -> Stmt:
    """`body` with memory for a tensor of the stage."""
    allocate = Allocate(buffer, body)
    if stage.memory.is_double_buffered:
        return Pragma(_DOUBLE_BUFFER, IntImm(1, I64), allocate)
    return allocate


def imported_texts(stages: Sequence[Stage]) -> tuple[str, ...]:
    """The LLVM IR that the stages bring, each text once."""
    values = (pragma.value for stage in stages for pragma in stage.loops.pragmas)
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str)))


def aligned_shape(stage: Stage, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """`shape` with dimensions made longer until the strides are those that were asked for."""
    dims = list(shape)
    for dim in sorted(stage.memory.alignments, reverse=True):
        dims[dim + 1] = _padded(stage, dim, dims[dim + 1 :])
    return tuple(dims)


def _padded(stage: Stage, dim: int, inner: list[Expr]) -> Expr:
    wish = stage.memory.alignments[dim]
    sizes = as_ints(inner)
    if sizes is None:
        _refuse(
            stage,
            dim,
            "the dimensions inside it have no constant extents",
            "split them first",
        )
    rest = prod(sizes[1:])
    for longer in range(sizes[0], sizes[0] + wish.factor):
        if longer * rest % wish.factor == wish.offset:
            return IntImm(longer, I64)
    what = f"no multiple of {rest} leaves {wish.offset} when it is divided by {wish.factor}"
    _refuse(stage, dim, what, "use a factor and an offset that have no common divisor")


def _refuse(stage: Stage, dim: int, why: str, remedy: str) -> NoReturn:
    raise UserError(
        f"cannot align dimension {dim} of stage {stage.name}",
        where=place_text(stage),
        why=why,
        remedy=remedy,
    )


def prefetches_at(
    bounds: StageBounds,
    axis: IterVar,
    buffers: Mapping[Tensor, Buffer],
    regions: Mapping[Tensor, Region],
) -> Iterator[Stmt]:
    """A prefetch for each read that the stage asked to have prefetched in loop `axis`."""
    for wish in bounds.stage.loops.prefetches:
        if (
            wish.axis is axis
            and wish.tensor in buffers
            and not _is_made_inside(bounds, wish)
        ):
            for indices in _first_reads(bounds, wish):
                region = regions.get(wish.tensor)
                at = indices if region is None else _within(indices, region)
                yield Prefetch(buffers[wish.tensor], at, origin_of(bounds, axis))


def _is_made_inside(bounds: StageBounds, wish: Prefetched) -> bool:
    """Whether the tensor is computed in the loop itself, so that it is not there before."""
    stage = bounds.stage
    producer = next(s for s in stage.siblings if wish.tensor in s.op.outputs)
    return any(
        loop.stage is stage
        and stage.loops.position(loop.axis) >= stage.loops.position(wish.axis)
        for loop in loops_around(producer)
    )


def _first_reads(bounds: StageBounds, wish: Prefetched) -> Iterator[tuple[Expr, ...]]:
    """The indices of each read, when the loops inside begin, `offset` iterations later."""
    stage = bounds.stage
    inside = stage.loops.leaves[stage.loops.position(wish.axis) + 1 :]
    running = stage.threads.bound if _is_in_kernel(bounds, wish.axis) else {}
    first: dict[Var, Expr] = {
        bounds.variables[leaf]: leaf.minimum for leaf in inside if leaf not in running
    }
    here = bounds.variables[wish.axis]
    later = {**first, here: here + wish.offset}
    roots = {root.var: bounds.indices.values[root] for root in stage.roots}
    seen: set[int] = set()
    for body in bounds.bodies:
        for node in walk(body):
            if (
                isinstance(node, TensorRead)
                and node.tensor is wish.tensor
                and id(node) not in seen
            ):
                seen.add(id(node))
                if any(
                    isinstance(i, TensorRead)
                    for index in node.indices
                    for i in walk(index)
                ):
                    continue  # where it reads is only known when it does
                values = (substitute(index, roots) for index in node.indices)
                yield tuple(simplify(substitute(value, later)) for value in values)


def _is_in_kernel(bounds: StageBounds, axis: IterVar) -> bool:
    """Whether threads run already where a loop stands, even those of bound loops inside it."""
    stage, kernel = bounds.stage, bounds.place.kernel
    if kernel is None or kernel.stage is not stage:
        return True
    return stage.loops.position(axis) >= kernel.start


def _within(indices: tuple[Expr, ...], region: Region) -> tuple[Expr, ...]:
    pairs = zip(indices, region.origin, strict=True)
    return tuple(simplify(index - origin) for index, origin in pairs)

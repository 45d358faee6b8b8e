"""Random schedules for GPUs: kernels of random computations, with tiles in shared and local memory.

Drawn: the computations of `tests.strategies.computes` and transposes; tiles of every root stage in
up to three dimensions of groups and of threads, dividing or not; copies of what is read, in panels
or not, and stages in between, in shared memory (fetched by all threads, by some, or by one) or
local memory, at any loop that may hold them; results accumulated in local memory; split
reductions, vectors, unrolling; stages that are inlined, and stages with kernels of their own;
reductions that threads share out, factored (rfactor) or not.

Never drawn: illegal schedules (`Maker.settle` takes back what `lower` refuses), groups of more than
64 threads, or 256 where they are wide, threads of symbolic number, stages left to the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS, Allocate
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.schedule.schedule import Schedule
from refcomp.schedule.stage import Stage
from refcomp.schedule.stage_graph import readers_of
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import DATA_PARALLEL, REDUCTION, IterVar, Tensor
from tests.strategies.computation import DTYPES, Computation
from tests.strategies.computes import DEPENDENT_REDUCTIONS, FEW_STAGES, computations
from tests.strategies.lowered_once import lowered_once
from tests.strategies.schedules import panel_of
from tests.strategies.stages_outside import stages_outside
from tests.strategies.wishes import with_wishes

_SEED = 20240
_MOST_THREADS = 64
_MOST_OF_WIDE = 256
_WIDE_TILES = {1: (80, 128, 160), 2: (8, 16, 16), 3: (4, 8, 8)}  # by axes
_MOST_COPIES = 8

_Draw = Callable[[Any], Any]


class GpuCase(NamedTuple):
    """A computation with a schedule, whether some kernel has two groups of threads or more, and
    shared memory in one that has: a barrier may be needed there; and all of it lowered."""

    computation: Computation
    schedule: Schedule
    has_groups: bool
    has_shared: bool
    func: PrimFunc

    def arrays(self) -> list[np.ndarray]:
        """Fresh values of the arguments: inputs of small integers, outputs full of a number that no
        computation gives. They are those of `tests.properties.differential.expected`."""
        return self.computation.arrays(_SEED)

    @property
    def flags(self) -> list[str]:
        """What to count: `cases`, and `groups` and `shared` where it has them."""
        return ["cases", *["groups"] * self.has_groups, *["shared"] * self.has_shared]


@st.composite
def gpu_cases(
    draw: _Draw,
    kinds: Sequence[str] = (),
    dtypes: Sequence[str] = DTYPES,
    is_wide: bool = False,
) -> GpuCase:
    """A case of `kinds` of computations (all if none are named) and of `dtypes`; `is_wide`: with
    groups of several waves."""
    computation = draw(computations(kinds or FEW_STAGES, dtypes))
    return case_of(computation, Maker(draw, computation, is_wide).schedule())


def case_of(computation: Computation, schedule: Schedule) -> GpuCase:
    """The computation with a schedule that `lower` takes."""
    func = lowered_once(schedule, computation.args)
    has_groups, has_shared = _kernels_of(func, computation)
    return GpuCase(computation, schedule, has_groups, has_shared, func)


def _kernels_of(func: PrimFunc, computation: Computation) -> tuple[bool, bool]:
    has_groups = has_shared = False
    for start in kernels_in(func.body):
        nest = kernel_nest(start)
        groups = 1
        for extent in nest.grid:
            groups *= int(evaluate_expr(extent, computation.sizes))
        shared = any(
            isinstance(n, Allocate) and n.buffer.scope == "shared" for n in walk(nest.body)
        )
        has_groups |= groups >= 2
        has_shared |= groups >= 2 and shared
    return has_groups, has_shared


def _rough_size(dim: Expr, sizes: dict[Var, int]) -> int:
    """A size to draw factors by: of sums exact, of other operations the sum of their operands."""
    if isinstance(dim, Var):
        return sizes[dim]
    value = getattr(dim, "value", None)
    if isinstance(value, int):
        return value
    return _rough_size(dim.a, sizes) + _rough_size(dim.b, sizes)


class Maker:
    """Draws the schedule of one computation."""

    def __init__(self, draw: _Draw, computation: Computation, is_wide: bool = False) -> None:
        self.draw, self.computation, self.is_wide = draw, computation, is_wide
        self.max_threads = _MOST_OF_WIDE if is_wide else _MOST_THREADS
        self.s = refcomp.create_schedule([tensor.op for tensor in computation.outputs])

    def schedule(self) -> Schedule:
        middle = [s for s in self._computed() if not s.is_output]
        for stage in middle:
            self._place(stage)
        for stage in reversed(self._roots()):  # consumers may take their producers in
            if stage.attach_point is None:
                self._make_kernel(stage)
        self.settle()
        for stage in self._computed():
            self._mark(stage)
        for stage in self._roots():
            self._begin_outside(stage)
        self.settle()
        return with_wishes(self.draw, self.s, self.computation.args)

    # What to draw from.

    def _chance(self, parts: int, of: int) -> bool:
        return bool(self.draw(st.integers(1, of)) <= parts)

    def _one(self, items: Sequence[Any]) -> Any:
        return items[self.draw(st.integers(0, len(items) - 1))]

    def _computed(self) -> list[Stage]:
        return [s for s in self.s.stages if isinstance(s.op, ComputeOp) and s.placement != "inline"]

    def _roots(self) -> list[Stage]:
        return [s for s in self._computed() if s.attach_point is None]

    def _leaves(self, stage: Stage, kind: str) -> list[IterVar]:
        """Loops of that kind that nothing is said of yet."""
        points = {attached.attach_point.axis for attached in stage.attached}
        loops = stage.loops
        return [a for a in loops.leaves if a.kind == kind and a not in {*loops.marks, *points}]

    def _size(self, axis: IterVar) -> int:
        try:
            return _rough_size(axis.extent, self.computation.sizes)
        except (AttributeError, KeyError):
            return 4

    # Stages between inputs and outputs.

    def _place(self, stage: Stage) -> None:
        """Inline, or later a kernel of its own, or inside its reader's."""
        if stage.op.reduction is None and self._chance(2, 5):
            self.s[stage.op].compute_inline()

    # Kernels.

    def _make_kernel(self, stage: Stage) -> None:
        worker = stage
        if self._chance(1, 2):
            scope = "shared" if self._chance(1, 4) else "local"
            made = self.s.cache_write(list(stage.op.outputs), scope)
            worker = self.s.stage_of(made[0])
        threads = self._tile(stage)
        if worker is not stage:
            self.s[worker.op].compute_at(self.s[stage.op], self._attach_loop(stage, deep=True))
        reader = self._split_reduction(worker, threads)
        if worker is not stage:
            self._share(worker, threads)
        worker = reader
        self._attach_producers(stage, worker, threads)
        for tensor in worker.op.inputs:
            if self._chance(19, 20):
                self._copy(tensor, worker, threads)

    def _tile(self, stage: Stage) -> dict[str, int]:
        """Splits and binds loops of a root stage; the extents of its threads by tag."""
        own = self.s[stage.op]
        if not own.op.axis:
            self._bind(stage, [own.fuse()], ["blockIdx.x"])
        if self._chance(1, 4):
            self._fuse_two(stage)
        data = self._leaves(stage, DATA_PARALLEL)
        count = min(len(data), self._one([1, 2, 2, 3]))
        chosen = data[len(data) - count :] if self._chance(2, 3) else data[:count]
        blocks, inners = self._split_tiles(stage, chosen)
        order = [*blocks, *inners, *(a for a in own.leaf_iter_vars if a not in {*blocks, *inners})]
        if self._chance(1, 5):
            order = self.draw(st.permutations(order))
        own.reorder(*order)
        self._bind(stage, blocks, self.draw(st.permutations(BLOCK_TAGS)))
        return self._bind_threads(stage, inners)

    def _split_tiles(
        self, stage: Stage, axes: Sequence[IterVar]
    ) -> tuple[list[IterVar], list[IterVar]]:
        """The outer and the inner loops of a tile over `axes`."""
        own, leaves = self.s[stage.op], stage.loops.leaves
        if len(axes) == 2 and leaves.index(axes[1]) == leaves.index(axes[0]) + 1:
            x, y, x_inner, y_inner = own.tile(*axes, *(self._tile_size(a, 2) for a in axes))
            return [x, y], [x_inner, y_inner]
        pairs = [own.split(axis, self._tile_size(axis, len(axes))) for axis in axes]
        inners = [own.split(i, self._one([1, 2]))[0] if self._chance(1, 3) else i for _, i in pairs]
        return [outer for outer, _ in pairs], inners

    def _tile_size(self, axis: IterVar, count: int) -> int:
        if self.is_wide and self._chance(9, 10):
            return self._one(_WIDE_TILES[count])
        size = self._size(axis)
        fitting = [f for f in (1, 2, 3, 4, 5, 8) if 2 * f <= size]
        usual = fitting[1:] or fitting or [2]
        return self._one(usual) if self._chance(9, 10) else self._one([1, 3, 4, 8])

    def _bind(self, stage: Stage, loops: Sequence[IterVar], tags: Sequence[str]) -> None:
        for loop, tag in zip(loops, tags, strict=False):
            if self._chance(14, 15):
                self.s[stage.op].bind(loop, refcomp.thread_axis(tag))

    def _bind_threads(self, stage: Stage, loops: Sequence[IterVar]) -> dict[str, int]:
        threads: dict[str, int] = {}
        count = 1
        tags = self.draw(st.permutations(THREADS_IN_BLOCK_TAGS))
        for loop, tag in zip(loops, tags, strict=False):
            if not isinstance(loop.extent, IntImm) or count * loop.extent.value > self.max_threads:
                continue
            if self._chance(7, 8):
                self.s[stage.op].bind(loop, refcomp.thread_axis((0, loop.extent.value), tag))
                threads[tag] = loop.extent.value
                count *= loop.extent.value
        return threads

    def _fuse_two(self, stage: Stage) -> None:
        free = self._leaves(stage, DATA_PARALLEL)
        pairs = [(x, y) for x, y in pairwise(stage.loops.leaves) if x in free and y in free]
        if pairs:
            self.s[stage.op].fuse(*self._one(pairs))

    def _split_reduction(self, stage: Stage, threads: dict[str, int]) -> Stage:
        """Shared out among threads, or a tile of the reduction at a time, around the loops of the
        outputs. The stage that reads what was read."""
        reader = stage
        if self._chance(2, 5):
            reader = self._share_reduction(stage, threads)
        for axis in self._leaves(stage, REDUCTION):
            if self._chance(2, 3):
                self.s[stage.op].split(axis, self._one([2, 2, 3, 4]))
        loops = stage.loops
        outer = [a for a in loops.leaves if a.kind == REDUCTION and a.name.endswith("outer")]
        data = [a for a in loops.leaves if a.kind == DATA_PARALLEL and a not in loops.marks]
        if outer and data and self._chance(1, 2):
            rest = [a for a in loops.leaves if a.kind == REDUCTION and a not in outer]
            self.s[stage.op].reorder(*outer, *rest, *data)
        return reader

    def _share_reduction(self, stage: Stage, threads: dict[str, int]) -> Stage:
        """Threads of an axis that is free, or of one of the kernel around, reduce together; perhaps
        each its part of a factored reduction."""
        tags = [tag for tag in THREADS_IN_BLOCK_TAGS if tag not in stage.loops.marks.values()]
        tags = tags if stage.attach_point else [tag for tag in tags if tag not in threads]
        axes = self._leaves(stage, REDUCTION)
        if not tags or not axes:
            return stage
        tag = self._one(tags)
        extents = [8, 16, 32, 64, 128] if self.is_wide else [2, 3, 4, 5, 8]
        extent = threads.get(tag) or self._one(extents)
        if tag not in threads and prod(threads.values()) * extent > self.max_threads:
            return stage
        loop, reader = self.s[stage.op].split(self._one(axes), extent)[1], stage
        threads[tag] = extent
        if self._chance(1, 2):
            made = self.s.rfactor(stage.op.outputs[0], loop, self._one([0, 0, -1]))
            reader = self.s.stage_of(made[0] if isinstance(made, list) else made)
            (loop,) = stage.op.reduce_axis
            if self._chance(4, 5):
                self.s[reader.op].compute_at(self.s[stage.op], loop)
        thread = refcomp.thread_axis(tag)
        self.s[stage.op].bind(loop, thread)
        if self._chance(1, 3):
            self.s[stage.op].set_store_predicate(thread.var == 0)
        return reader

    def _attach_loop(self, stage: Stage, deep: bool = False) -> IterVar:
        """A loop to attach to: in a kernel's own stage, one that is bound or inside."""
        leaves = stage.loops.leaves
        bound = [k for k, leaf in enumerate(leaves) if leaf in stage.threads.bound]
        fitting = leaves if stage.attach_point or not bound else leaves[bound[0] :]
        if deep and bound and self._chance(3, 4):
            return leaves[bound[-1]]
        return self._one(fitting)

    # What is computed inside a kernel.

    def _share(self, stage: Stage, threads: dict[str, int]) -> None:
        """The loops of a stage in shared memory are shared among threads, or left to the first."""
        if stage.memory.scope != "shared" or self._chance(1, 5):
            return
        own = self.s[stage.op]
        data = self._leaves(stage, DATA_PARALLEL)
        if len(data) > 1 and all(y is own.leaf_iter_vars[k + 1] for k, y in enumerate(data[1:])):
            data = [own.fuse(*data)]
        loop = data[-1] if data else None
        free = [tag for tag in threads if tag not in stage.loops.marks.values()]
        for tag in self.draw(st.permutations(free)) if loop is not None else ():
            if self._chance(5, 6):
                loop, inner = own.split(loop, threads[tag])
                own.bind(inner, refcomp.thread_axis(tag))

    def _copy(self, tensor: Tensor, reader: Stage, threads: dict[str, int]) -> None:
        maker = self.s.stage_of(tensor)
        has_loops = reader.loops.leaves  # a stage without axes may have none
        if maker.placement == "inline" or maker.attach_point is not None or not has_loops:
            return
        scope = "shared" if self._chance(10, 11) else "local"
        panel = panel_of(self.draw, tensor, [reader.op])
        copy = self.s.cache_read(tensor, scope, [reader.op], panel=panel)
        self.s[copy].compute_at(self.s[reader.op], self._attach_loop(reader))
        self._share(self.s.stage_of(copy), threads)
        if scope == "shared" and self._chance(1, 6):
            near = self.s.cache_read(copy, "local", [reader.op])
            self.s[near].compute_at(self.s[reader.op], self._attach_loop(reader, deep=True))

    def _attach_producers(self, stage: Stage, worker: Stage, threads: dict[str, int]) -> None:
        """Stages that only this kernel reads may be computed inside it."""
        for producer in self._roots():
            readers = readers_of(producer)
            is_read_elsewhere = not readers or any(reader is not worker for reader in readers)
            if producer.is_output or producer.threads.bound or is_read_elsewhere:
                continue
            if not worker.loops.leaves:
                continue
            if self._chance(3, 4):
                self.s[producer.op].compute_at(self.s[worker.op], self._attach_loop(worker))
                self.s[producer.op].set_scope("shared" if self._chance(5, 6) else "local")
                self._share(producer, threads)

    def _mark(self, stage: Stage) -> None:
        constant = [
            axis
            for axis in (*self._leaves(stage, DATA_PARALLEL), *self._leaves(stage, REDUCTION))
            if isinstance(axis.extent, IntImm) and 1 <= axis.extent.value <= _MOST_COPIES
        ]
        for axis in constant:
            if self._chance(1, 4):
                vector = axis.kind == DATA_PARALLEL and self._chance(1, 2)
                getattr(self.s[stage.op], "vectorize" if vector else "unroll")(axis)

    def _begin_outside(self, stage: Stage) -> None:
        """One launch may run the loops outside the bound ones, too."""
        if stage.threads.bound and self._chance(1, 4):
            tags = [thread.thread_tag for thread in stage.threads.bound.values()]
            self.s[stage.op].env_threads([refcomp.thread_axis(tag) for tag in tags])

    # What lower refuses is taken back.

    def settle(self) -> None:
        """Moves stages that cannot stay where they are, and binds what is left to the host."""
        while True:
            try:
                func = lowered_once(self.s, self.computation.args)
            except UserError as error:
                found = re.search(_REFUSED, str(error))
                if found is None:
                    if not re.search(_NOT_MARKED, str(error)):
                        raise
                    assert self.computation.kind in DEPENDENT_REDUCTIONS
                    reject()  # only lowering finds out that the range of the loop depends
                stage = next(s for s in self.s.stages if s.name in found.groups())
                filled = self._filled_inside(stage) if _FILLED in str(error) else []
                if filled:
                    self._send_to_root(filled[0])
                elif found["size"] is None or not self._send_inside(stage):
                    self._send_to_root(stage)
                continue
            idle = [stage for stage in self._roots() if not stage.threads.bound]
            outside = stages_outside(func)
            if idle:
                self._bind_idle(idle[0])
            elif outside:  # a reader was sent to the root, where its outer loops are the host's
                stage = next(s for s in self.s.stages if s.name == outside[0])
                if not self._send_inside(stage):
                    self._send_to_root(stage)
            else:
                return

    def _filled_inside(self, stage: Stage) -> list[Stage]:
        """Stages in shared memory that are computed inside of loops of `stage`."""
        found = []
        for one in self.s.stages:
            point = one.attach_point
            while point is not None and point.stage is not stage:
                point = point.stage.attach_point
            if point is not None and one.memory.scope == "shared":
                found.append(one)
        return found

    def _send_inside(self, stage: Stage) -> bool:
        """Attaches the stage to the next inner loop, if there is one: less of it is needed."""
        if stage.attach_point is None:
            return False
        point = stage.attach_point
        loops = point.stage.loops
        place = loops.position(point.axis)
        if place + 1 == len(loops.leaves):
            return False
        self.s[stage.op].compute_at(self.s[point.stage.op], loops.leaves[place + 1])
        return True

    def _send_to_root(self, stage: Stage) -> None:
        if stage.attach_point is None and stage.memory.scope in (
            None,
            "global",
        ):  # shares of unknown size
            self.s[stage.op].reorder(*sorted(stage.loops.leaves, key=lambda a: a.kind == REDUCTION))
            return
        own = self.s[stage.op]
        own.compute_root()
        own.set_scope("global")

    def _bind_idle(self, stage: Stage) -> None:
        loops = stage.loops
        data = [a for a in loops.leaves if a.kind == DATA_PARALLEL and a not in loops.marks]
        own = self.s[stage.op]
        own.bind(data[0] if data else own.fuse(), refcomp.thread_axis("blockIdx.x"))


_NOT_MARKED = r"^cannot (?:unroll|vectorize) axis \S+ of stage (?s:.*) is not a constant known when"
# Threads that fill shared memory inside of a loop must all run it equally often.
_FILLED = "all threads of a group fill shared memory inside of the loop"
_REFUSED = (
    r"^(?:stage (\S+) is computed inside loop .* reads it outside"
    r"|(?:local|shared) memory of unknown size: dimension \d+ of (?P<size>\S+) is"
    r"|stage (\S+) cannot lie in \S+ memory"
    r"|stage (\S+) binds axis"
    r"|loop \S+ of stage \S+ has a range that is read from (\S+),"
    r"|loop \S+ of stage (\S+) has an unknown number of iterations"
    r"|cannot reduce stage (\S+) across threads)"
)

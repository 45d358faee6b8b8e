"""Reductions across threads: the threads of a group share loops over reduction axes.

    for k.outer { B[i] = B[i] + A[i, k.outer * 4 + tx] }       with k.inner bound to threadIdx.x:

    acc[0] = 0    for k.outer { acc[0] = acc[0] + A[i, k.outer * 4 + tx] }
    parts[tx] = acc[0]
    if (tx < 2) { parts[tx] = parts[tx] + parts[tx + 2] }
    if (tx < 1) { parts[tx] = parts[tx] + parts[tx + 1] }
    if (tx == 0) { B[i] = parts[0] }

Each thread reduces its share in local memory. A tree of steps then combines the shares
in shared memory; the number of threads need not be a power of two. One thread stores the
result. If the result is local, each thread stores it for itself. Threads of the other
thread axes in use have a reduction of their own, in a row of the shared memory.

No condition surrounds the steps, since each needs a barrier (`passes.insert_barriers`).
Refuses groups of unknown size, and local results that differ within a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NoReturn

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import LOCAL, SHARED, Buffer, BufferLoad, StorageScope
from refcomp.ir.constants import as_int
from refcomp.ir.expr import EQ, LT, Expr, IntImm, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.ir.stmt import (
    SERIAL,
    THREADS_IN_BLOCK_TAGS,
    Allocate,
    BufferStore,
    For,
    IfThenElse,
    Stmt,
    block,
)
from refcomp.lowering.bounds.kernels import Kernel
from refcomp.lowering.loops import Loops
from refcomp.lowering.together import store_together
from refcomp.schedule.axes import AxisGuard
from refcomp.schedule.placement import place_text, placement_lines
from refcomp.schedule.stage import Stage
from refcomp.te.reducer import CommReducer
from refcomp.te.tensor import REDUCTION, IterVar

_ALIGNMENT = 64  # bytes
Indices = tuple[Expr, ...]


def reduces_across_threads(stage: Stage) -> bool:
    """Return True if threads share the stage's reduction."""
    return any(leaf.kind == REDUCTION for leaf in stage.threads.bound)


def refuse_tensorized(stage: Stage) -> None:
    """Raise Unsupported if an intrinsic carries out the stage's reduction."""
    if stage.loops.tensorized is not None:
        raise Unsupported(
            f"cannot reduce stage {stage.name} across threads and by intrinsic",
            where=f"stage {stage.name}",
            why="an intrinsic updates the result itself, and each thread would need one",
            remedy="rfactor the axis that threads share out, "
            "and tensorize the stage made",
            at=stage.loops.tensorized.snippet(),
        )


def one_thread(stage: Stage, kernel: Kernel, tags: Iterable[str]) -> list[AxisGuard]:
    """Return guards that choose one thread of each of `tags`: the one that stores."""
    chosen = stage.memory.store_predicate
    guards: list[AxisGuard] = []
    for tag in tags:
        number = IntImm(chosen.get(tag, 0), I64)
        guards.append(AxisGuard(None, EQ(kernel.variables[tag], number)))
    return guards


@dataclass(frozen=True)
class CrossThread:
    """A reduction across threads."""

    loops: Loops
    reducer: CommReducer
    # The loops over the output inside the outermost reduction loop. Each point of them
    # has a result.
    axes: Sequence[IterVar]
    # The indices at which results are stored.
    outputs: Indices
    # Choose one of the threads that have no share.
    idle: Sequence[AxisGuard]

    @property
    def stage(self) -> Stage:
        """The stage that reduces."""
        return self.loops.bounds.stage

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel that the stage is computed in."""
        kernel = self.loops.bounds.place.kernel
        assert kernel is not None
        return kernel

    @cached_property
    def sharing(self) -> list[str]:
        """The tags of the threads that share the reduction, in the kernel's order."""
        marks = self.stage.loops.marks
        tags = {tag for axis, tag in marks.items() if axis.kind == REDUCTION}
        return [tag for tag in self.kernel.tags if tag in tags]

    @cached_property
    def rows(self) -> list[str]:
        """The tags of the threads that have a reduction of their own."""
        # Each thread keeps a result in local memory, whether or not it has a loop.
        in_use: Iterable[str] = self.stage.loops.marks.values()
        if self._is_local:
            in_use = self.kernel.tags
        others = set(THREADS_IN_BLOCK_TAGS) - set(self.sharing)
        rows = others.intersection(in_use)
        return [tag for tag in self.kernel.tags if tag in rows]

    @property
    def _is_local(self) -> bool:
        return self.loops.bounds.place.scope == LOCAL

    # Memory.

    def allocated(self, body: Stmt) -> Stmt:
        """Return `body` inside the allocations of the reduction."""
        buffers = list(self.shares)
        if self.count > 1:
            buffers += self.parts
        for buffer in reversed(buffers):
            body = Allocate(buffer, body, self.loops.origin())
        return body

    @cached_property
    def shares(self) -> list[Buffer]:
        """The results of one thread, for each output: local memory, a point of `axes` each."""
        extents: list[int] = []
        for leaf in self.axes:
            extent = self.loops.bounds.extents[leaf]
            constant = as_int(extent)
            if constant is None:
                self._refuse(
                    f"loop {leaf.name} over the output, of {extent} iterations, is "
                    "inside it, and there is local memory for each",
                    f"reorder {leaf.name} to the outside of all reduction loops",
                )
            extents.append(constant)
        return self._buffers("share", extents or [1], LOCAL)

    @cached_property
    def parts(self) -> list[Buffer]:
        """The shares of all threads, for each output: shared memory [*rows, count]."""
        extents = [*map(self._extent, self.rows), self.count]
        return self._buffers("parts", extents, SHARED)

    def _buffers(
        self, name: str, shape: Sequence[int], scope: StorageScope
    ) -> list[Buffer]:
        stage = self.stage
        dims = tuple(IntImm(max(1, dim), I64) for dim in shape)
        return [
            Buffer(f"{stage.name}.{name}{k or ''}", out.dtype, dims, scope, _ALIGNMENT)
            for k, out in enumerate(stage.op.outputs)
        ]

    @cached_property
    def count(self) -> int:
        """The number of threads that share one reduction."""
        return prod(map(self._extent, self.sharing))

    def _extent(self, tag: str) -> int:
        """Return the number of threads of `tag`."""
        if tag not in self.kernel.bound:
            named = as_int(simplify(self.kernel.env[tag].extent))
            assert named is not None
            return named
        loop = self.kernel.bound[tag][0]
        extent = self.loops.all_bounds[loop.stage].extents[loop.axis]
        constant = as_int(extent)
        if constant is None:
            self._refuse(
                f"the number of threads of {tag}, {extent}, is not a constant, "
                "and there is shared memory for each",
                f"split axis {loop.axis.name} of stage {loop.stage.name}, "
                "and bind the inner loop",
            )
        return constant

    # Statements.

    def reset(self) -> Stmt:
        """Return the stores of the identity at a point of `axes`."""
        stores: list[Stmt] = []
        for buffer, value in zip(self.shares, self.reducer.identities, strict=True):
            stores.append(self._store(buffer, self._point, value))
        return block(stores)

    def update(self, values: Sequence[Expr], condition: Expr) -> Stmt:
        """Return the update by one term, if `condition` holds, at a point of `axes`."""
        stmt = self._combined(self.shares, self._point, self._at_point(), values)
        if as_int(condition):
            return stmt
        return IfThenElse(condition, stmt, None, self.loops.origin())

    def finish(
        self,
        stores: Callable[[Sequence[Expr]], tuple[Stmt, ...]],
        guards: Sequence[AxisGuard],
    ) -> Stmt:
        """Return the combination of all shares, and the stores of the results.

        Args:
            stores: returns the stores of given results.
            guards: must hold for the results to be stored.
        """
        # A result must not be at another place for each thread that has a part of it.
        shared = {self.kernel.variables[tag]: tag for tag in self.sharing}
        for var in (var for index in self.outputs for var in variables_in(index)):
            if var in shared:
                self._refuse(
                    f"threads of {shared[var]} share it out, "
                    "but each needs another element",
                    "keep it in shared memory: "
                    f's[{self.stage.name}].set_scope("shared")',
                )
        results: list[Expr] = self._at_point()
        stmts: list[Stmt] = []
        if self.count > 1:
            stmts = self._tree(results)
            first = (*self._row, IntImm(0, I64))
            results = [BufferLoad(buffer, first) for buffer in self.parts]
        if not self._is_local:
            guards = [*guards, *one_thread(self.stage, self.kernel, self.sharing)]
        stmts.append(self.loops.guarded(guards, block(stores(results))))
        # The loops over the points are serial, since their bodies have barriers.
        fresh = {axis: Var(f"{axis.name}.result", I64) for axis in self.axes}
        names = {axis.var: var for axis, var in fresh.items()}
        body = substitute(block(stmts), names)
        for axis, var in reversed(fresh.items()):
            extent = self.loops.bounds.extents[axis]
            origin = self.loops.origin(axis)
            body = For(var, axis.minimum, extent, SERIAL, body, origin)
        return body

    def _tree(self, shares: Sequence[Expr]) -> list[Stmt]:
        """Return the steps that combine `shares` in the first element of a row.

        In each step, the threads of the first half combine their element with one of the
        second half.
        """
        own = (*self._row, self._number)
        pairs = zip(self.parts, shares, strict=True)
        write = block([self._store(buffer, own, value) for buffer, value in pairs])
        stmts = [self.loops.guarded(self.idle, write)]
        count = self.count
        while count > 1:
            # Of an odd number, the element in the middle waits for the next step.
            half = (count + 1) // 2
            other = (*self._row, self._number + half)
            mine = [BufferLoad(buffer, own) for buffer in self.parts]
            theirs = [BufferLoad(buffer, other) for buffer in self.parts]
            step = self._combined(self.parts, own, mine, theirs)
            is_in = AxisGuard(None, LT(self._number, IntImm(count - half, I64)))
            stmts.append(self.loops.guarded([is_in, *self.idle], step))
            count = half
        return stmts

    def _combined(
        self,
        buffers: Sequence[Buffer],
        at: Indices,
        a: Sequence[Expr],
        b: Sequence[Expr],
    ) -> Stmt:
        results = self.reducer.combine(a, b)
        pairs = zip(buffers, results, strict=True)
        stores = [self._store(buffer, at, value) for buffer, value in pairs]
        return store_together(stores)

    def _store(self, buffer: Buffer, at: Indices, value: Expr) -> BufferStore:
        return BufferStore(buffer, at, value, self.loops.origin())

    @property
    def _point(self) -> Indices:
        return tuple(axis.var for axis in self.axes) or (IntImm(0, I64),)

    def _at_point(self) -> list[Expr]:
        return [BufferLoad(buffer, self._point) for buffer in self.shares]

    @cached_property
    def _row(self) -> Indices:
        return tuple(self.kernel.variables[tag] for tag in self.rows)

    @cached_property
    def _number(self) -> Expr:
        """The number of a thread among those that share one reduction."""
        number: Expr = IntImm(0, I64)
        for tag in self.sharing:
            number = number * self._extent(tag) + self.kernel.variables[tag]
        return simplify(number)

    # Legality.

    def _refuse(self, why: str, remedy: str) -> NoReturn:
        raise UserError(
            f"cannot reduce stage {self.stage.name} across threads",
            where=place_text(self.stage),
            why=why,
            remedy=remedy,
            earlier=[
                *placement_lines(self.stage),
                *(
                    self.stage.loops.provenance[loop].snippet(f"axis {loop.name}")
                    for loop in self.stage.threads.bound
                ),
            ],
        )

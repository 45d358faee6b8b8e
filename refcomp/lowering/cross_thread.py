"""Reductions across threads: loops over reduction axes that threads of a group share out.

    for k.outer { B[i] = B[i] + A[i, k.outer * 4 + tx] }       with k.inner bound to threadIdx.x:

    acc[0] = 0    for k.outer { acc[0] = acc[0] + A[i, k.outer * 4 + tx] }
    parts[tx] = acc[0]
    if (tx < 2) { parts[tx] = parts[tx] + parts[tx + 2] }
    if (tx < 1) { parts[tx] = parts[tx] + parts[tx + 1] }
    if (tx == 0) { B[i] = parts[0] }

Each thread combines its share in local memory; what the threads have found is combined in shared
memory, by a tree of steps that need not be as wide as a power of two; one thread stores, or each
for itself what is local. Threads of the other thread axes in use each take part in a row of their
own. No condition stands around the steps, as each needs a barrier (`passes.insert_barriers`).
Refuses groups of unknown size, and local results that differ within a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NoReturn

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import Buffer, BufferLoad
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
from refcomp.lowering.bounds.kernels import LOCAL, SHARED, Kernel
from refcomp.lowering.loops import Loops
from refcomp.lowering.together import store_together
from refcomp.schedule.axes import AxisGuard
from refcomp.schedule.placement import place_text
from refcomp.schedule.stage import Stage
from refcomp.te.reducer import CommReducer
from refcomp.te.tensor import REDUCTION, IterVar

_ALIGNMENT = 64
Indices = tuple[Expr, ...]


def reduces_across_threads(stage: Stage) -> bool:
    """Whether threads share out the stage's reduction."""
    return any(leaf.kind == REDUCTION for leaf in stage.threads.bound)


def refuse_tensorized(stage: Stage) -> None:
    """Unsupported for a stage whose reduction an intrinsic carries out, in memory of its own."""
    if stage.loops.tensorized is not None:
        raise Unsupported(
            f"cannot reduce stage {stage.name} across threads and by intrinsic",
            where=f"stage {stage.name}, tensorized at {stage.loops.tensorized.line}",
            why="an intrinsic updates the result itself, and each thread would need one",
            remedy="rfactor the axis that threads share out, and tensorize the stage made",
        )


@dataclass(frozen=True)
class CrossThread:
    """A reduction across threads. `axes` are the loops over outputs inside its outermost loop, at
    each point of which there is a result; `idle` choose one of the threads that have no share."""

    loops: Loops
    reducer: CommReducer
    axes: Sequence[IterVar]
    outputs: Indices
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
        """The tags of the threads that share out the reduction, as in a kernel's nest."""
        tags = {tag for a, tag in self.stage.loops.marks.items() if a.kind == REDUCTION}
        return [tag for tag in self.kernel.tags if tag in tags]

    @cached_property
    def rows(self) -> list[str]:
        """The tags of threads that have results of their own."""
        used = (
            self.kernel.tags
            if self._is_local
            else tuple(self.stage.loops.marks.values())
        )
        is_row = set(used) & set(THREADS_IN_BLOCK_TAGS) - set(self.sharing)
        return [tag for tag in self.kernel.tags if tag in is_row]

    @property
    def _is_local(self) -> bool:
        return self.loops.bounds.place.scope == LOCAL

    # Memory.

    def allocated(self, body: Stmt) -> Stmt:
        """`body` with the memory that the reduction needs."""
        for buffer in reversed((*self.shares, *(self.parts if self.count > 1 else ()))):
            body = Allocate(buffer, body, self.loops.origin())
        return body

    @cached_property
    def shares(self) -> list[Buffer]:
        """What a thread has found, for each output: local memory."""
        extents = []
        for leaf in self.axes:
            extent = self.loops.bounds.extents[leaf]
            if (constant := as_int(extent)) is None:
                self._refuse(
                    f"loop {leaf.name} over the output, of {extent} iterations, is inside it, "
                    "and there is local memory for each",
                    f"reorder {leaf.name} to the outside of all reduction loops",
                )
            extents.append(constant)
        return self._buffers("share", extents or [1], LOCAL)

    @cached_property
    def parts(self) -> list[Buffer]:
        """What the threads of a group have found: shared memory, a row behind the other."""
        extents = [*(self._extent(tag) for tag in self.rows), self.count]
        return self._buffers("parts", extents, SHARED)

    def _buffers(self, name: str, shape: Sequence[int], scope: str) -> list[Buffer]:
        dims = tuple(IntImm(max(1, dim), I64) for dim in shape)
        made = self.stage.op.outputs
        return [
            Buffer(
                f"{self.stage.name}.{name}{k or ''}", t.dtype, dims, scope, _ALIGNMENT
            )
            for k, t in enumerate(made)
        ]

    @cached_property
    def count(self) -> int:
        """How many threads share out one reduction."""
        return prod(self._extent(tag) for tag in self.sharing)

    def _extent(self, tag: str) -> int:
        if tag not in self.kernel.bound:
            named = as_int(simplify(self.kernel.env[tag].extent))
            assert named is not None
            return named
        loop = self.kernel.bound[tag][0]
        extent = self.loops.all_bounds[loop.stage].extents[loop.axis]
        if (constant := as_int(extent)) is None:
            self._refuse(
                f"the number of threads of {tag}, {extent}, is not a constant, "
                "and there is shared memory for each",
                f"split axis {loop.axis.name} of stage {loop.stage.name}, and bind the inner loop",
            )
        return constant

    # Statements.

    def reset(self) -> Stmt:
        """The identity at a point of `axes`."""
        pairs = zip(self.shares, self.reducer.identities, strict=True)
        return block(
            [self._store(buffer, self._point, value) for buffer, value in pairs]
        )

    def update(self, values: Sequence[Expr], condition: Expr) -> Stmt:
        """One more term, where `condition` holds, at a point of `axes`."""
        so_far = [BufferLoad(buffer, self._point) for buffer in self.shares]
        stmt = self._combined(self.shares, self._point, so_far, values)
        if as_int(condition):
            return stmt
        return IfThenElse(condition, stmt, None, self.loops.origin())

    def finish(
        self,
        stores: Callable[[Sequence[Expr]], tuple[Stmt, ...]],
        guards: Sequence[AxisGuard],
    ) -> Stmt:
        """Combines the shares and stores the results, where `guards` hold."""
        self._check_results()
        shares = [BufferLoad(buffer, self._point) for buffer in self.shares]
        stmts = self._tree(shares) if self.count > 1 else []
        first = (*self._row, IntImm(0, I64))
        results = (
            [BufferLoad(b, first) for b in self.parts] if self.count > 1 else shares
        )
        stmts.append(
            self.loops.guarded([*guards, *self._storing()], block(stores(results)))
        )
        return self._over_results(block(stmts))

    def _over_results(self, body: Stmt) -> Stmt:
        """`body` at each point of `axes`, in order: it has barriers."""
        fresh = {leaf: Var(f"{leaf.name}.result", I64) for leaf in self.axes}
        body = substitute(body, {leaf.var: var for leaf, var in fresh.items()})
        for leaf, var in reversed(fresh.items()):
            extent = self.loops.bounds.extents[leaf]
            body = For(var, leaf.minimum, extent, SERIAL, body, self.loops.origin(leaf))
        return body

    def _tree(self, shares: Sequence[Expr]) -> list[Stmt]:
        """Half of the threads, and again half of them, combine what they have with what one of the
        other half has."""
        own = (*self._row, self._number)
        pairs = zip(self.parts, shares, strict=True)
        stmts = [
            self.loops.guarded(
                self.idle, block([self._store(b, own, v) for b, v in pairs])
            )
        ]
        count = self.count
        while count > 1:
            half = (count + 1) // 2
            other = (*self._row, self._number + half)
            mine, theirs = (
                [BufferLoad(b, at) for b in self.parts] for at in (own, other)
            )
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
        pairs = zip(buffers, self.reducer.combine(a, b), strict=True)
        return store_together(
            [self._store(buffer, at, value) for buffer, value in pairs]
        )

    def _store(self, buffer: Buffer, at: Indices, value: Expr) -> BufferStore:
        return BufferStore(buffer, at, value, self.loops.origin())

    @property
    def _point(self) -> Indices:
        return tuple(leaf.var for leaf in self.axes) or (IntImm(0, I64),)

    @cached_property
    def _row(self) -> Indices:
        return tuple(self.kernel.variables[tag] for tag in self.rows)

    @cached_property
    def _number(self) -> Expr:
        """The number of a thread among those that share out one reduction."""
        number: Expr = IntImm(0, I64)
        for tag in self.sharing:
            number = number * self._extent(tag) + self.kernel.variables[tag]
        return simplify(number)

    def _storing(self) -> list[AxisGuard]:
        """Conditions that choose the thread which stores a result: each one what is its own."""
        if self._is_local:
            return []
        chosen = self.stage.memory.store_predicate
        return [
            AxisGuard(
                None, EQ(self.kernel.variables[tag], IntImm(chosen.get(tag, 0), I64))
            )
            for tag in self.sharing
        ]

    # Legality.

    def _check_results(self) -> None:
        shared = {self.kernel.variables[tag]: tag for tag in self.sharing}
        for index in self.outputs:
            for var in variables_in(index):
                if var in shared:
                    self._refuse(
                        f"threads of {shared[var]} share it out, but each needs another element",
                        f'keep it in shared memory: s[{self.stage.name}].set_scope("shared")',
                    )

    def _refuse(self, why: str, remedy: str) -> NoReturn:
        raise UserError(
            f"cannot reduce stage {self.stage.name} across threads",
            where=place_text(self.stage),
            why=why,
            remedy=remedy,
        )

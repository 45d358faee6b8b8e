"""The shortcut of the interpreter: a kernel, or a nest of loops, run in step if that can be done.

Where it cannot, nothing has changed, and the plain interpreter runs the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import RefcompError
from refcomp.ir.buffer import Buffer
from refcomp.ir.kernels import is_bound
from refcomp.ir.stmt import BLOCK_TAGS, For
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.kernels import bound_extents
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.expressions import EXPRESSIONS
from refcomp.oracle.lockstep.groups import Doubt
from refcomp.oracle.lockstep.plans import LockstepPlan, plan_of
from refcomp.oracle.lockstep.statements import run
from refcomp.oracle.lockstep.threads import Crowd, Threads, as_value
from refcomp.oracle.lockstep.touches import Touches
from refcomp.oracle.tensors.arrays import Array

_MOST_THREADS = 1 << 14  # in one go, as each may allocate memory
_MOST_PER_THREAD = (
    1 << 13
)  # elements of the buffers written, which all are saved before


@dataclass(frozen=True, slots=True)
class _LoopRange:
    """The values that a loop's variable takes."""

    loop: For
    minimum: int
    extent: int


@dataclass(slots=True, eq=False)
class InStep:
    """The shortcut of one run: at least `least` threads, or iterations, run in step."""

    least: int
    plans: dict[For, LockstepPlan] = field(default_factory=dict)

    def __call__(self, host: Frame, loop: For) -> bool:
        """Return True if the kernel, or the loops of the host, that begin with `loop` have run.
        Raises InterpretError for loops that no kernel has."""
        plan = self.plans.get(loop)
        if plan is None:
            plan = self.plans[loop] = plan_of(loop)
        if not plan.loops:
            return False
        groups, threads = _ranges(host, plan.loops)
        if _size(groups) * _size(threads) < max(1, self.least):
            return False
        return _Launch(host, plan, groups, threads, is_kernel=is_bound(loop)).has_run()


def _ranges(
    host: Frame, loops: Sequence[For]
) -> tuple[list[_LoopRange], list[_LoopRange]]:
    """The ranges of groups and of a group's threads; iterations are groups of one thread."""
    if not is_bound(loops[0]):
        evaluate = host.evaluate
        return [
            _LoopRange(r, evaluate(r.minimum), evaluate(r.extent)) for r in loops
        ], []
    extents = bound_extents(host, loops)
    ranges = [_LoopRange(loop, 0, extent) for loop, extent in extents.items()]
    groups = [r for r in ranges if r.loop.kind in BLOCK_TAGS]
    return groups, [r for r in ranges if r.loop.kind not in BLOCK_TAGS]


@dataclass(frozen=True, slots=True, eq=False)
class _Launch:
    """A plan that is to be run: its loops, with their ranges, over groups and over the threads of
    a group; iterations are groups of one thread."""

    host: Frame
    plan: LockstepPlan
    groups: Sequence[_LoopRange]
    threads: Sequence[_LoopRange]
    is_kernel: bool

    def has_run(self) -> bool:
        """Runs it, if that is worth while and raises no Doubt; otherwise all is as before."""
        memories = self._memories()
        written = [
            memory for buffer, memory in memories.items() if buffer in self.plan.written
        ]
        if not self._is_worth_while(written):
            return False
        restorers = [memory.save() for memory in written]
        try:
            self._run(memories)
        except (Doubt, RefcompError, RecursionError):
            for restore in restorers:
                restore()
            self.plan.loops = ()
            return False
        return True

    def _memories(self) -> dict[Buffer, Memory]:
        """What the threads see of the host's memory."""
        hidden = ("local",) if self.is_kernel else ()
        seen = [
            b for b in self.plan.used if b in self.host.memory and b.scope not in hidden
        ]
        return {buffer: self.host.memory[buffer] for buffer in seen}

    def _is_worth_while(self, written: Sequence[Memory]) -> bool:
        count = _size(self.groups) * _size(self.threads)
        return (
            self.is_kernel or sum(m.size for m in written) <= _MOST_PER_THREAD * count
        )

    def _run(self, memories: dict[Buffer, Memory]) -> None:
        """Some groups after the others, all threads of each in step."""
        count, size = _size(self.groups), _size(self.threads)
        for loop in self.plan.loops:
            self.host.enter(loop)
        # By memory, as a launch may give a kernel the same one under two names.
        written = (memories[buffer] for buffer in self.plan.written & memories.keys())
        touches = {id(memory): Touches(memory.size) for memory in written}
        per_batch = max(1, _MOST_THREADS // size)
        for first in range(0, count, per_batch):
            group = np.repeat(np.arange(first, min(count, first + per_batch)), size)
            crowd = Crowd(group, size, self.is_kernel, EXPRESSIONS, self.host.libraries)
            elements = {
                id(memory): Elements.of_memory(memory, crowd, touches.get(id(memory)))
                for memory in memories.values()
            }
            crowd.memory |= {
                buffer: elements[id(memory)] for buffer, memory in memories.items()
            }
            crowd.origins = self.host.origins
            run(self._everyone(crowd), self.plan.body)

    def _everyone(self, crowd: Crowd) -> Threads:
        """The threads of `crowd`, who know the host's variables and their own places."""
        ids = np.arange(crowd.count)
        values = {var: as_value(var, plain) for var, plain in self.host.values.items()}
        everyone = Threads(crowd, ids, values)
        _bind(everyone, self.groups, crowd.group)
        _bind(everyone, self.threads, ids % crowd.group_size)
        return everyone


def _size(ranges: Sequence[_LoopRange]) -> int:
    return math.prod(max(0, r.extent) for r in ranges)


def _bind(everyone: Threads, ranges: Sequence[_LoopRange], number: Array) -> None:
    """Binds the loops' variables to the positions of those numbers, in row-major order."""
    positions = np.unravel_index(number, [r.extent for r in ranges]) if ranges else ()
    for r, position in zip(ranges, positions, strict=True):
        value = (position[:, None] + r.minimum).astype(to_numpy(r.loop.var.dtype))
        everyone.bind(r.loop.var, value)

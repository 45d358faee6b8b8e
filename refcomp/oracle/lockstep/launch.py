"""The shortcut of the interpreter: a kernel, or a nest of loops, runs in lockstep.

If it cannot, nothing has changed, and the plain interpreter runs the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.foundation.errors import RefcompError
from refcomp.ir.buffer import LOCAL, Buffer
from refcomp.ir.kernels import is_bound
from refcomp.ir.stmt import BLOCK_TAGS, For
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.kernels import bound_extents
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.expressions import EXPRESSIONS
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.lockstep.plans import LockstepPlan, plan_of
from refcomp.oracle.lockstep.shadow_memory import ShadowMemory
from refcomp.oracle.lockstep.statements import run
from refcomp.oracle.lockstep.threads import Batch, Threads, as_value
from refcomp.oracle.tensors.arrays import Array

_MAX_THREADS = 1 << 14  # of a batch, as each may allocate memory
# Elements that a loop nest of the host may write, for each of its iterations. All buffers that are
# written are saved before: with more elements, that takes longer than the iterations.
_MAX_SAVED_PER_THREAD = 1 << 13
_Ranges = dict[For, range]  # the values that the variable of each loop takes


@dataclass(slots=True, eq=False)
class LockstepShortcut:
    """The shortcut of one run."""

    min_threads: int  # or iterations: fewer are left to the plain interpreter
    plans: dict[For, LockstepPlan] = field(default_factory=dict)

    def __call__(self, host: Frame, loop: For) -> bool:
        """Return True if the kernel, or the loops of the host, that begin with `loop` have run.

        Raises InterpretError for bound loops that no kernel has.
        """
        plan = self.plans.get(loop)
        if plan is None:
            plan = self.plans[loop] = plan_of(loop)
        if not plan.loops:
            return False
        groups, threads = _ranges(host, plan.loops)
        launch = _Launch(host, plan, groups, threads, is_kernel=is_bound(loop))
        if launch.group_count * launch.group_size < max(1, self.min_threads):
            return False
        return launch.try_run()


def _ranges(host: Frame, loops: Sequence[For]) -> tuple[_Ranges, _Ranges]:
    """Return the ranges of groups and of a group's threads; an iteration is a group."""
    groups: _Ranges = {}
    threads: _Ranges = {}
    if is_bound(loops[0]):
        for loop, extent in bound_extents(host, loops).items():
            ranges = groups if loop.kind in BLOCK_TAGS else threads
            ranges[loop] = range(extent)
    else:
        for loop in loops:
            minimum = host.evaluate(loop.minimum)
            groups[loop] = range(minimum, minimum + host.evaluate(loop.extent))
    return groups, threads


@dataclass(frozen=True, slots=True, eq=False)
class _Launch:
    """A plan that is run once, over the ranges of groups and of the threads of a group."""

    host: Frame
    plan: LockstepPlan
    groups: _Ranges
    threads: _Ranges
    is_kernel: bool

    @property
    def group_count(self) -> int:
        """Return the number of groups."""
        return math.prod(map(len, self.groups.values()))

    @property
    def group_size(self) -> int:
        """Return the number of threads of a group."""
        return math.prod(map(len, self.threads.values()))

    def try_run(self) -> bool:
        """Run the plan. Return False, with all as before, if that bails out or takes too long."""
        memories: dict[Buffer, Memory] = {}
        for buffer in self.plan.used:
            is_hidden = self.is_kernel and buffer.scope == LOCAL
            if buffer in self.host.memory and not is_hidden:
                memories[buffer] = self.host.memory[buffer]
        written = [m for buffer, m in memories.items() if buffer in self.plan.written]
        max_saved = _MAX_SAVED_PER_THREAD * self.group_count * self.group_size
        if not self.is_kernel and sum(m.size for m in written) > max_saved:
            return False
        restorers = [memory.save() for memory in written]
        try:
            self._run(memories)
        except (BailOut, RefcompError, RecursionError):
            for restore in restorers:
                restore()
            self.plan.loops = ()
            return False
        return True

    def _run(self, memories: dict[Buffer, Memory]) -> None:
        """Run batches of groups one after the other, all threads of a batch in lockstep."""
        count = self.group_count
        size = self.group_size
        for loop in self.plan.loops:
            self.host.enter(loop)
        # By memory, as a launch may give a kernel one memory under two names.
        written = {memories[buffer] for buffer in self.plan.written & memories.keys()}
        shadows = {memory: ShadowMemory(memory.size) for memory in written}
        per_batch = max(1, _MAX_THREADS // size)
        for first in range(0, count, per_batch):
            numbers = np.arange(first, min(count, first + per_batch))
            group = np.repeat(numbers, size)
            batch = Batch(group, size, self.is_kernel, EXPRESSIONS, self.host.libraries)
            elements = {
                memory: Elements.of_memory(memory, batch, shadows.get(memory))
                for memory in memories.values()
            }
            batch.memory = {b: elements[memory] for b, memory in memories.items()}
            batch.folds = self.plan.folds
            batch.origins = self.host.origins
            run(self._all_threads(batch), self.plan.body)

    def _all_threads(self, batch: Batch) -> Threads:
        """Return all threads of `batch`, with the host's variables and their positions bound."""
        ids = np.arange(batch.count)
        values = {var: as_value(var, plain) for var, plain in self.host.values.items()}
        threads = Threads(batch, ids, values)
        _bind(threads, self.groups, batch.group)
        _bind(threads, self.threads, ids % batch.group_size)
        return threads


def _bind(threads: Threads, ranges: _Ranges, number: Array) -> None:
    """Bind the loops' variables to the positions of `number`, in row-major order."""
    if not ranges:
        return
    positions = np.unravel_index(number, [len(values) for values in ranges.values()])
    for (loop, values), position in zip(ranges.items(), positions, strict=True):
        value = position[:, None] + values.start
        threads.bind(loop.var, value.astype(to_numpy(loop.var.dtype)))

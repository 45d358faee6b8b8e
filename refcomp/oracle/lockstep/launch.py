"""The doors of this room: a kernel, or a nest of loops, run in step where that can be done.

Both say whether they have done it. Where they have not, nothing is changed, and the plain
interpreter does it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from refcomp.dtype import to_numpy
from refcomp.errors import RefcompError
from refcomp.ir.buffer import Buffer
from refcomp.ir.stmt import BLOCK_TAGS, For
from refcomp.oracle.arrays import Array
from refcomp.oracle.expressions import Frame
from refcomp.oracle.kernels import bound_loops
from refcomp.oracle.lockstep.choice import Doubt, Plan
from refcomp.oracle.lockstep.elements import Elements
from refcomp.oracle.lockstep.expressions import EXPRESSIONS
from refcomp.oracle.lockstep.plans import plan_of
from refcomp.oracle.lockstep.statements import run
from refcomp.oracle.lockstep.threads import Crowd, Threads, as_value
from refcomp.oracle.lockstep.touches import Touches
from refcomp.oracle.memory import Memory

_MOST_THREADS = 1 << 14  # in one go, as each may allocate memory
_MOST_PER_THREAD = 1 << 13  # elements of the buffers written, which all are saved before

_Range = tuple[For, int, int]  # a loop, its minimum and its extent
_Memories = Mapping[Buffer, Memory]


def kernel_ran(host: Frame, loop: For) -> bool:
    """Whether the kernel that begins with `loop` has run, all its threads in step.
    Raises InterpretError for loops that no kernel has."""
    plan = _plan_of(host, loop)
    if plan is None:
        return False
    ranges = [(loop, 0, extent) for loop, extent in bound_loops(host, plan.loops)]
    groups = [r for r in ranges if r[0].kind in BLOCK_TAGS]
    return _ran(host, plan, groups, [r for r in ranges if r[0].kind not in BLOCK_TAGS], True)


def loops_ran(host: Frame, loop: For) -> bool:
    """Whether the loops of the host that begin with `loop` have run, all iterations in step."""
    plan = _plan_of(host, loop)
    if plan is None:
        return False
    ranges = [(r, host.evaluate(r.minimum), host.evaluate(r.extent)) for r in plan.loops]
    return _ran(host, plan, ranges, [], False)


def _plan_of(host: Frame, loop: For) -> Plan | None:
    if host.in_step is None:
        return None
    plans = host.in_step.plans
    if loop not in plans:
        plans[loop] = plan_of(loop)
    return plans[loop] if plans[loop].loops else None


def _ran(
    host: Frame, plan: Plan, groups: list[_Range], threads: list[_Range], is_kernel: bool
) -> bool:
    count = _size(groups) * _size(threads)
    if host.in_step is None or count < host.in_step.least:
        return False
    seen = (b for b in plan.used if b in host.memory and not (is_kernel and b.scope == "local"))
    memories = {buffer: host.memory[buffer] for buffer in seen}
    written = [memory for buffer, memory in memories.items() if buffer in plan.written]
    if not is_kernel and sum(memory.size for memory in written) > _MOST_PER_THREAD * count:
        return False
    restorers = [memory.save() for memory in written]
    try:
        _run_in_batches(host, plan, memories, groups, threads, is_kernel)
    except (Doubt, RefcompError, RecursionError):
        for restore in restorers:
            restore()
        plan.loops = ()
        return False
    return True


def _size(ranges: list[_Range]) -> int:
    return math.prod(max(0, extent) for _, _, extent in ranges)


def _run_in_batches(
    host: Frame,
    plan: Plan,
    memories: _Memories,
    groups: list[_Range],
    threads: list[_Range],
    is_kernel: bool,
) -> None:
    """Runs some groups after the others, all threads of each in step."""
    count, size = _size(groups), _size(threads)
    for loop in plan.loops:
        host.enter(loop)
    touches = {id(memories[b]): Touches(memories[b].size) for b in plan.written & memories.keys()}
    per_batch = max(1, _MOST_THREADS // size)
    for first in range(0, count, per_batch):
        chosen = np.arange(first, min(count, first + per_batch))
        crowd = Crowd(np.repeat(chosen, size), size, is_kernel, EXPRESSIONS, host.libraries)
        # A launch may give a kernel one memory under two names.
        elements = {
            id(memory): Elements.of_memory(memory, crowd, touches.get(id(memory)))
            for memory in memories.values()
        }
        crowd.memory |= {buffer: elements[id(memory)] for buffer, memory in memories.items()}
        crowd.origins = host.origins
        ids = np.arange(crowd.count)
        values = {var: as_value(var, plain) for var, plain in host.values.items()}
        everyone = Threads(crowd, ids, values)
        _bind(everyone, groups, crowd.group)
        _bind(everyone, threads, ids % size)
        run(everyone, plan.body)


def _bind(everyone: Threads, ranges: list[_Range], number: Array) -> None:
    """Binds the loops' variables to the positions of those numbers, in row-major order."""
    positions = np.unravel_index(number, [extent for _, _, extent in ranges]) if ranges else ()
    for (loop, minimum, _), position in zip(ranges, positions, strict=True):
        value = (position[:, None] + minimum).astype(to_numpy(loop.var.dtype))
        everyone.bind(loop.var, value)

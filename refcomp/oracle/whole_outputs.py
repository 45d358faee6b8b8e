"""Runs a function that must write each element of its outputs, and may read none before.

So it is with what lowering makes. A function that goes on with what its outputs hold is run by
`refcomp.oracle.interpreter.interpret` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import AtomicUpdate, BufferStore, Store
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.interpret import bind_arguments, run_bound
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.lockstep.interpret import LEAST_THREADS, shortcut_for
from refcomp.oracle.watch import writes_to


@deep_recursion()
def interpret_whole(
    func: PrimFunc,
    args: Sequence[Any],
    *,
    num_tasks: int = 3,
    libraries: Sequence[str] = (),
    in_step: int | None = LEAST_THREADS,
) -> None:
    """As `interpret`, but the outputs of `func` hold nothing before. Raises InterpretError also
    when an element of an output is read before it is written, or never written; then the function
    runs once more, to tell who writes next to it."""
    frame = Frame(num_tasks=num_tasks)
    frame.libraries = libraries
    bind_arguments(frame, func, args, getattr(func, "outputs", ()))
    before = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    run_bound(frame, func.body, shortcut_for(args, in_step))
    for buffer in func.buffers:
        memory = frame.memory[buffer]
        if memory.written is not None and not memory.written.all():
            raise _unwritten(func, before, memory)


def _unwritten(func: PrimFunc, before: list[Any], memory: Memory) -> InterpretError:
    assert memory.written is not None
    missing, written = (
        np.flatnonzero(memory.written == 0),
        np.flatnonzero(memory.written),
    )
    first = int(missing[0])
    what = f"element {_index(memory, first)} of {memory.buffer.name} is never written"
    why = f"{len(missing)} of {memory.size} elements are not"
    if not written.size:
        return InterpretError(what, where=_idle_writer(func, memory.buffer), why=why)
    nearest = int(written[np.abs(written - first).argmin()])
    writes = writes_to(func, before, memory.buffer.name, _index(memory, nearest))
    why += f"; what comes nearest is the write of element {_index(memory, nearest)}"
    return InterpretError(what, where=writes[-1].where if writes else None, why=why)


def _index(memory: Memory, element: int) -> list[int]:
    return [int(i) for i in np.unravel_index(element, memory.shape)]


def _idle_writer(func: PrimFunc, buffer: Buffer) -> str | None:
    """The first statement that would write to `buffer`."""
    for node in walk(func.body):
        if (
            isinstance(node, BufferStore | Store | AtomicUpdate)
            and node.buffer is buffer
        ):
            return describe(node, {})
    return None

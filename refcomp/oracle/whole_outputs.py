"""Interprets functions that must write every element of their outputs, and read none before.

Functions that lowering makes are of this kind. A function that continues what its outputs hold is
run by `refcomp.oracle.lockstep.interpret.interpret`.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from refcomp.oracle.lockstep.interpret import MIN_THREADS, shortcut_for
from refcomp.oracle.watch import writes_to

_STORES = (BufferStore, Store, AtomicUpdate)


@deep_recursion()
def interpret_whole(
    func: PrimFunc,
    args: Sequence[object],
    *,
    num_tasks: int = 3,
    libraries: Sequence[str] = (),
    in_step: int | None = MIN_THREADS,
) -> None:
    r"""Run `func` as `interpret` does, but treat its outputs as memory that was never written.

    Args:
        func: the function, at any level.
        args: an array or a number for each parameter.
        num_tasks: the number of tasks of a parallel region.
        libraries: shared objects with the C functions that it calls.
        in_step: the least number of threads or iterations that run in lockstep; None for no
            lockstep.

    Raises:
        UserError: an argument is missing or does not fit.
        InterpretError: as for `interpret`; or an element of an output is read before it is written,
            or is never written. Then the error cites the write that comes nearest.

    Example::

        >>> text = "func f(B: f32[4] out) {\n  for i in range(3) {\n    B[i] = 0.0f32\n  }\n}\n"
        >>> rc.oracle.interpret_whole(rc.parse_func(text), [np.ones(4, "float32")])
        Traceback (most recent call last):
            ...
        refcomp.oracle.interpreter.failure.InterpretError: ...
    """
    frame = Frame(num_tasks=num_tasks)
    frame.libraries = libraries
    bind_arguments(frame, func, args, getattr(func, "outputs", ()))
    before = [np.copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    run_bound(frame, func.body, shortcut_for(args, in_step))
    for buffer in func.buffers:
        memory = frame.memory[buffer]
        if memory.written is not None and not memory.written.all():
            raise _unwritten(func, before, memory)


def _unwritten(
    func: PrimFunc, before: Sequence[object], memory: Memory
) -> InterpretError:
    """Return the error about the first element of `memory` that is never written.

    `before` holds the arguments as they were before the run.
    """
    assert memory.written is not None
    missing = np.flatnonzero(memory.written == 0)
    written = np.flatnonzero(memory.written)
    first = int(missing[0])
    what = f"element {_index(memory, first)} of {memory.buffer.name} is never written"
    why = f"{len(missing)} of {memory.size} elements are not"
    if not written.size:
        return InterpretError(what, where=_first_store(func, memory.buffer), why=why)
    distances = np.abs(written - first)
    nearest = _index(memory, int(written[distances.argmin()]))
    why += f"; what comes nearest is the write of element {nearest}"
    writes = writes_to(func, before, memory.buffer.name, nearest)
    where = writes[-1].where if writes else None
    return InterpretError(what, where=where, why=why)


def _index(memory: Memory, element: int) -> list[int]:
    return [int(i) for i in np.unravel_index(element, memory.shape)]


def _first_store(func: PrimFunc, buffer: Buffer) -> str | None:
    """Return the first statement that stores to `buffer`, although it did not run."""
    for node in walk(func.body):
        if isinstance(node, _STORES) and node.buffer is buffer:
            return describe(node, {})
    return None

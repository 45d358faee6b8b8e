"""Lists the writes to one element of an output: value, statement and iteration of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.func import PrimFunc
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.interpret import bind_arguments, run_bound
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import Thread
from refcomp.oracle.interpreter.scalars import Scalar
from refcomp.oracle.lockstep.interpret import MIN_THREADS, shortcut_for
from refcomp.oracle.tensors.arrays import Array


@dataclass(frozen=True, slots=True)
class Write:
    """One write to the element."""

    value: Scalar
    values: tuple[tuple[str, object], ...]  # variables that were bound, innermost last
    where: str = ""  # the statement with its origin

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.values)
        return f"{self.value} with {where}" if where else str(self.value)


class _WatchedMemory(Memory):
    """Memory that records the writes to one of its elements."""

    is_watched = True

    def __init__(self, plain: Memory, index: int) -> None:
        is_fresh = plain.written is not None
        super().__init__(plain.buffer, plain.shape, plain.array, is_fresh)
        self._index = index
        self.writes: list[Write] = []

    def write(self, index: int, value: Scalar, thread: Thread) -> None:
        super().write(index, value, thread)
        if index == self._index:
            self._record(value, thread)

    def update(
        self,
        index: int,
        operator: str,
        function: Callable[[Scalar], Scalar],
        thread: Thread,
    ) -> None:
        super().update(index, operator, function, thread)
        if index == self._index:
            self._record(self.array.flat[index], thread)

    def record_writes(
        self,
        at: Array,
        values: Array,
        ids: Array,
        thread_of: Callable[[int], Thread],
    ) -> None:
        at, values, ids = np.broadcast_arrays(at, values, ids)
        here = at == self._index
        for number, written in zip(ids[here], values[here], strict=True):
            scalar = written if self.buffer.dtype.is_float else written.item()
            self._record(scalar, thread_of(number))

    def _record(self, value: Scalar, thread: Thread) -> None:
        bound = tuple((var.name, number) for var, number in thread.values.items())
        self.writes.append(Write(value, bound, thread.where or ""))

    def save(self) -> Callable[[], None]:
        restore_elements = super().save()
        count = len(self.writes)

        def restore() -> None:
            restore_elements()
            del self.writes[count:]

        return restore


@deep_recursion()
def writes_to(
    func: PrimFunc,
    args: Sequence[object],
    output: str,
    index: Sequence[int],
    in_step: int | None = MIN_THREADS,
) -> list[Write]:
    """Return the writes to element `index` of the output named `output`, in order.

    Runs `func` on `args`. If the program breaks a rule, the list ends there. `in_step` is that of
    `refcomp.oracle.lockstep.interpret.interpret`.
    """
    frame = Frame(num_tasks=3)
    bind_arguments(frame, func, args)
    (buffer,) = [buffer for buffer in func.buffers if buffer.name == output]
    plain = frame.memory[buffer]
    watched = _WatchedMemory(plain, plain.offset(index))
    frame.memory[buffer] = watched
    with suppress(InterpretError):  # the caller asks for the writes until then
        run_bound(frame, func.body, shortcut_for(args, in_step))
    return watched.writes

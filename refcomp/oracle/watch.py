"""Tells who wrote one element: which iterations, and what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.expr import Var
from refcomp.ir.func import PrimFunc
from refcomp.oracle.interpreter.expressions import Frame
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.interpret import bind_arguments, run_bound
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import Thread
from refcomp.oracle.interpreter.scalars import Scalar
from refcomp.oracle.lockstep.interpret import LEAST_THREADS, shortcut_for
from refcomp.oracle.lockstep.threads import Threads
from refcomp.oracle.tensors.arrays import Array


@dataclass(frozen=True, slots=True)
class Write:
    """One write: the value, the statement with its origin, and the variables that were bound,
    innermost last."""

    value: Scalar
    values: tuple[tuple[str, Any], ...]
    where: str = ""

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.values)
        return f"{self.value} with {where}" if where else str(self.value)


class _Watched(Memory):
    """Memory that remembers the writes to one of its elements."""

    is_watched = True

    def __init__(self, plain: Memory, index: int) -> None:
        super().__init__(
            plain.buffer, plain.shape, plain.array, plain.written is not None
        )
        self._watched = index
        self.writes: list[Write] = []

    def write(self, index: int, value: Scalar, thread: Thread) -> None:
        super().write(index, value, thread)
        self._remember(index, value, thread)

    def update(
        self,
        index: int,
        operator: str,
        function: Callable[[Scalar], Scalar],
        thread: Thread,
    ) -> None:
        super().update(index, operator, function, thread)
        self._remember(index, self.array.flat[index], thread)

    def _remember(self, index: int, value: Scalar, thread: Thread) -> None:
        if index == self._watched:
            self._add(value, thread.values, thread.where or "")

    def wrote(self, at: Array, value: Array, ids: Array, threads: Threads) -> None:
        at, value, ids = np.broadcast_arrays(at, value, ids)
        here = at == self._watched
        for number, written in zip(ids[here], value[here], strict=True):
            values = threads.told(int(np.searchsorted(threads.ids, number)))
            plain = written if self.buffer.dtype.is_float else written.item()
            self._add(
                plain,
                values,
                describe(threads.crowd.stmt, values, threads.crowd.origins),
            )

    def _add(self, value: Scalar, values: Mapping[Var, Any], where: str) -> None:
        bound = tuple((var.name, given) for var, given in values.items())
        self.writes.append(Write(value, bound, where))

    def save(self) -> Callable[[], None]:
        restore_elements, count = super().save(), len(self.writes)

        def restore() -> None:
            restore_elements()
            del self.writes[count:]

        return restore


@deep_recursion()
def writes_to(
    func: PrimFunc,
    args: Sequence[Any],
    output: str,
    index: Sequence[int],
    in_step: int | None = LEAST_THREADS,
) -> list[Write]:
    """Every write to element `index` of the output named `output` when `func` runs on `args`, in
    order; those before an InterpretError, if the program breaks a rule. `in_step` is as for
    `interpret`."""
    frame = Frame(num_tasks=3)
    bind_arguments(frame, func, args)
    (buffer,) = [buffer for buffer in func.buffers if buffer.name == output]
    plain = frame.memory[buffer]
    watched = frame.memory[buffer] = _Watched(plain, plain.offset(index))
    with suppress(InterpretError):  # what was written until then is what is asked for
        run_bound(frame, func.body, shortcut_for(args, in_step))
    return watched.writes

"""Tells who wrote one element: which iterations, and what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc
from refcomp.oracle.expressions import Frame
from refcomp.oracle.failure import InterpretError
from refcomp.oracle.interpret import bind_arguments
from refcomp.oracle.memory import Memory
from refcomp.oracle.races import Thread
from refcomp.oracle.scalars import Scalar
from refcomp.oracle.statements import run_to_end
from refcomp.python_limits import deep_recursion


@dataclass(frozen=True, slots=True)
class Write:
    """One write: the value, and the variables that were bound, innermost last."""

    value: Scalar
    values: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        where = ", ".join(f"{name} = {value}" for name, value in self.values)
        return f"{self.value} with {where}" if where else str(self.value)


class _Watched(Memory):
    """Memory that remembers the writes to one of its elements."""

    def __init__(self, buffer: Buffer, shape: tuple[int, ...], array: Any, index: int) -> None:
        super().__init__(buffer, shape, array)
        self._watched = index
        self.writes: list[Write] = []

    def write(self, index: int, value: Scalar, thread: Thread) -> None:
        super().write(index, value, thread)
        self._remember(index, value, thread)

    def update(self, index: int, function: Callable[[Scalar], Scalar], thread: Thread) -> None:
        super().update(index, function, thread)
        self._remember(index, self.array.flat[index], thread)

    def _remember(self, index: int, value: Scalar, thread: Thread) -> None:
        if index == self._watched:
            bound = tuple((var.name, value) for var, value in thread.values.items())
            self.writes.append(Write(value, bound))


@deep_recursion()
def writes_to(
    func: PrimFunc, args: Sequence[Any], output: str, index: Sequence[int]
) -> list[Write]:
    """Every write to element `index` of the output named `output` when `func` runs on `args`, in
    order; those before an InterpretError, if the program breaks a rule."""
    frame = Frame(num_tasks=3)
    bind_arguments(frame, func, args)
    (buffer,) = [buffer for buffer in func.buffers if buffer.name == output]
    plain = frame.memory[buffer]
    position = plain.offset(index)
    watched = frame.memory[buffer] = _Watched(buffer, plain.shape, plain.array, position)
    try:
        with np.errstate(all="ignore"):
            run_to_end(frame, func.body)
    except InterpretError:
        pass  # what was written until then is what is asked for
    return watched.writes

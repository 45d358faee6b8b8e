"""The memory of a program that runs: the elements of its buffers, each access checked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import LOCAL, SHARED, Buffer
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.races import (
    READS,
    WRITES,
    RaceDetector,
    Thread,
    updates_by,
)
from refcomp.oracle.interpreter.scalars import Scalar


class Memory:
    """The elements of a buffer in row-major order, and which of them were written.

    The elements of an `array` that is given count as written, unless it `is_fresh`. Each access
    names the thread that makes it, so that races are found.
    """

    is_watched = False  # whether a subclass records each write, in order

    def __init__(
        self,
        buffer: Buffer,
        shape: tuple[int, ...],
        array: npt.NDArray[np.generic] | None = None,
        is_fresh: bool = False,
    ) -> None:
        self.buffer = buffer
        self.shape = shape
        self.size = math.prod(shape)
        # The number of the lifetime in which each element was last written. 0: never. None: all
        # elements count as written.
        self.written: npt.NDArray[np.int64] | None = None
        if array is None or is_fresh:
            self.written = np.zeros(self.size, np.int64)
        self._lifetime = 1
        self.array = np.empty(shape, to_numpy(buffer.dtype)) if array is None else array
        self._elements = self.array.flat
        self._races: RaceDetector | None = None
        if buffer.scope != LOCAL:
            self._races = RaceDetector(is_shared=buffer.scope == SHARED)

    def in_lifetime(self, number: int) -> Memory:
        """Return this memory as its allocation number `number` (from 1 on) sees it.

        What was written in another lifetime counts as never written. It is the same memory all the
        same: threads in different lifetimes may race.
        """
        again = copy.copy(self)
        again._lifetime = number
        return again

    @property
    def elements(
        self,
    ) -> npt.NDArray[np.generic] | np.flatiter[npt.NDArray[np.generic]]:
        """Return all elements in row-major order, to be indexed by arrays of positions."""
        is_plain = self.array.flags.c_contiguous
        return self.array.reshape(-1) if is_plain else self.array.flat

    def save(self) -> Callable[[], None]:
        """Return a function that restores the present elements."""
        array = self.array.copy()
        written = copy.copy(self.written)

        def restore() -> None:
            self.array[...] = array
            self.written = written

        return restore

    def record_writes(
        self,
        at: npt.NDArray[np.int64],
        values: npt.NDArray[np.generic],
        ids: npt.NDArray[np.int64],
        thread_of: Callable[[int], Thread],
    ) -> None:
        """Record that threads `ids` wrote `values` at `at`, if this memory is watched.

        The arrays broadcast. `thread_of` returns the thread of a number.
        """

    def read(self, index: int, thread: Thread) -> Scalar:
        """Return the element at `index`, which must have been written."""
        self._check(index, READS, thread)
        return self._value(index, thread)

    def write(self, index: int, value: Scalar, thread: Thread) -> None:
        """Store `value` as the element at `index`."""
        self._check(index, WRITES, thread)
        self._set(index, value)

    def update(
        self,
        index: int,
        operator: str,
        function: Callable[[Scalar], Scalar],
        thread: Thread,
    ) -> None:
        """Replace the element at `index` atomically by `function` of it; `operator` names that."""
        self._check(index, updates_by(operator), thread)
        self._set(index, function(self._value(index, thread)))

    def lend(
        self, is_read: bool, is_written: bool, thread: Thread, at: int | None = None
    ) -> npt.NDArray[np.generic]:
        """Return all elements, for a function outside the program.

        Args:
            is_read: all elements must have been written, as the function may read any.
            is_written: all elements count as written from now on.
            thread: the thread that calls the function.
            at: the element whose address the function gets, if any. Then only this element
                must have been written, since how far the function reads is not known.
        """
        kind = WRITES if is_written else READS
        for index in range(self.size):
            self._check(index, kind, thread)
            if is_read and at in (None, index):
                self._value(index, thread)
        if self.written is not None and is_written:
            self.written[:] = self._lifetime
        return self.array.view()

    def _value(self, index: int, thread: Thread) -> Scalar:
        if self.written is not None and self.written[index] != self._lifetime:
            why = None
            if thread.group is not None:
                why = "another thread may write it, but no barrier says that it has"
            raise InterpretError(
                f"element {index} of {self.buffer.name} is read, never written", why=why
            )
        value = self._elements[index]
        return value if self.buffer.dtype.is_float else value.item()

    def _set(self, index: int, value: Scalar) -> None:
        self._elements[index] = value
        if self.written is not None:
            self.written[index] = self._lifetime

    def offset(self, indices: Sequence[int]) -> int:
        """Return the row-major position of `indices`. Each must lie within its dimension."""
        if len(indices) != len(self.shape):
            raise InterpretError(
                f"{self.buffer.name} of rank {len(self.shape)} is given {len(indices)} indices"
            )
        position = 0
        for dim, (index, extent) in enumerate(zip(indices, self.shape, strict=True)):
            if not 0 <= index < extent:
                raise InterpretError(
                    f"index {index} in dimension {dim} of {self.buffer.name} is out of range",
                    why=f"the dimension has {extent} elements",
                )
            position = position * extent + index
        return position

    def _check(self, index: int, kind: str, thread: Thread) -> None:
        if not 0 <= index < self.size:
            raise InterpretError(
                f"element {index} of {self.buffer.name} is out of range",
                why=f"it has {self.size} elements",
            )
        if self._races is not None:
            self._races.check(kind, index, self.buffer.name, thread)

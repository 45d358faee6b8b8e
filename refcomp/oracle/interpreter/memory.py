"""The memory of a program that is run: the elements of its buffers, each access checked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.oracle.interpreter.failure import InterpretError
from refcomp.oracle.interpreter.races import (
    READS,
    WRITES,
    RaceDetector,
    Thread,
    updates_by,
)
from refcomp.oracle.interpreter.scalars import Scalar

_NOT_YET = "another thread may write it, but no barrier says that it has"


class Memory:
    """A buffer's elements, in row-major order, and which of them have been written.

    An `array` that is given has been written all over, unless it `is_fresh`. Each access tells
    which thread makes it, so that a race with another one is found.
    """

    is_watched = False  # whether somebody wants to know each write, in order

    def __init__(
        self,
        buffer: Buffer,
        shape: tuple[int, ...],
        array: Any = None,
        is_fresh: bool = False,
    ) -> None:
        self.buffer, self.shape, self.size = buffer, shape, math.prod(shape)
        self.array = np.empty(shape, to_numpy(buffer.dtype)) if array is None else array
        self._elements = self.array.flat
        # In which life of the memory each element was written last; they begin with 1.
        knows_all = array is not None and not is_fresh
        self.written, self._life = (
            None if knows_all else np.zeros(self.size, np.int64),
            1,
        )
        self._races = (
            None if buffer.scope == "local" else RaceDetector(buffer.scope == "shared")
        )

    def in_life(self, life: int) -> Memory:
        """The same memory, allocated again: of what was written in another life nothing is left.

        What is written in one life overwrites what another thread may still need in another one.
        """
        again = copy.copy(self)
        again._life = life
        return again

    @property
    def elements(self) -> Any:
        """All elements in row-major order, to be read and written by arrays of positions."""
        is_plain = self.array.flags.c_contiguous
        return self.array.reshape(-1) if is_plain else self.array.flat

    def save(self) -> Callable[[], None]:
        """What makes the memory again what it is now."""
        array, written = self.array.copy(), copy.copy(self.written)

        def restore() -> None:
            self.array[...], self.written = array, written

        return restore

    def wrote(self, at: Any, value: Any, ids: Any, threads: Any) -> None:
        """Those of `threads` (`refcomp.oracle.lockstep.threads`) with the numbers `ids` have made
        `value` the elements `at`: for who watches."""

    def read(self, index: int, thread: Thread) -> Scalar:
        """The element at `index`, which must have been written."""
        self._check(index, READS, thread)
        return self._value(index, thread)

    def write(self, index: int, value: Scalar, thread: Thread) -> None:
        """Makes `value` the element at `index`."""
        self._check(index, WRITES, thread)
        self._set(index, value)

    def update(
        self,
        index: int,
        operator: str,
        function: Callable[[Scalar], Scalar],
        thread: Thread,
    ) -> None:
        """Makes `function`, which `operator` names, of the element at `index` it, at once."""
        self._check(index, updates_by(operator), thread)
        self._set(index, function(self._value(index, thread)))

    def lend(
        self, is_read: bool, is_written: bool, thread: Thread, at: int | None = None
    ) -> Any:
        """All elements, for a function outside of the program that reads them, writes them, or
        both; those that it reads must have been written. Of a function that is given the address
        of element `at` only this is known: that it is one of them."""
        kind = WRITES if is_written else READS
        for index in range(self.size):
            self._check(index, kind, thread)
            if is_read and at in (None, index):
                self._value(index, thread)
        if self.written is not None and is_written:
            self.written[:] = self._life
        return self.array.view()

    def _value(self, index: int, thread: Thread) -> Scalar:
        if self.written is not None and self.written[index] != self._life:
            raise InterpretError(
                f"element {index} of {self.buffer.name} is read, never written",
                why=None if thread.group is None else _NOT_YET,
            )
        value = self._elements[index]
        return value if self.buffer.dtype.is_float else value.item()

    def _set(self, index: int, value: Scalar) -> None:
        self._elements[index] = value
        if self.written is not None:
            self.written[index] = self._life

    def offset(self, indices: Sequence[int]) -> int:
        """The row-major position of `indices`, each of which must lie within its dimension."""
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

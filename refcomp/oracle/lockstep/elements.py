"""The elements of a buffer as threads in step see them, each access checked for all at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import READS, WRITES, Thread, updates_by
from refcomp.oracle.lockstep.groups import Doubt, Groups
from refcomp.oracle.lockstep.touches import Touches
from refcomp.oracle.tensors.arrays import Array

_ZERO = np.zeros((1, 1), np.int64)
_MOST_ELEMENTS = (
    1 << 24
)  # of what a crowd allocates; with more, memory might not suffice


class Writers(Protocol):
    """Threads that write, in a row each (`refcomp.oracle.lockstep.threads.Threads`)."""

    ids: Array  # their numbers
    column: Array  # the same, as one column

    def thread_of(self, number: int) -> Thread:
        """Return the thread of a number, as the plain interpreter has it."""


class Elements:
    """A buffer's elements, and which of them have been written
    (`refcomp.oracle.interpreter.memory`).

    They lie in copies of the buffer, one for each thread, one for each group or one for all:
    thread i's begins at element `begin[i]`. `lives` counts how often each thread has allocated it.
    """

    def __init__(
        self,
        buffer: Buffer,
        shape: tuple[int, ...],
        crowd: Groups,
        data: Any,
        written: Array | None,
        by_thread: Touches | None,
    ) -> None:
        self.buffer, self.shape, self.size, self.crowd = (
            buffer,
            shape,
            math.prod(shape),
            crowd,
        )
        self.data, self.written = data, written
        self.begin: Array | None = None
        self.lives: Array | None = None
        self.memory: Memory | None = None
        self._by_thread = by_thread
        self._by_group: Touches | None = None

    @staticmethod
    def of_memory(memory: Memory, crowd: Groups, by_group: Touches | None) -> Elements:
        """Those of `memory`, which all see. `by_group` is what groups have touched, where the
        crowd writes: without a writer there are no races."""
        has_races = by_group is not None and crowd.group_size > 1
        by_thread = Touches(memory.size) if has_races else None
        found = Elements(
            memory.buffer,
            memory.shape,
            crowd,
            memory.elements,
            memory.written,
            by_thread,
        )
        found.memory, found._by_group = memory, by_group
        return found

    @staticmethod
    def allocated(buffer: Buffer, shape: tuple[int, ...], crowd: Groups) -> Elements:
        """Fresh ones, a copy for each thread; shared ones, a copy for each group."""
        is_shared, size = buffer.scope == "shared", math.prod(shape)
        copies = crowd.group - crowd.group[0] if is_shared else np.arange(crowd.count)
        total = (int(copies[-1]) + 1) * size
        if total > _MOST_ELEMENTS:
            raise Doubt
        data, written = (
            np.empty(total, to_numpy(buffer.dtype)),
            np.zeros(total, np.int64),
        )
        by_thread = Touches(total) if is_shared and crowd.group_size > 1 else None
        found = Elements(buffer, shape, crowd, data, written, by_thread)
        found.begin, found.lives = copies * size, np.zeros(crowd.count, np.int64)
        return found

    def begin_life(self, ids: Array) -> None:
        """The threads `ids` allocate it again: what was written is gone for them."""
        assert self.lives is not None
        self.lives[ids] += 1

    def read(self, offset: Array, ids: Array) -> Any:
        """The elements at `offset` of the threads `ids`, which must have been written."""
        at = self._place(offset, ids)
        self._note(READS, at, ids)
        self._check_written(at, ids)
        return self.data[at]

    def write(self, offset: Array, value: Array, ids: Array, threads: Writers) -> None:
        """Makes `value` the elements at `offset`; of several for one element, the last."""
        at = self._place(offset, ids)
        self._note(WRITES, at, ids)
        self._set(at, value, ids)
        self._tell(at, value, ids, threads)

    def update(
        self,
        operator: str,
        meaning: Callable[[Array, Array], Any],
        offset: Array,
        value: Array,
        threads: Writers,
    ) -> None:
        """Makes `meaning` of the element at `offset` and the value the element, for each thread.
        Raises Doubt where the order shows."""
        at, value, ids = np.broadcast_arrays(
            self._place(offset, threads.column), value, threads.column
        )
        several = self._note(updates_by(operator), at, ids)
        if several and (self.buffer.dtype.is_float or self.is_watched):
            raise Doubt
        self._check_written(at, ids)
        at, value, ids = at.ravel(), value.ravel(), ids.ravel()
        while at.size:
            _, first = np.unique(at, return_index=True)
            updated = meaning(self.data[at[first]], value[first])
            self._set(at[first], updated, ids[first])
            self._tell(at[first], updated, ids[first], threads)
            at, value, ids = (np.delete(part, first) for part in (at, value, ids))

    def offset(self, indices: Sequence[Array], by_dimension: bool = True) -> Array:
        """Where the element at `indices` lies, each of which must be within its dimension, or, if
        not `by_dimension`, which are a single one, counted in all elements."""
        shape = self.shape if by_dimension else (self.size,)
        if len(indices) != len(shape):
            raise Doubt
        position = _ZERO
        for index, extent in zip(indices, shape, strict=True):
            if not _is_within(index, extent):
                raise Doubt
            position = index if position is _ZERO else position * extent + index
        return position

    def _place(self, offset: Array, ids: Array) -> Array:
        return offset if self.begin is None else offset + self.begin[ids]

    def _note(self, kind: str, at: Array, ids: Array) -> bool:
        several = False
        if self._by_thread is not None or self._by_group is not None:
            at, ids = np.broadcast_arrays(at, ids)
        if self._by_thread is not None:
            several = self._by_thread.note(kind, at, ids, self.crowd.turn[ids])
        if self._by_group is not None:
            several |= self._by_group.note(kind, at, self.crowd.group[ids], 1)
        return several

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to know each write."""
        return self.memory is not None and self.memory.is_watched

    def _tell(self, at: Array, value: Array, ids: Array, threads: Writers) -> None:
        if self.memory is not None and self.memory.is_watched:
            self.memory.record_writes(at, value, ids, threads.thread_of)

    def _life(self, ids: Array) -> Any:
        return 1 if self.lives is None else self.lives[ids]

    def _check_written(self, at: Array, ids: Array) -> None:
        if self.written is not None and (self.written[at] != self._life(ids)).any():
            raise Doubt

    def _set(self, at: Array, value: Any, ids: Array) -> None:
        self.data[at] = value
        if self.written is not None:
            self.written[at] = self._life(ids)


def _is_within(index: Array, extent: int) -> bool:
    if index.size == 1:
        return bool(0 <= index.item() < extent)
    return bool(
        (index.astype(np.uint64) < extent).all()
    )  # what is negative becomes huge

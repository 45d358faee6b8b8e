"""The elements of a buffer as threads in lockstep access them, each access checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.ir.buffer import SHARED, Buffer
from refcomp.oracle.interpreter.memory import Memory
from refcomp.oracle.interpreter.races import READS, WRITES, Thread, updates_by
from refcomp.oracle.lockstep.groups import BailOut, Groups
from refcomp.oracle.lockstep.shadow_memory import ShadowMemory
from refcomp.oracle.tensors.arrays import Array

_ZERO = np.zeros((1, 1), np.int64)
# Elements that one allocation of a batch may have. With more, memory might not suffice.
_MAX_ELEMENTS = 1 << 24


class Writers(Protocol):
    """Threads that write, each in a row (`refcomp.oracle.lockstep.threads.Threads`)."""

    column: Array  # i64 [n, 1]: their numbers

    def thread_of(self, number: int) -> Thread:
        """Return thread `number` as an object of the plain interpreter."""


class Elements:
    """The elements of a buffer, and which of them were written.

    Lockstep's counterpart of `refcomp.oracle.interpreter.memory.Memory`. There is one copy of the
    buffer for each thread, for each group, or for all threads of the batch.
    """

    def __init__(
        self,
        buffer: Buffer,
        shape: tuple[int, ...],
        groups: Groups,
        data: Array | np.flatiter[Array],
        written: Array | None,
    ) -> None:
        self.buffer = buffer
        self.shape = shape
        self.size = math.prod(shape)  # elements of one copy
        self.groups = groups
        self.data = data  # [size of all copies]
        # i64 [size of all copies]: the lifetime of the last write, 0 for none. None: no checks.
        self.written = written
        # i64 [threads]: the first element of each thread's copy. None: one copy for all.
        self.begin: Array | None = None
        # i64 [threads]: how often each thread has run the allocation. None: not allocated here.
        self.lifetimes: Array | None = None
        # The memory of the host, if the buffer lies there.
        self.memory: Memory | None = None
        # Accesses by threads and by groups. None: they cannot race.
        self._by_thread: ShadowMemory | None = None
        self._by_group: ShadowMemory | None = None

    @staticmethod
    def of_memory(
        memory: Memory, groups: Groups, by_group: ShadowMemory | None
    ) -> Elements:
        """Return the elements of `memory`, which all threads see.

        `by_group` has the accesses of groups, of earlier batches, too. It is None if the launch
        only reads `memory`: without a writer nothing races.
        """
        found = Elements(
            memory.buffer, memory.shape, groups, memory.elements, memory.written
        )
        found.memory = memory
        found._by_group = by_group
        if by_group is not None and groups.group_size > 1:
            found._by_thread = ShadowMemory(memory.size)
        return found

    @staticmethod
    def allocated(buffer: Buffer, shape: tuple[int, ...], groups: Groups) -> Elements:
        """Return fresh elements: a copy for each group if they are shared, else for each thread."""
        is_shared = buffer.scope == SHARED
        size = math.prod(shape)
        copy = np.arange(groups.count)
        if is_shared:
            copy = groups.group - groups.group[0]
        total = (int(copy[-1]) + 1) * size
        if total > _MAX_ELEMENTS:
            raise BailOut
        data = np.empty(total, to_numpy(buffer.dtype))
        found = Elements(buffer, shape, groups, data, np.zeros(total, np.int64))
        found.begin = copy * size
        found.lifetimes = np.zeros(groups.count, np.int64)
        if is_shared and groups.group_size > 1:
            found._by_thread = ShadowMemory(total)
        return found

    def begin_lifetime(self, ids: Array) -> None:
        """Allocate again for the threads `ids`: for them, nothing is written any more."""
        assert self.lifetimes is not None
        self.lifetimes[ids] += 1

    def read(self, offset: Array, ids: Array) -> Array:
        """Return the elements at `offset` of the threads `ids`. All must have been written."""
        at = self._position(offset, ids)
        self._record_access(READS, at, ids)
        self._check_written(at, ids)
        return self.data[at]

    def write(self, offset: Array, value: Array, ids: Array, threads: Writers) -> None:
        """Store `value` at `offset`; of several values for one element, the last."""
        at = self._position(offset, ids)
        self._record_access(WRITES, at, ids)
        self._store(at, value, ids)
        self._report_writes(at, value, ids, threads)

    def update(
        self,
        operator: str,
        meaning: Callable[[Array, Array], Array],
        offset: Array,
        value: Array,
        threads: Writers,
    ) -> None:
        """Replace, for each thread, the element at `offset` by `meaning` of it and `value`.

        Raises BailOut if the order shows: for floats, which round, and for watched memory.
        """
        at = self._position(offset, threads.column)
        at, value, ids = np.broadcast_arrays(at, value, threads.column)
        has_several = self._record_access(updates_by(operator), at, ids)
        if has_several and (self.buffer.dtype.is_float or self.is_watched):
            raise BailOut
        self._check_written(at, ids)
        at = at.ravel()
        value = value.ravel()
        ids = ids.ravel()
        # Each round updates every element once, by the first thread that is left.
        while at.size:
            _, first = np.unique(at, return_index=True)
            updated = meaning(self.data[at[first]], value[first])
            self._store(at[first], updated, ids[first])
            self._report_writes(at[first], updated, ids[first], threads)
            at = np.delete(at, first)
            value = np.delete(value, first)
            ids = np.delete(ids, first)

    def offset(self, indices: Sequence[Array], by_dimension: bool = True) -> Array:
        """Return the row-major position of `indices`, each within its dimension.

        If not `by_dimension`, there is a single index, which counts all elements.
        """
        shape = self.shape if by_dimension else (self.size,)
        if len(indices) != len(shape):
            raise BailOut
        position = _ZERO
        for index, extent in zip(indices, shape, strict=True):
            if not _is_within(index, extent):
                raise BailOut
            position = index if position is _ZERO else position * extent + index
        return position

    def _position(self, offset: Array, ids: Array) -> Array:
        """Return the positions of the threads' elements among all copies."""
        return offset if self.begin is None else offset + self.begin[ids]

    def _record_access(self, kind: str, at: Array, ids: Array) -> bool:
        """Return whether several agents accessed one of the elements. Raises BailOut for a race."""
        has_several = False
        if self._by_thread is not None or self._by_group is not None:
            at, ids = np.broadcast_arrays(at, ids)
        if self._by_thread is not None:
            interval = self.groups.interval[ids]
            has_several = self._by_thread.record(kind, at, ids, interval)
        if self._by_group is not None:
            # Groups never wait for each other: a launch is one interval.
            has_several |= self._by_group.record(kind, at, self.groups.group[ids], 1)
        return has_several

    @property
    def is_watched(self) -> bool:
        """Return True if the memory records each write."""
        return self.memory is not None and self.memory.is_watched

    def _report_writes(
        self, at: Array, value: Array, ids: Array, threads: Writers
    ) -> None:
        if self.memory is not None and self.memory.is_watched:
            self.memory.record_writes(at, value, ids, threads.thread_of)

    def _lifetime(self, ids: Array) -> Array | int:
        return 1 if self.lifetimes is None else self.lifetimes[ids]

    def _check_written(self, at: Array, ids: Array) -> None:
        if self.written is None:
            return
        if (self.written[at] != self._lifetime(ids)).any():
            raise BailOut

    def _store(self, at: Array, value: Array, ids: Array) -> None:
        self.data[at] = value
        if self.written is not None:
            self.written[at] = self._lifetime(ids)


def _is_within(index: Array, extent: int) -> bool:
    if index.size == 1:
        return bool(0 <= index.item() < extent)
    # As unsigned, a negative index is huge.
    return bool((index.astype(np.uint64) < extent).all())

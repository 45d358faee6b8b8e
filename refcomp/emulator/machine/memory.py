"""Memory: bytes, the bits of them that were written, and the allocations they belong to.

`Bytes` is any memory; the LDS of all groups and the scratch memory of all lanes are one each.
`Arena` is the memory of the device. Each allocation is followed by a red zone, so that an index
that is a little too large hits no other allocation. The addresses of a freed allocation are kept
in quarantine until the arena runs out of others.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refcomp.emulator.machine.arrays import Array, Mask, Offsets
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

BASE = 0x1000_0000_0000  # address of the first byte
_ALIGNMENT = 256
_RED_ZONE = 4096
# Bytes that are kept in quarantine, to find their use after they were freed.
_MAX_QUARANTINE = 64 << 20
_ONES = np.uint32(0xFFFFFFFF)
# Bytes of an item -> its numpy type. numpy has no integers of 16 bytes; such items are only copied.
BY_WIDTH: dict[int, type[np.number]] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
    16: np.complex128,
}
ALL_ONES: dict[int, Array] = {
    width: np.full(width, 0xFF, np.uint8).view(t) for width, t in BY_WIDTH.items()
}


class LoadedBits(NamedTuple):
    """Values with their undefined bits. A tuple, since each load makes some."""

    values: Array  # unsigned integers
    undefined: Array | None  # bits of them that nothing wrote; None: all were written


class Bytes:
    """A memory of `size` bytes, which tracks undefined bits if it `is_watched`."""

    def __init__(self, size: int, *, is_watched: bool) -> None:
        # Not empty: a read that is out of bounds reads the first bytes, and drops them.
        self.data = np.zeros(-(-max(size, 1) // 16) * 16, np.uint8)
        # A 1 for each bit that was written; None: not watched. Not by zeros_like, which writes the
        # zeros: pages that nothing uses shall cost no memory.
        self.known = np.zeros(self.data.shape, np.uint8) if is_watched else None

    def load(self, index: Array, width: int) -> Array:
        """Return the unsigned integers of `width` bytes at each index."""
        return gather(self.data, index, width)

    def load_undefined(self, index: Array, width: int) -> Array | None:
        """Return which bits there nothing wrote; None when all were written."""
        if self.known is None:
            return None
        undefined = ~gather(self.known, index, width)
        return undefined if undefined.any() else None

    def load_words(self, index: Array, count: int) -> LoadedBits:
        """Return 1, 2 or 4 words of 32 bits at each index: [index, word]."""
        words = gather(self.data, index, 4 * count).view(np.uint32).reshape(-1, count)
        if self.known is None:
            return LoadedBits(words, None)
        known = gather(self.known, index, 4 * count).view(np.uint32).reshape(-1, count)
        return LoadedBits(words, None if (known == _ONES).all() else ~known)

    def store(
        self, index: Array, width: int, values: Array, undefined: Array | None
    ) -> None:
        """Write items of `width` bytes. If indices are equal, any one of their values is kept."""
        scatter(self.data, index, width, values)
        if self.known is not None:
            scatter(
                self.known,
                index,
                width,
                ALL_ONES[width] if undefined is None else ~undefined,
            )


def _are_aligned(index: Array, width: int) -> bool:
    return not int(np.bitwise_or.reduce(index, axis=None)) & (width - 1)


def gather(data: Array, index: Array, width: int) -> Array:
    """Return the items of `width` bytes at byte offsets, which need not be aligned."""
    if width == 1:
        return data.take(index)
    if _are_aligned(index, width):
        return data.view(BY_WIDTH[width]).take(index >> (width.bit_length() - 1))
    octets = data[index[..., None] + np.arange(width)]
    return octets.view(BY_WIDTH[width])[..., 0]


def scatter(data: Array, index: Array, width: int, values: npt.ArrayLike) -> None:
    """Write an item for each byte offset, or one item to all: the reverse of `gather`."""
    typed = np.asarray(values, BY_WIDTH[width])
    if width == 1:
        data[index] = typed
    elif _are_aligned(index, width):
        data.view(BY_WIDTH[width])[index >> (width.bit_length() - 1)] = typed
    else:
        octets = np.ascontiguousarray(typed).view(np.uint8).reshape(*typed.shape, width)
        data[index[..., None] + np.arange(width)] = octets


def may_reach(address: Array, end: Array | np.integer | int, size: int) -> Mask:
    """Return True where a load of `size` bytes is legal in memory that ends at `end`.

    LLVM widens a load if the wider one cannot fault. For example, it loads five bytes that are
    aligned by eight as eight bytes, and three words that are aligned by eight as four. So a load
    may begin in memory and end beyond it in two cases. It is aligned by its size, or it ends in the
    same eight aligned bytes as the memory. The bytes beyond are undefined. Any use of them is
    reported.
    """
    is_aligned = size & (size - 1) == 0 and address % address.dtype.type(size) == 0
    eight = address.dtype.type(8)
    # This sum wraps only for addresses beyond the end.
    reach = address + address.dtype.type(size)
    last = (end + eight - 1) // eight * eight
    legal: Mask = (address < end) & (is_aligned | (reach <= last))
    return legal


def _with_red_zone(size: int) -> int:
    return -(-(size + _RED_ZONE) // _ALIGNMENT) * _ALIGNMENT


@dataclass(slots=True)
class Allocation:
    """Bytes of the arena that belong together."""

    address: int
    size: int
    label: str
    is_free: bool = False  # whether they were given back

    @property
    def end(self) -> int:
        return self.address + self.size


def _reserve(size: int, is_watched: bool) -> Bytes:
    try:
        return Bytes(size, is_watched=is_watched)
    except MemoryError as error:
        whole = size * (1 + is_watched) >> 20
        raise Unsupported(
            f"the memory of an emulated GPU, {whole} MiB, cannot be reserved",
            why="the address space of this process is limited (ulimit -v, RLIMIT_AS), or the "
            "machine reserves no more than it has",
            remedy="raise the limit: ulimit -v unlimited. Pages that no kernel touches cost no "
            "memory. Unchecked (emulator:gfx942:unchecked, --no-checks) it takes half",
        ) from error


class ArenaState(NamedTuple):
    """The allocations of an arena at some time, without their bytes."""

    allocations: tuple[Allocation, ...]  # copies, with those in quarantine
    extent: int  # as `Arena.extent` returned it
    freed_bytes: int  # in quarantine


class LivePlaces(NamedTuple):
    """The live allocations, sorted, as offsets in the arena: int64 [allocation]."""

    starts: Offsets
    ends: Offsets


class Arena:
    """The memory of a device, of `size` bytes."""

    def __init__(self, size: int, *, is_watched: bool) -> None:
        self.bytes = _reserve(size, is_watched)
        self.size = size
        self._starts: list[int] = []  # addresses of the allocations, sorted
        self._allocations: dict[int, Allocation] = {}  # by address
        self._next = BASE  # nothing was allocated from here on
        self._freed_bytes = 0  # in quarantine

    def allocate(self, size: int, label: str) -> Allocation | None:
        """Return `size` bytes, followed by a red zone, or None when memory is exhausted."""
        whole = _with_red_zone(size)
        if self._freed_bytes > _MAX_QUARANTINE:
            self._forget_freed()
        address = (
            self._next
            if self._next + whole <= BASE + self.size
            else self._find_gap(whole)
        )
        if address is None:
            return None
        if address == self._next:
            self._next += whole
        found = Allocation(address, size, label)
        self._allocations[address] = found
        insort(self._starts, address)
        if self.bytes.known is not None:
            self.bytes.known[address - BASE : address - BASE + whole] = 0
        return found

    def free(self, address: int) -> bool:
        """Free the allocation at `address`; return whether there was one."""
        found = self._allocations.get(address)
        if found is None or found.is_free:
            return False
        found.is_free = True
        self._freed_bytes += found.size
        return True

    def state(self) -> ArenaState:
        """Return the allocations as they are now, for `reset`."""
        copies = tuple(replace(one) for one in self._allocations.values())
        return ArenaState(copies, self.extent(), self._freed_bytes)

    def reset(self, state: ArenaState) -> None:
        """Give the arena the allocations of an earlier time. Bytes are left as they are."""
        self._allocations = {one.address: replace(one) for one in state.allocations}
        self._starts = sorted(self._allocations)
        self._next = BASE + state.extent
        self._freed_bytes = state.freed_bytes

    def _forget_freed(self) -> None:
        """End the quarantine. Addresses after the last live allocation are then given out anew."""
        for address in [a for a, found in self._allocations.items() if found.is_free]:
            del self._allocations[address]
        self._starts = sorted(self._allocations)
        self._next = BASE
        if self._starts:
            last = self._starts[-1]
            self._next = last + _with_red_zone(self._allocations[last].size)
        self._freed_bytes = 0

    def _find_gap(self, whole: int) -> int | None:
        """Return the address of a gap between allocations, after the end of the quarantine."""
        self._forget_freed()
        end = BASE
        for start in [*self._starts, BASE + self.size]:
            if start - end >= whole:
                return end
            if start < BASE + self.size:
                end = start + _with_red_zone(self._allocations[start].size)
        return None

    def live_places(self) -> LivePlaces:
        """Return where the live allocations lie."""
        live = [self._allocations[start] for start in self._starts]
        live = [one for one in live if not one.is_free]
        starts = np.array([one.address - BASE for one in live], np.int64)
        ends = np.array([one.end - BASE for one in live], np.int64)
        return LivePlaces(starts, ends)

    def extent(self) -> int:
        """Return the offset from which on nothing was ever allocated."""
        return self._next - BASE

    def allocations(self) -> tuple[Allocation, ...]:
        """Return the allocations that are not free, by address."""
        return tuple(one for one in self._allocations.values() if not one.is_free)

    def free_bytes(self) -> int:
        """Return how many bytes belong to no allocation."""
        return self.size - sum(
            a.size for a in self._allocations.values() if not a.is_free
        )

    def allocation_at(self, address: int) -> Allocation | None:
        """Return the nearest allocation that begins at or below an address."""
        place = bisect_right(self._starts, address)
        return self._allocations[self._starts[place - 1]] if place else None

    def holds(self, address: int, size: int) -> bool:
        """Return whether these bytes belong to one live allocation."""
        found = self.allocation_at(address)
        return found is not None and not found.is_free and address + size <= found.end

    def write(self, address: int, data: bytes | Array) -> None:
        """Write bytes of the host."""
        piece = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        start = address - BASE
        self.bytes.data[start : start + len(piece)] = piece
        if self.bytes.known is not None:
            self.bytes.known[start : start + len(piece)] = 0xFF

    def read(self, address: int, size: int) -> npt.NDArray[np.uint8]:
        """Return a view of the bytes, for the host."""
        return self.bytes.data[address - BASE : address - BASE + size]

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes, and whether they were written, to the address `target`."""
        to = slice(target - BASE, target - BASE + size)
        origin = slice(source - BASE, source - BASE + size)
        for part in (self.bytes.data, self.bytes.known):
            if part is not None:
                part[to] = part[origin].copy()  # they may overlap

    def is_known(self, address: int, size: int) -> bool:
        """Return whether all these bytes were written."""
        known = self.bytes.known
        return known is None or bool(
            (known[address - BASE : address - BASE + size] == 0xFF).all()
        )

    def outside(
        self, addresses: Array, size: int, *, is_load: bool = False
    ) -> Mask | None:
        """Return where `size` bytes do not belong to one live allocation; None: they all do.

        A load may reach beyond the end, as `may_reach` says.
        """
        if not addresses.size:
            return None
        low = int(addresses.min())
        high = int(addresses.max())
        if self.holds(low, high - low + size):
            return None
        allocations = [self._allocations[start] for start in self._starts]
        # An allocation at 0 that ends at 0 stands for the addresses below all others.
        starts = np.array([0, *(a.address for a in allocations)], np.uint64)
        ends = np.array(
            [0, *(0 if a.is_free else a.end for a in allocations)], np.uint64
        )
        place = np.searchsorted(starts, addresses, "right") - 1
        # Not by the sum of address and size, which might wrap.
        wrong: Mask = (addresses > ends[place]) | (
            ends[place] - addresses < np.uint64(size)
        )
        if is_load and wrong.any():
            wrong = ~may_reach(addresses, ends[place], size)
        return wrong if wrong.any() else None

    def describe(self, address: int, size: int) -> str:
        """Describe an access that is out of bounds by the allocation that it misses."""
        below = self.allocation_at(address)
        place = bisect_right(self._starts, address)
        bytes_ = counted(size, "byte")
        if below is not None and below.is_free and address < below.end:
            return f"{bytes_} in {below.label}, which was freed"
        if below is not None and address < below.end + _RED_ZONE:
            past = counted(address + size - below.end, "byte")
            extent = counted(below.size, "byte")
            return f"{bytes_} that end {past} behind {below.label} ({extent})"
        if place < len(self._starts) and self._starts[place] - address <= _RED_ZONE:
            above = self._allocations[self._starts[place]]
            before = counted(above.address - address, "byte")
            return f"{bytes_}, {before} before {above.label}"
        return f"{bytes_} at {address:#x}, far from all memory"

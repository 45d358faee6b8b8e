"""Memory: bytes, for each of them which bits were written, and who they belong to.

`Bytes` is any memory; the LDS of all groups and the scratch memory of all lanes lie in one each.
`Arena` is the memory of the device: each allocation is followed by a red zone, so that an index a
little too large meets nobody else's bytes, and a freed one is not given out again while there is
other room.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.foundation.errors import Unsupported

BASE = 0x1000_0000_0000
_ALIGNMENT = 256
_RED_ZONE = 4096
# So many freed bytes are kept from use, that what uses them wrongly is found.
_QUARANTINE = 64 << 20
_ONES = np.uint32(0xFFFFFFFF)
# numpy has no integers of 16 bytes; items of that type are only copied.
BY_WIDTH: dict[int, Any] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
    16: np.complex128,
}
ALL_ONES = {
    width: np.full(width, 0xFF, np.uint8).view(t) for width, t in BY_WIDTH.items()
}


class LoadedBits(NamedTuple):
    """What lay in memory or comes of it. A tuple, since each load makes some."""

    # Unsigned integers.
    values: Array
    # Their bits that nobody wrote, of the same shape; None: all were written.
    undefined: Array | None


class Bytes:
    """`known` has a 1 for each bit that was written; None where that is not watched."""

    def __init__(self, size: int, *, is_watched: bool) -> None:
        # Never none at all: what is read out of bounds is read of the first bytes, and dropped.
        self.data = np.zeros(-(-max(size, 1) // 16) * 16, np.uint8)
        # Not zeros_like, which writes the zeros: pages that nobody uses shall cost nothing.
        self.known = np.zeros(self.data.shape, np.uint8) if is_watched else None

    def load(self, index: Array, width: int) -> Array:
        """What lies at each index, as unsigned integers of `width` bytes."""
        return gather(self.data, index, width)

    def load_undefined(self, index: Array, width: int) -> Array | None:
        """Which bits there nobody wrote; None when all are written."""
        if self.known is None:
            return None
        known = gather(self.known, index, width)
        undefined: Array = ~known
        return undefined if undefined.any() else None

    def load_words(self, index: Array, count: int) -> LoadedBits:
        """1, 2 or 4 words of 32 bits at each index: [index, word]."""
        words = gather(self.data, index, 4 * count).view(np.uint32).reshape(-1, count)
        if self.known is None:
            return LoadedBits(words, None)
        known = gather(self.known, index, 4 * count).view(np.uint32).reshape(-1, count)
        return LoadedBits(words, None if (known == _ONES).all() else ~known)

    def store(
        self, index: Array, width: int, values: Array, undefined: Array | None
    ) -> None:
        """Write items of `width` bytes; of equal indices one wins."""
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
    """Items of `width` bytes at byte offsets, which need not be aligned."""
    if width == 1:
        return data.take(index)
    if _are_aligned(index, width):
        return data.view(BY_WIDTH[width]).take(index >> (width.bit_length() - 1))
    octets = data[index[..., None] + np.arange(width)]
    return octets.view(BY_WIDTH[width])[..., 0]


def scatter(data: Array, index: Array, width: int, values: Array) -> None:
    """The reverse of `gather`: an item for each offset, or one for all."""
    typed = np.asarray(values, BY_WIDTH[width])
    if width == 1:
        data[index] = typed
    elif _are_aligned(index, width):
        data.view(BY_WIDTH[width])[index >> (width.bit_length() - 1)] = typed
    else:
        octets = np.ascontiguousarray(typed).view(np.uint8).reshape(*typed.shape, width)
        data[index[..., None] + np.arange(width)] = octets


def may_reach(address: Array, end: Any, size: int) -> Array:
    """Whether a load of `size` bytes is right in memory that ends at `end`: Note [Loads]."""
    is_aligned = size & (size - 1) == 0 and address % address.dtype.type(size) == 0
    eight = address.dtype.type(8)
    reach = address + address.dtype.type(
        size
    )  # which wraps only of addresses beyond the end
    found: Array = (address < end) & (
        is_aligned | (reach <= (end + eight - 1) // eight * eight)
    )
    return found


def _with_zone(size: int) -> int:
    return -(-(size + _RED_ZONE) // _ALIGNMENT) * _ALIGNMENT


@dataclass(slots=True)
class Allocation:
    """Bytes of the arena that belong together; `is_free` once they were given back."""

    address: int
    size: int
    label: str
    is_free: bool = False

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


class Arena:
    """The memory of a device, of `size` bytes."""

    def __init__(self, size: int, *, is_watched: bool) -> None:
        self.bytes = _reserve(size, is_watched)
        self.size = size
        self._starts: list[int] = []
        self._allocations: dict[int, Allocation] = {}
        self._next = BASE
        self._freed_bytes = 0

    def allocate(self, size: int, label: str) -> Allocation | None:
        """`size` bytes with a red zone behind them, or None when there is no room."""
        whole = _with_zone(size)
        if self._freed_bytes > _QUARANTINE:
            self._forget_freed()
        address = (
            self._next if self._next + whole <= BASE + self.size else self._gap(whole)
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
        """Whether there was such an allocation; its bytes may be used no more."""
        found = self._allocations.get(address)
        if found is None or found.is_free:
            return False
        found.is_free = True
        self._freed_bytes += found.size
        return True

    def _forget_freed(self) -> None:
        """Room behind the last allocation that lives is given out anew, lest memory only grow."""
        for address in [a for a, found in self._allocations.items() if found.is_free]:
            del self._allocations[address]
        self._starts = sorted(self._allocations)
        last = self._starts[-1] if self._starts else None
        size = 0 if last is None else _with_zone(self._allocations[last].size)
        self._next, self._freed_bytes = (last or BASE) + size, 0

    def _gap(self, whole: int) -> int | None:
        """Where freed allocations, now forgotten, leave room."""
        self._forget_freed()
        end = BASE
        for start in [*self._starts, BASE + self.size]:
            if start - end >= whole:
                return end
            if start < BASE + self.size:
                end = start + _with_zone(self._allocations[start].size)
        return None

    def extent(self) -> int:
        """Behind so many bytes nothing was ever allocated."""
        return self._next - BASE

    def free_bytes(self) -> int:
        """How many bytes belong to nobody."""
        return self.size - sum(
            a.size for a in self._allocations.values() if not a.is_free
        )

    def allocation_at(self, address: int) -> Allocation | None:
        """The allocation that begins at or below an address, the nearest one."""
        place = bisect_right(self._starts, address)
        return self._allocations[self._starts[place - 1]] if place else None

    def holds(self, address: int, size: int) -> bool:
        """Whether the bytes belong to one living allocation."""
        found = self.allocation_at(address)
        return found is not None and not found.is_free and address + size <= found.end

    def write(self, address: int, data: bytes | Array) -> None:
        """Bytes from the host."""
        piece = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        start = address - BASE
        self.bytes.data[start : start + len(piece)] = piece
        if self.bytes.known is not None:
            self.bytes.known[start : start + len(piece)] = 0xFF

    def read(self, address: int, size: int) -> Array:
        """Bytes for the host; a view."""
        return self.bytes.data[address - BASE : address - BASE + size]

    def copy(self, target: int, source: int, size: int) -> None:
        """Bytes from one place to another, and whether they are written."""
        for part in (self.bytes.data, self.bytes.known):
            if part is not None:
                part[target - BASE : target - BASE + size] = part[
                    source - BASE : source - BASE + size
                ].copy()

    def is_known(self, address: int, size: int) -> bool:
        """Whether all these bytes were written."""
        known = self.bytes.known
        return known is None or bool(
            (known[address - BASE : address - BASE + size] == 0xFF).all()
        )

    def outside(
        self, addresses: Array, size: int, *, is_load: bool = False
    ) -> Array | None:
        """Where `size` bytes at an address belong to nobody, or not to one; None: nowhere. A load
        may reach a little further."""
        if not addresses.size:
            return None
        low, high = int(addresses.min()), int(addresses.max())
        if self.holds(low, high - low + size):
            return None
        living = [self._allocations[start] for start in self._starts]
        starts = np.array([0, *(a.address for a in living)], np.uint64)
        ends = np.array([0, *(0 if a.is_free else a.end for a in living)], np.uint64)
        place = np.searchsorted(starts, addresses, "right") - 1
        # The sum of address and size might wrap.
        wrong = (addresses > ends[place]) | (ends[place] - addresses < np.uint64(size))
        if is_load and wrong.any():
            wrong = ~may_reach(addresses, ends[place], size)
        return wrong if wrong.any() else None

    def describe(self, address: int, size: int) -> str:
        """What is told of an access that is out of bounds."""
        below = self.allocation_at(address)
        place = bisect_right(self._starts, address)
        if below is not None and below.is_free and address < below.end:
            return f"{size} bytes in {below.label}, which was freed"
        if below is not None and address < below.end + _RED_ZONE:
            past = address + size - below.end
            return f"{size} bytes that end {past} bytes behind {below.label} ({below.size} bytes)"
        if place < len(self._starts) and self._starts[place] - address <= _RED_ZONE:
            above = self._allocations[self._starts[place]]
            return f"{size} bytes, {above.address - address} bytes before {above.label}"
        return f"{size} bytes at {address:#x}, far from all memory"


# Note [Loads]
# ~~~~~~~~~~~~
# LLVM loads more than a kernel asked for where that cannot fail: five bytes that are aligned by
# eight as eight bytes, three words that are aligned by eight as four. So a load may begin in memory
# and end beyond it, as long as it is aligned by its size, or ends in the same eight aligned bytes
# as the memory does. What lies there counts as written by nobody: whoever uses it is told of.

"""Whole words of the device's memory, loaded by all lanes of all waves: a fast way.

Unrolled loops load through one address with many constants added. As in `shared_words`, what
follows from an address is computed once, and used while its registers hold the same values. Whether
all bytes were written is seen by a look at the whole span of memory, if that is short. All other
loads go the general way of `refcomp.emulator.instructions.memory.loads_and_stores`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import Operand, RegisterRange
from refcomp.emulator.machine.arrays import Array, Offsets, Words, join
from refcomp.emulator.machine.memory import BASE, BY_WIDTH
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index
from refcomp.emulator.machine.waves import Run, Waves

# A span of memory is looked at as a whole if it has at most so many bytes for each loaded one.
_MAX_SPAN = 4
_ALL_KNOWN = 0xFF


class HeldAddress(NamedTuple):
    """The values of the registers of an address. A tuple, since each load looks at it."""

    # Bits 0 to 31 of the address of each lane, or with a base an offset: [wave, lane].
    low_or_offset: Words
    # Bits 32 to 63, [wave, lane], or bits 0 to 31 of the base, [wave].
    high_or_base: Words
    # Bits 32 to 63 of the base, [wave]; None: no base.
    base_high: Words | None


@dataclass(frozen=True, slots=True)
class AddressRegisters:
    """The registers of an address: a pair of vector registers, or an offset and a scalar base."""

    register: int  # the first vector register, or that of the offset
    base: int | None  # the first of two scalar registers

    @property
    def numbers(self) -> frozenset[int]:
        """The registers, as `Registers.dirty` counts them."""
        first = FIRST_VECTOR + self.register
        if self.base is None:
            return frozenset({first, first + 1})
        return frozenset({first, self.base, self.base + 1})

    def held(self, waves: Waves) -> HeldAddress:
        """Return what the registers hold."""
        file = waves.values
        first = self.register
        if self.base is None:
            return HeldAddress(file.v[first], file.v[first + 1], None)
        return HeldAddress(file.v[first], file.s[self.base], file.s[self.base + 1])


@dataclass(frozen=True, slots=True)
class GlobalWords:
    """The places of the words of all lanes, while the registers of an address hold `values`."""

    values: HeldAddress
    index: Offsets  # flat, counted from `lowest`
    lowest: int  # the least offset in the arena
    highest: int  # the greatest of `index`
    bits: int  # the bits of all of `index` in one number


def places_of(waves: Waves, address: AddressRegisters) -> GlobalWords | None:
    """Return the places that an address gives; None if lanes are inactive or waves observed."""
    if not waves.is_full or waves.around.observers or not isinstance(waves.rows, slice):
        return None
    held = address.held(waves)
    found = waves.places.get(address)
    if not isinstance(found, GlobalWords) or not _are_same(found.values, held):
        found = waves.places[address] = _compute_places(held)
    return found


def _are_same(kept: HeldAddress, held: HeldAddress) -> bool:
    if kept.base_high is not None and not (kept.base_high == held.base_high).all():
        return False
    is_same_low = (kept.low_or_offset == held.low_or_offset).all()
    return bool(is_same_low and (kept.high_or_base == held.high_or_base).all())


def _compute_places(held: HeldAddress) -> GlobalWords:
    first, second, third = held
    if third is None:
        address: Array = join(first, second)
        kept = HeldAddress(first.copy(), second.copy(), None)
    else:
        address = first + join(second, third)[:, None]
        kept = HeldAddress(first.copy(), second.copy(), third.copy())
    flat = address.reshape(-1).view(np.int64)
    lowest = int(flat.min())
    index = flat - lowest
    bits = int(np.bitwise_or.reduce(index))
    return GlobalWords(kept, index, lowest - BASE, int(index.max()), bits)


def bind_words(
    operand: Operand, base: Operand, offset: int, result: RegisterRange, general: Run
) -> Run:
    """Bind a load of a word to each vector register of `result`.

    `general` does what cannot be done the fast way.
    """
    if operand.file != "v" or (base.text != "off" and base.file != "s"):
        return general
    base_index = None if base.text == "off" else base.index
    address = AddressRegisters(vector_index(operand), base_index)
    watched = address.numbers
    count = result.count
    size = 4 * count
    moved = range(FIRST_VECTOR + result.first, FIRST_VECTOR + result.first + count)

    def run(waves: Waves) -> None:
        places = places_of(waves, address) if waves.dirty.isdisjoint(watched) else None
        if places is None:
            return general(waves)
        start = places.lowest + offset
        span = places.highest + size
        width = _item_width(places.bits | start, size)
        if not width or not waves.around.arena.holds(BASE + start, span):
            return general(waves)
        memory = waves.around.arena.bytes
        words = _take_words(memory.data, start, places.index, width, count)
        unknown = None
        if memory.known is not None and not _is_written(
            memory.known, start, span, words.nbytes
        ):
            unknown = ~_take_words(memory.known, start, places.index, width, count)
        return _put(waves, moved, words, unknown)

    return run


def _put(waves: Waves, moved: range, words: Words, unknown: Words | None) -> None:
    shape = waves.existing.shape
    for number, lanes in zip(moved, words, strict=True):
        waves.values.v[number - FIRST_VECTOR] = lanes.reshape(shape)
    if unknown is None or not unknown.any():
        waves.define(moved)
        return
    for number, lanes in zip(moved, unknown, strict=True):
        waves.set_shadow(number, lanes.reshape(shape))


def _item_width(bits: int, size: int) -> int:
    """Return how many bytes can be moved at once where addresses have these bits.

    0: the addresses are not aligned even by words.
    """
    width = size if size in BY_WIDTH else 4
    while width >= 4 and bits & (width - 1):
        width //= 2
    return width if width >= 4 else 0


def _is_written(
    known: npt.NDArray[np.uint8], start: int, span: int, loaded: int
) -> bool:
    """Return True if all of a short span was written; False if that is not known so quickly."""
    return (
        span <= _MAX_SPAN * loaded
        and int(known[start : start + span].min()) == _ALL_KNOWN
    )


def _take_words(
    data: Array, start: int, index: Offsets, width: int, count: int
) -> Words:
    """Return words, [word, lane of all waves], read by items of `width` bytes."""
    items = index >> (width.bit_length() - 1)
    end = len(data) - (len(data) - start) % width
    memory = data[start:end].view(BY_WIDTH[width])
    per_item = width // 4
    if per_item == count:
        return memory.take(items).view(np.uint32).reshape(-1, count).T
    taken = np.empty((count, len(index)), np.uint32)
    for number in range(0, count, per_item):
        piece = memory[number // per_item :].take(items).view(np.uint32)
        taken[number : number + per_item] = piece.reshape(-1, per_item).T
    return taken

"""Whole words of the device's memory, loaded by all lanes of all waves that there are.

Unrolled loops load through one address with many constants added. As in `shared_words`, what
follows from an address is worked out once and used for as long as its registers hold the same. That
all bytes were written is seen by a look at the whole stretch of memory, where that is short. What
is not of this kind goes the general way of `refcomp.emulator.instructions.memory.loads_and_stores`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Operand, RegisterRange
from refcomp.emulator.machine.arrays import Array, join
from refcomp.emulator.machine.memory import BASE, BY_WIDTH
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index
from refcomp.emulator.machine.waves import Run, Waves

# A stretch of memory of at most so many bytes for each that is loaded is looked at as a whole.
_SHORT = 4
_ALL_KNOWN = 0xFF


class HeldAddress(NamedTuple):
    """What the registers of an address hold, u32. A tuple, since each load looks at it."""

    # Bits 0 to 31 of the address of each lane, or with a base an offset: [wave, lane].
    low_or_offset: Array
    # Bits 32 to 63, [wave, lane], or bits 0 to 31 of the base, [wave].
    high_or_base: Array
    # Bits 32 to 63 of the base, [wave]; None: no base.
    base_high: Array | None


@dataclass(frozen=True, slots=True)
class Address:
    """The registers of an address: a pair of vector registers, or, with the number of a scalar
    pair as `base`, one with an offset."""

    register: int
    base: int | None

    @property
    def numbers(self) -> frozenset[int]:
        """As `Registers.dirty` counts them."""
        first = FIRST_VECTOR + self.register
        if self.base is None:
            return frozenset({first, first + 1})
        return frozenset({first, self.base, self.base + 1})

    def held(self, waves: Waves) -> HeldAddress:
        """What the registers hold."""
        file, first = waves.values, self.register
        if self.base is None:
            return HeldAddress(file.v[first], file.v[first + 1], None)
        return HeldAddress(file.v[first], file.s[self.base], file.s[self.base + 1])


@dataclass(frozen=True, slots=True)
class GlobalWords:
    """Where lanes' words lie while registers hold `values`: bytes from `lowest` on, flat. `highest`
    is the greatest of them, `bits` are those of all of them in one number."""

    values: HeldAddress
    index: Array
    lowest: int
    highest: int
    bits: int


def places_of(waves: Waves, address: Address) -> GlobalWords | None:
    """What follows from an address; None where not all lanes run or some are observed."""
    if not waves.is_full or waves.around.observers or not isinstance(waves.rows, slice):
        return None
    held = address.held(waves)
    found = waves.places.get(address)
    if not isinstance(found, GlobalWords) or not _are_same(found.values, held):
        found = waves.places[address] = _worked_out(held)
    return found


def _are_same(kept: tuple[Array, ...], held: tuple[Array, ...]) -> bool:
    return all(a is b or bool((a == b).all()) for a, b in zip(kept, held, strict=True))


def _worked_out(held: HeldAddress) -> GlobalWords:
    first, second, third = held
    pair = join(first, second) if third is None else join(second, third)[:, None]
    address = pair if third is None else first + pair
    flat = address.reshape(-1).view(np.int64)
    lowest = int(flat.min())
    index = flat - lowest
    bits, highest = int(np.bitwise_or.reduce(index)), int(index.max())
    base_high = None if third is None else third.copy()
    kept = HeldAddress(first.copy(), second.copy(), base_high)
    return GlobalWords(kept, index, lowest - BASE, highest, bits)


def bind_words(
    operand: Operand, base: Operand, offset: int, result: RegisterRange, general: Run
) -> Run:
    """A load of a word to each vector register of `result`. `general` does all other cases."""
    register, count = result.first, result.count
    if operand.file != "v" or (base.text != "off" and base.file != "s"):
        return general
    address = Address(vector_index(operand), None if base.text == "off" else base.index)
    watched, size = address.numbers, 4 * count
    moved = range(FIRST_VECTOR + register, FIRST_VECTOR + register + count)

    def run(waves: Waves) -> None:
        places = (
            None if not waves.dirty.isdisjoint(watched) else places_of(waves, address)
        )
        if places is None:
            return general(waves)
        start, span = places.lowest + offset, places.highest + size
        width = _item(places.bits | start, size)
        if not width or not waves.around.arena.holds(BASE + start, span):
            return general(waves)
        memory = waves.around.arena.bytes
        words = _taken(memory.data, start, places.index, width, count)
        unknown = None
        if memory.known is not None and not _is_written(
            memory.known, start, span, words.nbytes
        ):
            unknown = ~_taken(memory.known, start, places.index, width, count)
        return _put(waves, moved, words, unknown)

    return run


def _put(waves: Waves, moved: range, words: Array, unknown: Array | None) -> None:
    shape = waves.existing.shape
    for number, lanes in zip(moved, words, strict=True):
        waves.values.v[number - FIRST_VECTOR] = lanes.reshape(shape)
    if unknown is None or not unknown.any():
        waves.define(moved)
        return
    for number, lanes in zip(moved, unknown, strict=True):
        waves.set_shadow(number, lanes.reshape(shape))


def _item(bits: int, size: int) -> int:
    """How many bytes can be moved at once where addresses have these bits; 0: not even words."""
    width = size if size in BY_WIDTH else 4
    while width >= 4 and bits & (width - 1):
        width //= 2
    return width if width >= 4 else 0


def _is_written(known: Array, start: int, span: int, loaded: int) -> bool:
    """Whether all of a short stretch was written; False where that is not known so quickly."""
    return (
        span <= _SHORT * loaded and int(known[start : start + span].min()) == _ALL_KNOWN
    )


def _taken(data: Array, start: int, index: Array, width: int, count: int) -> Array:
    """Words [word, lane of all waves], by items of `width` bytes."""
    items = index >> (width.bit_length() - 1)
    stretch = data[start : len(data) - (len(data) - start) % width].view(
        BY_WIDTH[width]
    )
    per_item = width // 4
    if per_item == count:
        whole: Array = stretch.take(items).view(np.uint32).reshape(-1, count).T
        return whole
    taken = np.empty((count, len(index)), np.uint32)
    for number in range(0, count, per_item):
        piece = stretch[number // per_item :].take(items).view(np.uint32)
        taken[number : number + per_item] = piece.reshape(-1, per_item).T
    return taken

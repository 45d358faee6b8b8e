"""Whole words of shared memory, read and written by all lanes of all waves: a fast way.

Loops access shared memory through a few registers, with constants added. So the places of the
lanes' words, their extent and their alignment are computed once. They are used while the register
holds the same values. All words of a lane are moved at once. All other accesses use the general
`refcomp.emulator.instructions.memory.loads_and_stores`. These are accesses with inactive lanes or
observers, and accesses whose addresses have undefined bits, are out of bounds or not aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.emulator.code.assembly import Operand
from refcomp.emulator.machine.arrays import Array, Offsets, Words
from refcomp.emulator.machine.memory import ALL_ONES, BY_WIDTH
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index
from refcomp.emulator.machine.waves import Run, Waves


@dataclass(frozen=True, slots=True)
class WordSpan:
    """Consecutive words of each lane, and the registers that they are moved from or to."""

    offset: int  # bytes, added to the lane's address
    count: int  # words
    register: int  # the first vector register


@dataclass(frozen=True, slots=True)
class SharedWords:
    """The places of the words of all lanes, while an address register holds `values`."""

    values: Words
    index: Offsets  # flat, in the memory of all groups
    highest: int  # the greatest of `values`
    bits: int  # the bits of all of `index` in one number
    _items: dict[int, Offsets] = field(default_factory=dict)

    def items(self, size: int) -> Offsets:
        """Return `index` in items of `size` bytes."""
        if size not in self._items:
            self._items[size] = self.index // size
        return self._items[size]


def places_of(waves: Waves, register: int) -> SharedWords | None:
    """Return the places that a register gives; None if lanes are inactive or waves observed."""
    if not isinstance(waves.rows, slice) or waves.around.observers or not waves.is_full:
        return None
    held = waves.values.v[register]
    found = waves.places.get(register)
    if not isinstance(found, SharedWords) or not (found.values == held).all():
        index = (waves.shared_base + held).reshape(-1)
        bits = int(np.bitwise_or.reduce(index))
        found = SharedWords(held.copy(), index, int(held.max()), bits)
        waves.places[register] = found
    return found


def bind_words(
    operand: Operand, pieces: Sequence[WordSpan], is_store: bool, general: Run
) -> Run:
    """Bind a load or store of `pieces` by the addresses in `operand`.

    `general` does what cannot be done the fast way.
    """
    if operand.file != "v" or any(piece.offset < 0 for piece in pieces):
        return general
    register = vector_index(operand)
    items = [item for piece in pieces for item in _items_of(piece)]
    reach = max(item.offset + 4 * item.count for item in items)
    moved = frozenset(
        FIRST_VECTOR + item.register + n for item in items for n in range(item.count)
    )
    watched = frozenset({FIRST_VECTOR + register, *(moved if is_store else ())})
    # The address of an item must be a multiple of its size: these bits of it are 0.
    low_bits = [(item.offset, 4 * item.count - 1) for item in items]

    def run(waves: Waves) -> None:
        places = places_of(waves, register) if waves.dirty.isdisjoint(watched) else None
        if places is None or places.highest + reach > waves.around.shared_bytes:
            return general(waves)
        if any((places.bits | offset) & below for offset, below in low_bits):
            return general(waves)
        if is_store:
            return _store(waves, places, items)
        return _load(waves, places, items, moved)

    return run


def _items_of(piece: WordSpan) -> list[WordSpan]:
    """Return the items that numpy can move: 1, 2 or 4 words; three are moved one by one."""
    if piece.count in (1, 2, 4):
        return [piece]
    numbers = range(piece.count)
    return [WordSpan(piece.offset + 4 * n, 1, piece.register + n) for n in numbers]


def _load(
    waves: Waves, places: SharedWords, items: Sequence[WordSpan], moved: frozenset[int]
) -> None:
    memory = waves.shared
    # All are loaded before any is written, which may overwrite the address.
    loaded = [_take_words(memory.data, places, item) for item in items]
    known = []
    if memory.known is not None:
        known = [_take_words(memory.known, places, item) for item in items]
    for item, words in zip(items, loaded, strict=True):
        _put(waves.values.v, item, words)
    if all(int(words.min()) == 0xFFFFFFFF for words in known):
        waves.define(moved)
        return
    for item, words in zip(items, known, strict=True):
        for number in range(item.count):
            undefined = ~words[:, number].reshape(waves.existing.shape)
            waves.set_shadow(FIRST_VECTOR + item.register + number, undefined)


def _store(waves: Waves, places: SharedWords, items: Sequence[WordSpan]) -> None:
    memory = waves.shared
    for item in items:
        numbers = range(item.register, item.register + item.count)
        flat = [waves.values.v[number].reshape(-1) for number in numbers]
        words = flat[0] if len(flat) == 1 else np.stack(flat, axis=-1).reshape(-1)
        size = 4 * item.count
        index = places.items(size)
        _memory_in_items(memory.data, item)[index] = words.view(BY_WIDTH[size])
        if memory.known is not None:
            _memory_in_items(memory.known, item)[index] = ALL_ONES[size]


def _memory_in_items(data: Array, item: WordSpan) -> Array:
    """Return the memory from the item's offset on, in items of its size."""
    size = 4 * item.count
    end = len(data) - (len(data) - item.offset) % size
    return data[item.offset : end].view(BY_WIDTH[size])


def _take_words(data: Array, places: SharedWords, item: WordSpan) -> Words:
    """Return words, [lane of all waves, word]."""
    taken = _memory_in_items(data, item).take(places.items(4 * item.count))
    return taken.view(np.uint32).reshape(-1, item.count)


def _put(vectors: Words, item: WordSpan, words: Words) -> None:
    if item.count == 1:
        vectors[item.register] = words.reshape(vectors.shape[1:])
    else:
        target = vectors[item.register : item.register + item.count]
        target.reshape(item.count, -1)[:] = words.T

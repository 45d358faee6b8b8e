"""Whole words of shared memory, read and written by all lanes of all waves that there are.

Loops go through shared memory by a few registers, with constants added. So what follows from such a
register is worked out once and used for as long as the register holds the same: where the lanes'
words lie, how far they reach, how they are aligned. All words of a lane are moved at once. What is
not of this kind goes the general way of `refcomp.emulator.instructions.memory.loads_and_stores`:
lanes that do not run, observers, addresses of which bits are undefined, out of bounds or not
aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from refcomp.emulator.code.assembly import Operand
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import ALL_ONES, BY_WIDTH
from refcomp.emulator.machine.registers import FIRST_VECTOR
from refcomp.emulator.machine.sources import vector_index
from refcomp.emulator.machine.waves import Run, Waves


@dataclass(frozen=True, slots=True)
class WordSpan:
    """`count` words of each lane, `offset` bytes behind its address, and their first register."""

    offset: int
    count: int
    register: int


@dataclass(frozen=True, slots=True)
class SharedWords:
    """Where in the memory of all groups lanes' words lie while a register holds `values`:
    byte offsets, flat. `highest` of the values, and all of the offsets' `bits` in one number."""

    values: Array
    index: Array
    highest: int
    bits: int
    _items: dict[int, Array] = field(default_factory=dict)

    def items(self, size: int) -> Array:
        """The offsets as numbers of items of `size` bytes."""
        if size not in self._items:
            self._items[size] = self.index // size
        return self._items[size]


def places_of(waves: Waves, register: int) -> SharedWords | None:
    """What follows from an address register; None where not all lanes run or some are observed."""
    if not isinstance(waves.rows, slice) or waves.around.observers or not waves.is_full:
        return None
    held: Array = waves.values.v[register]
    found = waves.places.get(register)
    if not isinstance(found, SharedWords) or not (found.values == held).all():
        index = (waves.shared_base + held).reshape(-1)
        bits = int(np.bitwise_or.reduce(index))
        found = waves.places[register] = SharedWords(
            held.copy(), index, int(held.max()), bits
        )
    return found


def bind_words(
    operand: Operand, pieces: Sequence[WordSpan], is_store: bool, general: Run
) -> Run:
    """A load or store of `pieces` by the addresses in `operand`; `general` does all other cases."""
    if operand.file != "v" or any(piece.offset < 0 for piece in pieces):
        return general
    register, pieces = (
        vector_index(operand),
        [one for piece in pieces for one in _items(piece)],
    )
    reach = max(piece.offset + 4 * piece.count for piece in pieces)
    registers = [n for p in pieces for n in range(p.register, p.register + p.count)]
    moved = frozenset(FIRST_VECTOR + number for number in registers)
    watched = frozenset({FIRST_VECTOR + register, *(moved if is_store else ())})
    move = _store if is_store else _load
    # Items of so many bytes are moved, whose address must be a multiple of it.
    aligned = [(piece, 4 * piece.count - 1) for piece in pieces]

    def run(waves: Waves) -> None:
        places = (
            None if not waves.dirty.isdisjoint(watched) else places_of(waves, register)
        )
        if places is None or places.highest + reach > waves.around.shared_bytes:
            return general(waves)
        if any((places.bits | piece.offset) & below for piece, below in aligned):
            return general(waves)
        return move(waves, places, pieces, moved)

    return run


def _items(piece: WordSpan) -> list[WordSpan]:
    """Three words are no item that numpy could move: they are moved one by one."""
    if piece.count in (1, 2, 4):
        return [piece]
    numbers = range(piece.count)
    return [WordSpan(piece.offset + 4 * n, 1, piece.register + n) for n in numbers]


def _load(
    waves: Waves, places: SharedWords, pieces: Sequence[WordSpan], moved: frozenset[int]
) -> None:
    memory = waves.shared
    loaded = [_taken(memory.data, places, piece) for piece in pieces]
    known = (
        None
        if memory.known is None
        else [_taken(memory.known, places, p) for p in pieces]
    )
    for piece, words in zip(pieces, loaded, strict=True):
        _put(waves.values.v, piece, words)
    if known is None or all(int(words.min()) == 0xFFFFFFFF for words in known):
        waves.define(moved)
        return
    for piece, words in zip(pieces, known, strict=True):
        for number in range(piece.count):
            undefined = ~words[:, number].reshape(waves.existing.shape)
            waves.set_shadow(FIRST_VECTOR + piece.register + number, undefined)


def _store(
    waves: Waves, places: SharedWords, pieces: Sequence[WordSpan], moved: frozenset[int]
) -> None:
    memory = waves.shared
    for piece in pieces:
        numbers = range(piece.register, piece.register + piece.count)
        flat = [waves.values.v[number].reshape(-1) for number in numbers]
        words = flat[0] if len(flat) == 1 else np.stack(flat, axis=-1).reshape(-1)
        where = places.items(4 * piece.count)
        _items_of(memory.data, piece)[where] = words.view(BY_WIDTH[4 * piece.count])
        if memory.known is not None:
            _items_of(memory.known, piece)[where] = ALL_ONES[4 * piece.count]


def _items_of(data: Array, piece: WordSpan) -> Array:
    """The memory from a piece's offset on, in items as large as the piece."""
    size = 4 * piece.count
    return data[piece.offset : len(data) - (len(data) - piece.offset) % size].view(
        BY_WIDTH[size]
    )


def _taken(data: Array, places: SharedWords, piece: WordSpan) -> Array:
    """[lane of all waves, word]."""
    items = _items_of(data, piece).take(places.items(4 * piece.count))
    return items.view(np.uint32).reshape(-1, piece.count)


def _put(vectors: Array, piece: WordSpan, words: Array) -> None:
    count, shape = piece.count, vectors.shape[1:]
    if count == 1:
        vectors[piece.register] = words.reshape(shape)
    else:
        there = vectors[piece.register : piece.register + count].reshape(count, -1)
        there[:] = words.T

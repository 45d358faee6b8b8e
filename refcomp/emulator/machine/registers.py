"""The registers of waves that run together: vector [register, wave, lane], scalar [register, wave].

`Registers` holds them twice where definedness is watched: values, and for each bit whether nothing
wrote it (1: undefined). `dirty` are the registers that may have undefined bits; where none is among
the sources of an instruction, shadows need not be looked at.
An instruction runs for `rows`: all waves (a slice) or some (an index array).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import EXEC
from refcomp.emulator.machine.arrays import (
    MASKS,
    NUMPY,
    Array,
    as_bits,
    bits_of,
    join,
    mask_kind,
    mask_of,
    split,
)

SCALARS, SCC = (
    128,
    128,
)  # a scalar register's number in `dirty` is its own; SCC's is 128
FIRST_VECTOR = 129
FIRST_ACCUMULATOR = 256
_ALL, _NONE = slice(None), slice(0, 0)
_WIDE, _NARROW = (
    {k: t for k, t in NUMPY.items() if bits_of(k) == bits} for bits in (32, 16)
)


class RegisterCounts(NamedTuple):
    """How many registers of a lane there are, or an instruction needs. A tuple, since each block
    of a program is compared with it before it runs."""

    # Vector registers, v0 and so on.
    vectors: int
    # Accumulators, a0 and so on.
    accumulators: int


class File:
    """Vector and scalar registers and SCC, as values or as shadows. Vector registers `unused` are
    numbers that the kernel does not have, whose memory is not touched."""

    def __init__(
        self, vectors: int, waves: int, lanes: int, fill: int, unused: slice = _NONE
    ) -> None:
        self.v = np.empty((vectors, waves, lanes), np.uint32)
        self.v[: unused.start] = fill
        self.v[unused.stop :] = fill
        self.s = np.full((SCALARS, waves), fill, np.uint32)
        self.scc = np.full(waves, bool(fill))
        # The same memory, by type.
        wide = {k: self.v.view(t) for k, t in _WIDE.items()}
        halves = {k: self.v.view(t)[..., ::2] for k, t in _NARROW.items()}
        self.typed: dict[str, Array] = wide | halves
        wide = {k: self.s.view(t) for k, t in _WIDE.items()}
        narrow = {
            k: self.s.view(t).reshape(SCALARS, waves, 2)[..., 0]
            for k, t in _NARROW.items()
        }
        self.typed_scalars: dict[str, Array] = wide | narrow

    def vector(self, index: int, kind: str, rows: Any) -> Array:
        """[wave, lane] of a type."""
        if kind in self.typed:
            return self.typed[kind][index, rows]
        return join(self.v[index, rows], self.v[index + 1, rows]).view(NUMPY[kind])

    def scalar(self, index: int, kind: str, rows: Any) -> Array:
        """[wave] of a type; a mask is bool [wave, lane]."""
        if kind in self.typed_scalars:
            return self.typed_scalars[kind][index, rows]
        if kind == "mask32":
            return mask_of(self.s[index, rows])
        bits = join(self.s[index, rows], self.s[index + 1, rows])
        return mask_of(bits) if kind in MASKS else bits.view(NUMPY[kind])


class Registers:
    """`existing` tells of each wave's lanes which have a work item: [wave, lane], 32 or 64 lanes.
    `shadow` is None where definedness is not watched. `mask_kind` is the type of a mask of these
    waves, `mask_bits` that of its bits as a number."""

    def __init__(
        self, vectors: int, existing: Array, *, is_watched: bool, unused: slice = _NONE
    ) -> None:
        self.waves, self.lanes = existing.shape
        self.mask_kind, self.mask_bits = mask_kind(self.lanes), f"u{self.lanes}"
        self.existing = existing
        own = unused.start or min(vectors, FIRST_ACCUMULATOR)
        self.registers = RegisterCounts(own, max(0, vectors - FIRST_ACCUMULATOR))
        shape = vectors, self.waves, self.lanes
        self.values = File(*shape, 0, unused)
        self.shadow = File(*shape, 0xFFFFFFFF, unused) if is_watched else None
        self.dirty: set[int] = (
            set(range(FIRST_VECTOR + vectors)) if is_watched else set()
        )
        self.rows: Any = _ALL
        self._mask: Array | None = None
        self._covers = self._is_full = False

    # Which waves and lanes run.

    def select(self, rows: Any) -> None:
        """Have the following instructions run for these waves."""
        self.rows, self._mask = rows, None

    @property
    def mask(self) -> Array:
        """EXEC: bool [wave, lane] of the waves that run."""
        if self._mask is None:
            self._mask = self.values.scalar(EXEC, self.mask_kind, self.rows)
            self._covers = bool((self._mask == self.existing[self.rows]).all())
            self._is_full = self._covers and bool(self._mask.all())
        return self._mask

    @property
    def covers(self) -> bool:
        """Whether EXEC has all lanes that exist: then the others may be written, too."""
        _ = self.mask
        return self._covers

    @property
    def writes_all(self) -> bool:
        """Whether a result may go to the whole of a register, of all waves."""
        return self.covers and isinstance(self.rows, slice)

    @property
    def is_full(self) -> bool:
        """Whether all lanes of all waves that run are active."""
        _ = self.mask
        return self._is_full

    def count(self) -> int:
        """How many waves run."""
        return self.waves if isinstance(self.rows, slice) else len(self.rows)

    # Writing values. Whoever writes tells of definedness by `define` or `taint`.

    def write_vector(
        self, index: int, kind: str, value: Any, file: File | None = None
    ) -> None:
        """Active lanes of one register, or of two for 64 bits; 16 bits clear the upper half."""
        file = self.values if file is None else file
        bits = bits_of(kind)
        if bits == 64:
            halves = split(as_bits(value, kind))
            for offset, half in enumerate(halves):
                self._put(file, index + offset, "u32", half)
        elif bits == 16:
            self._put(file, index, "u32", as_bits(value, kind))
        else:
            self._put(file, index, kind, value)

    def _put(self, file: File, index: int, kind: str, value: Any) -> None:
        target = file.typed[kind][index]
        if self.covers:
            target[self.rows] = value
        elif isinstance(self.rows, slice):
            np.copyto(target, value, where=self.mask)
        else:
            old = target[self.rows]
            np.copyto(old, value, where=self.mask)
            target[self.rows] = old

    def write_scalar(
        self, index: int, kind: str, value: Any, file: File | None = None
    ) -> None:
        """One scalar register of each wave, or two for 64 bits."""
        file = self.values if file is None else file
        if bits_of(kind) == 64:
            low, high = split(as_bits(value, kind))
            file.s[index, self.rows] = low
            file.s[index + 1, self.rows] = high
        else:
            file.s[index, self.rows] = as_bits(value, kind)
        if EXEC - 1 <= index <= EXEC + 1:
            self._mask = None

    def write_scc(self, value: Any) -> None:
        """The scalar condition code: bool [wave]."""
        self.values.scc[self.rows] = value

    # Definedness. Numbers are those of `dirty`.

    def define(self, numbers: Any) -> None:
        """What was just written is defined in all its bits."""
        if self.dirty and not self.dirty.isdisjoint(numbers):
            for number in numbers:
                self.set_shadow(number, np.uint32(0))

    def set_shadow(self, number: int, undefined: Any) -> None:
        """Which bits of what was just written are undefined: u32 [wave, lane] or [wave]."""
        if self.shadow is None:
            return
        is_defined = not np.any(undefined)
        if number == SCC:
            self.shadow.scc[self.rows] = np.asarray(undefined) != 0
        elif number < SCALARS:
            self.shadow.s[number, self.rows] = undefined
        else:
            self._put(self.shadow, number - FIRST_VECTOR, "u32", undefined)
        if not is_defined:
            self.dirty.add(number)
        elif isinstance(self.rows, slice) and (number <= SCC or self.covers):
            self.dirty.discard(number)

    def initialise_vector(self, index: int, value: Array) -> None:
        """A register with a value when waves begin; lanes that do not exist count as written."""
        self.values.v[index] = value
        if self.shadow is not None:
            self.shadow.v[index] = 0
            self.dirty.discard(FIRST_VECTOR + index)

    def initialise_scalar(self, index: int, value: Any) -> None:
        """A scalar register that has a value when waves begin."""
        self.values.s[index] = value
        if self.shadow is not None:
            self.shadow.s[index] = 0
            self.dirty.discard(index)
        self._mask = None

    def initialise_mask(self, mask: Array) -> None:
        """EXEC when waves begin: bool [wave, lane]."""
        words = np.packbits(mask, axis=1, bitorder="little").view(np.uint32)
        for number in range(words.shape[1]):
            self.initialise_scalar(EXEC + number, words[:, number])

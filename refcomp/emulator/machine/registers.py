"""The registers of waves that run together: vector [register, wave, lane], scalar [register, wave].

If undefined bits are tracked, `Registers` holds the values of all registers and their shadows. A
shadow has a 1 for each bit that nothing wrote. `dirty` holds the registers that may have undefined
bits. An instruction can ignore the shadows if none of its sources is dirty.

An instruction runs for `rows`: all waves (a slice) or some (an index array).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import EXEC
from refcomp.emulator.machine.arrays import (
    DTYPES,
    MASKS,
    NUMPY,
    Array,
    Mask,
    as_bits,
    bits_of,
    join,
    mask_kind,
    mask_of,
    split,
)

# Waves: an index of the axis [wave].
Rows: TypeAlias = slice | npt.NDArray[np.intp]

# The number of a register in `dirty`: of a scalar register its own, then SCC's, then vector ones.
SCALARS = 128
SCC = 128
FIRST_VECTOR = 129
# Accumulators follow the vector registers, from this vector register on.
FIRST_ACCUMULATOR = 256
_ALL = slice(None)
_PAGE_BYTES = 4096
_NONE = slice(0, 0)
_WIDE = {kind: dtype for kind, dtype in NUMPY.items() if bits_of(kind) == 32}
_NARROW = {kind: dtype for kind, dtype in NUMPY.items() if bits_of(kind) == 16}


class RegisterCounts(NamedTuple):
    """Numbers of registers that a lane has, or that instructions need.

    A tuple, since each block of a program is compared with it before it runs.
    """

    vectors: int  # v0 and so on
    accumulators: int  # a0 and so on


class File:
    """Vector and scalar registers and SCC, as values or as shadows."""

    def __init__(
        self,
        vectors: int,
        waves: int,
        lanes: int,
        fill: int,
        unused: slice = _NONE,  # vector registers that the kernel lacks, never touched
    ) -> None:
        # Registers are not multiples of a page apart: all those of a wave would then lie in the
        # same lines of the host's caches.
        is_aligned = 4 * waves * lanes % _PAGE_BYTES == 0
        whole = np.empty((vectors, waves + is_aligned, lanes), np.uint32)
        self.v = whole[:, :waves]
        self.v[: unused.start] = fill
        self.v[unused.stop :] = fill
        self.s = np.full((SCALARS, waves), fill, np.uint32)
        self.scc = np.full(waves, bool(fill))
        # The same memory, by type.
        self.typed: dict[str, Array] = {}
        self.typed_scalars: dict[str, Array] = {}
        for kind, dtype in _WIDE.items():
            self.typed[kind] = self.v.view(dtype)
            self.typed_scalars[kind] = self.s.view(dtype)
        for kind, dtype in _NARROW.items():
            self.typed[kind] = self.v.view(dtype)[..., ::2]
            self.typed_scalars[kind] = self.s.view(dtype).reshape(SCALARS, waves, 2)[
                ..., 0
            ]

    def vector(self, index: int, kind: str, rows: Rows) -> Array:
        """Return a vector register, or two, as [wave, lane] of a type."""
        if kind in self.typed:
            return self.typed[kind][index, rows]
        bits: Array = join(self.v[index, rows], self.v[index + 1, rows])
        return bits.view(DTYPES[kind])

    def scalar(self, index: int, kind: str, rows: Rows) -> Array:
        """Return a scalar register, or two, as [wave] of a type; a mask as bool [wave, lane]."""
        if kind in self.typed_scalars:
            return self.typed_scalars[kind][index, rows]
        if kind == "mask32":
            return mask_of(self.s[index, rows])
        bits: Array = join(self.s[index, rows], self.s[index + 1, rows])
        return mask_of(bits) if kind in MASKS else bits.view(DTYPES[kind])


class Registers:
    """The registers of some waves of 32 or 64 lanes."""

    def __init__(
        self,
        vectors: int,
        existing: Mask,  # [wave, lane]: lanes that have a work item
        *,
        is_watched: bool,
        unused: slice = _NONE,
    ) -> None:
        self.waves, self.lanes = existing.shape
        self.mask_kind = mask_kind(self.lanes)  # type of a mask of these waves
        self.mask_bits = f"u{self.lanes}"  # type of its bits as a number
        self.existing = existing
        own = unused.start or min(vectors, FIRST_ACCUMULATOR)
        self.registers = RegisterCounts(own, max(0, vectors - FIRST_ACCUMULATOR))
        shape = vectors, self.waves, self.lanes
        self.values = File(*shape, 0, unused)
        # None: undefined bits are not tracked.
        self.shadow = File(*shape, 0xFFFFFFFF, unused) if is_watched else None
        self.dirty: set[int] = (
            set(range(FIRST_VECTOR + vectors)) if is_watched else set()
        )
        self.rows: Rows = _ALL
        # EXEC of the running waves and what follows from it; None: not computed yet.
        self._mask: Mask | None = None
        self._covers = False
        self._is_full = False

    # The waves and lanes that run.

    def select(self, rows: Rows) -> None:
        """Let the following instructions run for these waves."""
        self.rows = rows
        self._mask = None

    @property
    def mask(self) -> Mask:
        """EXEC: bool [wave, lane] of the running waves."""
        if self._mask is None:
            self._mask = self.values.scalar(EXEC, self.mask_kind, self.rows)
            self._covers = bool((self._mask == self.existing[self.rows]).all())
            self._is_full = self._covers and bool(self._mask.all())
        return self._mask

    @property
    def covers(self) -> bool:
        """True if EXEC has all lanes that exist. Then the other lanes may be written, too."""
        _ = self.mask
        return self._covers

    @property
    def writes_all(self) -> bool:
        """True if a result may be written to the whole of a register, of all waves."""
        return self.covers and isinstance(self.rows, slice)

    @property
    def is_full(self) -> bool:
        """True if all lanes of all running waves are active."""
        _ = self.mask
        return self._is_full

    def count(self) -> int:
        """Return how many waves run."""
        return self.waves if isinstance(self.rows, slice) else len(self.rows)

    # Values. Each write must be followed by `define` or `set_shadow`.

    def write_vector(self, index: int, kind: str, value: npt.ArrayLike) -> None:
        """Write the active lanes of a register, or of two; 16 bits clear the upper half."""
        file = self.values
        bits = bits_of(kind)
        if bits == 64:
            for offset, half in enumerate(split(as_bits(value, kind))):
                self._put(file, index + offset, "u32", half)
        elif bits == 16:
            self._put(file, index, "u32", as_bits(value, kind))
        else:
            self._put(file, index, kind, value)

    def _put(self, file: File, index: int, kind: str, value: npt.ArrayLike) -> None:
        target = file.typed[kind][index]
        if self.covers:
            target[self.rows] = value
        elif isinstance(self.rows, slice):
            np.copyto(target, value, where=self.mask)
        else:
            old = target[self.rows]
            np.copyto(old, value, where=self.mask)
            target[self.rows] = old

    def write_scalar(self, index: int, kind: str, value: npt.ArrayLike) -> None:
        """Write a scalar register of each wave, or two for 64 bits."""
        scalars = self.values.s
        if bits_of(kind) == 64:
            low, high = split(as_bits(value, kind))
            scalars[index, self.rows] = low
            scalars[index + 1, self.rows] = high
        else:
            scalars[index, self.rows] = as_bits(value, kind)
        if EXEC - 1 <= index <= EXEC + 1:
            self._mask = None

    def write_scc(self, value: npt.ArrayLike) -> None:
        """Write the scalar condition code: bool [wave]."""
        self.values.scc[self.rows] = value

    # Shadows. Numbers of registers are those of `dirty`.

    def define(self, numbers: Collection[int]) -> None:
        """Mark all bits of registers that were just written as defined."""
        if self.dirty and not self.dirty.isdisjoint(numbers):
            for number in numbers:
                self.set_shadow(number, np.uint32(0))

    def set_shadow(self, number: int, undefined: npt.ArrayLike) -> None:
        """Mark bits of what was just written as undefined: u32 [wave, lane] or [wave]."""
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

    # The state when waves begin.

    def initialise_vector(self, index: int, value: npt.ArrayLike) -> None:
        """Set a vector register; lanes that do not exist count as written."""
        self.values.v[index] = value
        if self.shadow is not None:
            self.shadow.v[index] = 0
            self.dirty.discard(FIRST_VECTOR + index)

    def initialise_scalar(self, index: int, value: npt.ArrayLike) -> None:
        """Set a scalar register."""
        self.values.s[index] = value
        if self.shadow is not None:
            self.shadow.s[index] = 0
            self.dirty.discard(index)
        self._mask = None

    def initialise_mask(self, mask: Mask) -> None:
        """Set EXEC: bool [wave, lane]."""
        words = np.packbits(mask, axis=1, bitorder="little").view(np.uint32)
        for number in range(words.shape[1]):
            self.initialise_scalar(EXEC + number, words[:, number])

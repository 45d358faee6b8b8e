"""How many clocks of shared memory (LDS) an access of a wave takes, and how many for conflicts.

The model: 32 banks of 4 bytes, byte b lies in bank b // 4 % 32. A wave's lanes go in phases of as
many lanes as fill the banks once; a phase takes as many clocks as the bank that is asked for most
dwords. Lanes that ask for the same dword share it, but for atomics, which take turns.

Which lanes go together: up to 4 bytes a lane 32 side by side, 8 bytes 16, 12 and 16 bytes 8; reads
of 16 bytes on CDNA (`is_paired`) pair four lanes with four others. Of 4 and 16 bytes this
stands in AMD's Composable Kernel documentation ("Understanding AMD GPU LDS and Bank Conflicts");
of 8 bytes it follows from the optimization guide for GCN; of 12 bytes, and of RDNA, it is assumed.
RDNA's pairs of compute units have 64 banks in two halves of 32, of which each unit has one ("RDNA3
Instruction Set Architecture", on LDS): a wave of either mode sees 32 at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array

BANKS, BANK_BYTES = 32, 4
_NONE = -1
# First lanes of the two fours that go together, of a half wave.
_PAIRED = ((0, 20), (4, 16), (8, 28), (12, 24))


class BankClocks(NamedTuple):
    """Clocks of shared memory that an access takes. A tuple, since each access makes some."""

    clocks: int
    # As many as it would take without bank conflicts.
    least: int


class AlikeWaves(NamedTuple):
    """Waves whose lanes access memory in the same way."""

    waves: int
    # Byte offset of each lane, [lane]: less a multiple of the unit, which differs between them.
    offsets: Array


@cache
def phases(size: int, lanes: int, is_paired: bool) -> Array:
    """Numbers of lanes [phase, lane] that go together when each moves `size` bytes; `is_paired`
    where four lanes go with four others, if they move more than eight bytes."""
    if size > 8 and is_paired:
        halves = range(0, lanes, 32)
        fours = [[half + four for four in pair] for half in halves for pair in _PAIRED]
        return np.array([[n + k for n in pair for k in range(4)] for pair in fours])
    together = BANKS if size <= 4 else 16 if size <= 8 else 8
    return np.arange(lanes).reshape(-1, min(together, lanes))


def count_clocks(
    index: Array,
    active: Array | None,
    size: int,
    *,
    is_paired: bool = False,
    is_atomic: bool = False,
) -> BankClocks:
    """Of byte offsets [wave, lane] in each group's memory: the clocks of all waves."""
    clocks = least = 0
    kinds = [*alike(index, active, BANK_BYTES)]
    if not kinds:
        return _count(index, active, size, is_paired, is_atomic)
    for kind in kinds:
        one = _count_wave(kind.offsets.tobytes(), size, is_paired, is_atomic)
        clocks += kind.waves * one.clocks
        least += kind.waves * one.least
    return BankClocks(clocks, least)


def alike(index: Array, active: Array | None, unit: int) -> Iterator[AlikeWaves]:
    """The kinds of waves that there are, but for whole units by which all lanes of a wave are
    further on, if lanes lie the same way in all of them, as they most often do. Else nothing."""
    if active is not None:
        return
    begins = index.min(axis=1, keepdims=True)
    moved = index - begins
    if (moved == moved[0]).all():
        for begin, waves in zip(
            *np.unique(begins % unit, return_counts=True), strict=True
        ):
            yield AlikeWaves(int(waves), moved[0] + begin)


@lru_cache(maxsize=4096)
def _count_wave(
    index: bytes, size: int, is_paired: bool, is_atomic: bool
) -> BankClocks:
    one = np.frombuffer(index, np.int64)[None, :]
    return _count(one, None, size, is_paired, is_atomic)


def _count(
    index: Array, active: Array | None, size: int, is_paired: bool, is_atomic: bool
) -> BankClocks:
    order = phases(size, index.shape[1], is_paired)
    dwords = _dwords(index, size)[:, order]  # [wave, phase, lane, dword]
    if active is not None:
        dwords = np.where(active[:, order][..., None], dwords, _NONE)
    asked = dwords.reshape(-1, order.shape[1] * dwords.shape[-1])
    chosen = asked != _NONE
    if not is_atomic:
        asked = np.sort(asked, axis=1)
        chosen = asked != _NONE
        chosen[:, 1:] &= asked[:, 1:] != asked[:, :-1]
    rows = np.broadcast_to(np.arange(len(asked))[:, None], asked.shape)
    place = rows[chosen] * BANKS + asked[chosen] % BANKS
    by_bank = np.bincount(place, minlength=len(asked) * BANKS).reshape(-1, BANKS)
    return BankClocks(int(by_bank.max(axis=1).sum()), int(chosen.any(axis=1).sum()))


def _dwords(index: Array, size: int) -> Array:
    """The numbers of the dwords that each lane asks for: [wave, lane, dword]."""
    count = max(1, -(-size // BANK_BYTES))
    found: Array = (index // BANK_BYTES)[..., None] + np.arange(count)
    return found

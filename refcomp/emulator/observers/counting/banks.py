"""A model of shared memory (LDS): the clocks that an access of a wave takes, and bank conflicts.

There are 32 banks of 4 bytes: byte b is in bank b // 4 % 32. A wave's lanes access memory in
phases, each of as many lanes as fill the banks once. A phase takes as many clocks as the busiest
bank has dwords to deliver. Lanes that read the same dword share it; atomics of one dword take one
clock each.

A phase has 32 consecutive lanes for up to 4 bytes a lane, 16 lanes for 8 bytes, and 8 lanes for 12
and 16 bytes. On CDNA (`is_paired`), phases of 16-byte reads pair four lanes with four others.

Sources: for 4 and 16 bytes AMD's Composable Kernel documentation ("Understanding AMD GPU LDS and
Bank Conflicts"), for 8 bytes the optimization guide for GCN. The phases for 12 bytes, and those of
RDNA, are assumptions. RDNA's pairs of compute units have 64 banks in two halves, one for each unit
("RDNA3 Instruction Set Architecture", on LDS). So a wave of either mode uses 32 banks at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from refcomp.emulator.machine.arrays import Array

BANKS = 32
BANK_BYTES = 4
_NONE = -1  # instead of the dword of a lane that is off
# First lanes of the two groups of four lanes in each phase of half a wave.
_PAIRED = ((0, 20), (4, 16), (8, 28), (12, 24))


class BankClocks(NamedTuple):
    """Clocks that an access to shared memory takes. A tuple: each access makes some."""

    clocks: int
    least: int  # clocks without bank conflicts


class _AccessKind(NamedTuple):
    """The properties that all waves of an access share; see `count_clocks`."""

    size: int
    is_paired: bool
    is_atomic: bool
    is_whole: bool


class AlikeWaves(NamedTuple):
    """Waves whose lanes access memory in the same way."""

    waves: int  # how many there are
    offsets: Array  # int64 [lane], in bytes, reduced by a multiple of the unit


@cache
def phases(size: int, lanes: int, is_paired: bool) -> Array:
    """Return the lanes of each phase, int [phase, lane].

    Args:
        size: bytes that each lane moves.
        lanes: of a wave.
        is_paired: pair four lanes with four others if a lane moves more than 8 bytes.
    """
    if size > 8 and is_paired:
        halves = range(0, lanes, 32)
        fours = [[half + four for four in pair] for half in halves for pair in _PAIRED]
        return (np.array(fours)[:, :, None] + np.arange(4)).reshape(len(fours), 8)
    if size <= 4:
        return np.arange(lanes).reshape(-1, min(BANKS, lanes))
    return np.arange(lanes).reshape(-1, 16 if size <= 8 else 8)


def count_clocks(
    index: Array,
    active: Array | None,
    size: int,
    *,
    is_paired: bool = False,
    is_atomic: bool = False,
    is_whole: bool = False,
) -> BankClocks:
    """Return the clocks of an access, summed over all waves.

    Args:
        index: int64 [wave, lane], offsets in bytes.
        active: bool [wave, lane]; None: all lanes.
        size: bytes of each lane.
        is_paired: see `phases`.
        is_atomic: lanes do not share dwords.
        is_whole: there are no phases: a wave takes as many clocks as the busiest bank has dwords.
    """
    clocks = 0
    least = 0
    how = _AccessKind(size, is_paired, is_atomic, is_whole)
    kinds = [*alike(index, active, BANK_BYTES)]
    if not kinds:
        return _count(index, active, how)
    for kind in kinds:
        one = _count_wave(kind.offsets.tobytes(), how)
        clocks += kind.waves * one.clocks
        least += kind.waves * one.least
    return BankClocks(clocks, least)


def alike(index: Array, active: Array | None, unit: int) -> Iterator[AlikeWaves]:
    """Yield the different ways in which waves access memory, if these are few.

    They are few if the lanes of all waves have the same distances, as is usual. Then waves differ
    at most by their first offset, modulo `unit`. Otherwise nothing is yielded.
    """
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
def _count_wave(index: bytes, how: _AccessKind) -> BankClocks:
    one = np.frombuffer(index, np.int64)[None, :]
    return _count(one, None, how)


def _count(index: Array, active: Array | None, how: _AccessKind) -> BankClocks:
    lanes = index.shape[1]
    order = (
        np.arange(lanes)[None, :]
        if how.is_whole
        else phases(how.size, lanes, how.is_paired)
    )
    count = max(1, -(-how.size // BANK_BYTES))  # dwords of each lane
    # int [wave, lane, dword], then [wave, phase, lane, dword]: the numbers of the dwords.
    dwords: Array = (index // BANK_BYTES)[..., None] + np.arange(count)
    dwords = dwords[:, order]
    if active is not None:
        dwords = np.where(active[:, order][..., None], dwords, _NONE)
    asked = dwords.reshape(-1, order.shape[1] * dwords.shape[-1])
    chosen = asked != _NONE
    if not how.is_atomic:
        asked = np.sort(asked, axis=1)
        chosen = asked != _NONE
        chosen[:, 1:] &= asked[:, 1:] != asked[:, :-1]
    rows = np.broadcast_to(np.arange(len(asked))[:, None], asked.shape)
    place = rows[chosen] * BANKS + asked[chosen] % BANKS
    by_bank = np.bincount(place, minlength=len(asked) * BANKS).reshape(-1, BANKS)
    least = -(-chosen.sum(axis=1) // BANKS)
    return BankClocks(int(by_bank.max(axis=1).sum()), int(least.sum()))

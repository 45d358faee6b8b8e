"""Confirms data races of loads: a race counts only if a thread uses the value that it loaded.

Compilers move loads in front of branches and loops. There, threads execute loads whose values they
do not need. LLVM does so with variables that one thread keeps in memory.

So a launch with races of loads runs a second time, from the same memory and heap. The values of
these loads are replaced by undefined bits. If no thread uses these bits, and the memory ends up the
same, the races are dropped. If the second run fails, they are kept. In any case, memory and heap
end as the first run left them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from refcomp.emulator.code.findings import RACE
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BASE, Allocation, Arena
from refcomp.emulator.ptx.machine.findings import PtxFinding
from refcomp.emulator.ptx.machine.observation import PtxObserver
from refcomp.foundation.errors import RefcompError

_MAX_BYTES = 1 << 28  # of memory that is kept for a second run


# Runs a launch with some observers, and returns the findings.
_Run: TypeAlias = Callable[[tuple[PtxObserver, ...]], tuple[PtxFinding, ...]]


def confirmed_findings(
    arena: Arena, observers: tuple[PtxObserver, ...], run: _Run
) -> tuple[PtxFinding, ...]:
    """Run a launch, perhaps twice. Return its findings without races whose values are not used."""
    places = arena.allocations()
    if not _can_keep(arena, places) or not any(
        one.may_need_second_run for one in observers
    ):
        return run(observers)
    begin, before = arena.state(), _contents(arena, places)
    findings = run(observers)
    poisoning = [one for one in (o.poisoning_observer() for o in observers) if one]
    places = arena.allocations()  # with what the kernel allocated
    if not poisoning or not _can_keep(arena, places):
        return findings
    end, after = arena.state(), _contents(arena, places)
    others = tuple(one for one in findings if one.kind != RACE)
    try:
        arena.reset(begin)
        _restore(arena, before)
        second = run(tuple(poisoning))
        is_same = arena.allocations() == places
        is_same &= all(map(_is_equal, after, _contents(arena, places)))
    except (RefcompError, MemoryError):
        return findings
    finally:
        arena.reset(end)
        _restore(arena, after)
    # A use of a value, and a load that cannot be poisoned, is a finding of the second run.
    return others if is_same and _kinds(second) == _kinds(others) else findings


def _can_keep(arena: Arena, places: Sequence[Allocation]) -> bool:
    """Return True if the content of allocations is watched, and small enough to be copied."""
    size = sum(one.size for one in places)
    return arena.bytes.known is not None and size <= _MAX_BYTES


def _kinds(findings: tuple[PtxFinding, ...]) -> list[tuple[str, int]]:
    return [(one.kind, one.instruction.line) for one in findings]


@dataclass(frozen=True, slots=True)
class _KeptMemory:
    """The content of an allocation: its bytes, and which bits were written."""

    begin: int  # offset in the arena
    data: Array
    known: Array


def _contents(arena: Arena, places: Sequence[Allocation]) -> list[_KeptMemory]:
    found = []
    for place in places:
        begin = place.address - BASE
        part = slice(begin, begin + place.size)
        assert arena.bytes.known is not None
        data, known = arena.bytes.data[part], arena.bytes.known[part]
        found.append(_KeptMemory(begin, data.copy(), known.copy()))
    return found


def _is_equal(one: _KeptMemory, other: _KeptMemory) -> bool:
    """Return True if the same bits were written, to the same values."""
    return np.array_equal(one.known, other.known) and np.array_equal(
        one.data & one.known, other.data & other.known
    )


def _restore(arena: Arena, contents: Sequence[_KeptMemory]) -> None:
    for one in contents:
        part = slice(one.begin, one.begin + len(one.data))
        assert arena.bytes.known is not None
        arena.bytes.data[part] = one.data
        arena.bytes.known[part] = one.known

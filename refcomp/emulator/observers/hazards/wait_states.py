"""Registers that are used too soon after an instruction for which the GPU does not wait by itself.

What stands between two instructions is counted as they run, so that loops, branches and calls need
no rule of their own. Of products of matrices that wrote the same register the latest counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import WAIT
from refcomp.emulator.generations.wait_counters import register_name
from refcomp.emulator.generations.wait_states import (
    MOST_TRANS,
    Footprint,
    HazardPair,
    HazardUse,
    Places,
    StateTable,
)
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Observer

# More than any table asks for; and for a wave that never came there.
_LONG, _NEVER = 32, -(1 << 30)


@dataclass(frozen=True, slots=True)
class _Left:
    """What an instruction left, and where the clocks stood when each wave was last behind it:
    [clock, wave]. `is_whole`: all waves were there together then."""

    name: str
    places: Places
    instruction: Instruction
    order: int
    at: Array
    is_whole: bool


class WaitStates(Observer):
    """Tells of instructions that come too soon after another one."""

    def __init__(self) -> None:
        self._by_program: WeakKeyDictionary[Any, dict[int, Footprint]] = (
            WeakKeyDictionary()
        )
        self._footprints: dict[int, Footprint] = {}
        self._table: StateTable

    def launched(self, loaded: Any, request: Any) -> None:
        self._table = loaded.generation.states
        program = loaded.program(loaded.kernel(request.kernel))
        self._footprints = self._by_program.setdefault(program, {})

    def began(self, waves: Any) -> None:
        self._clocks = np.zeros((2, waves.waves), np.int64)
        # By the name of what was left, and the number of the instruction; the latest is last.
        self._left: dict[str, dict[int, _Left]] = {}
        self._room: dict[str, int] = {}
        self._order = 0

    def instruction(self, waves: Any, instruction: Instruction) -> None:
        footprint = self._footprints.get(instruction.number)
        if footprint is None:
            footprint = self._table.footprint(instruction)
            self._footprints[instruction.number] = footprint
        for use in footprint.does:
            if before := self._before(use.name):
                self._check(waves, instruction, use, before)
        for clock, passed in zip(self._clocks, footprint.passed, strict=True):
            if passed:
                clock[waves.rows] += passed
        for use in footprint.leaves:
            self._leave(waves, instruction, use)

    def _leave(self, waves: Any, instruction: Instruction, use: HazardUse) -> None:
        self._order += 1
        name, places = use
        kept = self._left.setdefault(name, {})
        before = kept.pop(instruction.number, None)
        at = np.full_like(self._clocks, _NEVER) if before is None else before.at
        at[:, waves.rows] = self._clocks[:, waves.rows]
        is_whole = waves.count() == waves.waves
        kept[instruction.number] = _Left(
            name, places, instruction, self._order, at, is_whole
        )
        if len(kept) > self._room.get(name, _LONG):
            self._left[name] = {
                n: one for n, one in kept.items() if self._is_recent(one)
            }
            self._room[name] = len(self._left[name]) + _LONG // 2

    def _is_recent(self, left: _Left) -> bool:
        return bool((self._clocks[0] - left.at[0]).min() < _LONG)

    def _before(self, does: str) -> list[_Left]:
        """What counts for those who do this, the latest first."""
        lists = [
            kept for name in self._table.before[does] if (kept := self._left.get(name))
        ]
        if len(lists) == 1:
            return [*reversed(lists[0].values())]
        some = (one for kept in lists for one in kept.values())
        return sorted(some, key=lambda one: -one.order)

    def _check(
        self, waves: Any, instruction: Instruction, use: HazardUse, before: list[_Left]
    ) -> None:
        rest = use.places
        for left in before:
            if left.places.isdisjoint(rest):
                continue
            needed = self._needed(left, use)
            between, trans = (self._clocks - left.at)[:, waves.rows]
            wrong = (between < needed) & (trans <= MOST_TRANS)
            if wrong.any():
                early = HazardUse(use.name, left.places & rest)
                self._tell(waves, instruction, left, early, needed, wrong)
            if _hides_others(left):
                rest -= left.places

    def _needed(self, left: _Left, use: HazardUse) -> int:
        needed = self._table.needed
        if left.places == use.places:
            does = use.name.replace("reads SrcC", "reads the same SrcC")
            same = needed.get(HazardPair(left.name, does))
            if same is not None:
                return same
        return needed[HazardPair(left.name, use.name)]

    def _tell(
        self,
        waves: Any,
        instruction: Instruction,
        left: _Left,
        use: HazardUse,
        needed: int,
        wrong: Array,
    ) -> None:
        between = int((self._clocks - left.at)[0, waves.rows][wrong][0])
        what = (
            f"uses {_name(use.places)} {between} of {needed} {self._table.unit} after "
            f"{left.instruction}: {left.name}, then {use.name}; "
            f"{self._table.remedy(left.name)} is missing"
        )
        waves.report(WAIT, instruction, what, wrong)


def _name(places: Places) -> str:
    place = min(places, key=lambda one: (isinstance(one, str), one))
    return place if isinstance(place, str) else register_name(place)


def _hides_others(left: _Left) -> bool:
    """Whether it is a product of matrices, which came after all others in all waves."""
    return (
        left.name[0].isdigit() and left.name.endswith("writes VGPR") and left.is_whole
    )

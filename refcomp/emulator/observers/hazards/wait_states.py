"""Registers that are used too soon after an instruction for which the GPU does not wait by itself.

Wait states are counted while instructions run, so that loops, branches and calls need no special
rules. If several matrix products wrote the same register, the latest counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import WAIT
from refcomp.emulator.execution.launch import LaunchRequest, LoadedCode
from refcomp.emulator.execution.program import DecodedProgram
from refcomp.emulator.generations.wait_counters import register_name
from refcomp.emulator.generations.wait_states import (
    MAX_TRANS,
    Footprint,
    HazardPair,
    HazardUse,
    Places,
    StateTable,
)
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.machine.waves import Waves

_MAX_DISTANCE = 32  # more than any table requires
_NEVER = -(1 << 30)  # the clock of waves that did not run an instruction


@dataclass(frozen=True, slots=True)
class _FirstUse:
    """An instruction that has run, as the first of a hazard pair."""

    name: str  # see `HazardPair.first`
    places: Places
    instruction: Instruction
    order: int  # increases with each instruction that ran
    at: Array  # int64 [clock, wave]: the clocks when each wave last ran the instruction
    ran_in_all: bool  # all waves ran it together

    def hides_others(self) -> bool:
        """Return True for a matrix product that came after all others in all waves."""
        is_product = self.name[0].isdigit() and self.name.endswith("writes VGPR")
        return is_product and self.ran_in_all


class WaitStates(Observer):
    """Reports instructions that follow another one too soon."""

    def __init__(self) -> None:
        self._by_program: WeakKeyDictionary[DecodedProgram, dict[int, Footprint]] = (
            WeakKeyDictionary()
        )
        self._footprints: dict[int, Footprint] = {}  # by number of the instruction
        self._table: StateTable

    def launched(self, loaded: LoadedCode, request: LaunchRequest) -> None:
        self._table = loaded.generation.states
        program = loaded.program(loaded.kernel(request.kernel))
        self._footprints = self._by_program.setdefault(program, {})

    def began(self, waves: Waves) -> None:
        # int64 [clock, wave], see `ClockTicks`.
        self._clocks = np.zeros((2, waves.waves), np.int64)
        # By name of the use and number of the instruction; the latest is last.
        self._uses: dict[str, dict[int, _FirstUse]] = {}
        # By name: at least the places of all uses, so that most instructions need no search.
        self._places: dict[str, set[int | str]] = {}
        # By name: with more uses than this, old ones are dropped.
        self._max_uses: dict[str, int] = {}
        self._order = 0

    def instruction(self, waves: Waves, instruction: Instruction) -> None:
        footprint = self._footprints.get(instruction.number)
        if footprint is None:
            footprint = self._table.footprint(instruction)
            self._footprints[instruction.number] = footprint
        for use in footprint.as_second:
            earlier = self._earlier(use)
            if earlier:
                self._check(waves, instruction, use, earlier)
        for clock, ticks in zip(self._clocks, footprint.ticks, strict=True):
            if ticks:
                clock[waves.rows] += ticks
        for use in footprint.as_first:
            self._add(waves, instruction, use)

    def _add(self, waves: Waves, instruction: Instruction, use: HazardUse) -> None:
        self._order += 1
        uses = self._uses.setdefault(use.name, {})
        before = uses.pop(instruction.number, None)
        at = np.full_like(self._clocks, _NEVER) if before is None else before.at
        at[:, waves.rows] = self._clocks[:, waves.rows]
        uses[instruction.number] = _FirstUse(
            name=use.name,
            places=use.places,
            instruction=instruction,
            order=self._order,
            at=at,
            ran_in_all=waves.count() == waves.waves,
        )
        self._places.setdefault(use.name, set()).update(use.places)
        if len(uses) > self._max_uses.get(use.name, _MAX_DISTANCE):
            recent = {
                number: one
                for number, one in uses.items()
                if (self._clocks[0] - one.at[0]).min() < _MAX_DISTANCE
            }
            self._uses[use.name] = recent
            self._places[use.name] = {
                place for one in recent.values() for place in one.places
            }
            self._max_uses[use.name] = len(recent) + _MAX_DISTANCE // 2

    def _earlier(self, second: HazardUse) -> list[_FirstUse]:
        """Return all uses of the same places that form a pair with `second`, the latest first."""
        places = second.places
        found = [
            use
            for first in self._table.firsts[second.name]
            if first in self._uses and not self._places[first].isdisjoint(places)
            for use in self._uses[first].values()
            if not use.places.isdisjoint(places)
        ]
        return sorted(found, key=lambda use: -use.order)

    def _check(
        self,
        waves: Waves,
        instruction: Instruction,
        second: HazardUse,
        earlier: list[_FirstUse],
    ) -> None:
        """Report `instruction` where it comes too soon after one of `earlier`."""
        remaining = second.places
        for first in earlier:
            if first.places.isdisjoint(remaining):
                continue
            required = self._required(first, second)
            states, trans = (self._clocks - first.at)[:, waves.rows]
            wrong = (states < required) & (trans <= MAX_TRANS)
            if wrong.any():
                place = _name(first.places & remaining)
                what = (
                    f"uses {place} only {states[wrong][0]} of {required} {self._table.unit} "
                    f"after {first.instruction}: {first.name}, then {second.name}; "
                    f"{self._table.remedy(first.name)} is missing"
                )
                waves.report(WAIT, instruction, what, wrong)
            if first.hides_others():
                remaining -= first.places

    def _required(self, first: _FirstUse, second: HazardUse) -> int:
        """Return how many wait states must separate the two."""
        required = self._table.required
        if first.places == second.places:
            name = second.name.replace("reads SrcC", "reads the same SrcC")
            same = required.get(HazardPair(first.name, name))
            if same is not None:
                return same
        return required[HazardPair(first.name, second.name)]


def _name(places: Places) -> str:
    """Return the name of the lowest register, or of what has no number."""
    place = min(places, key=lambda one: (isinstance(one, str), one))
    return place if isinstance(place, str) else register_name(place)

"""Results that are used before a wait says that they are there.

Follows what each wave has begun and waited for. Reading a register that a load still fills is told
of, and so is writing it, unless what writes is done after the load anyway: the same queue, in
order. Others ask here what of a wave's accesses is still under way.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import WAIT
from refcomp.emulator.generations.wait_counters import (
    Counters,
    Effect,
    Queue,
    effect_of,
    register_name,
)
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Observer

# No counter goes further: a wave with so many under way waits before it begins another one.
MOST_UNDER_WAY = 64


class Flight:
    """What an instruction began in some waves: its number in each of its `queues`, for all waves
    [wave], 0 for those that began nothing. `open` are waves whose registers it still fills."""

    def __init__(
        self,
        instruction: Instruction,
        effect: Effect,
        places: dict[Queue, Array],
        open_: Array,
    ) -> None:
        self.instruction, self.fills, self.kind = instruction, effect.fills, effect.kind
        self.places, self.open = places, open_

    def goes_on(self, done: dict[Queue, Array]) -> Array:
        """The waves in which it may not be done: bool [wave]."""
        under_way = [place > done[queue] for queue, place in self.places.items()]
        return under_way[0] if len(under_way) == 1 else under_way[0] | under_way[1]

    def goes_on_in_shared(self, done: dict[Queue, Array]) -> Array:
        """Those in which it may not be done with shared memory, which has a counter of its own."""
        under_way = [
            place > done[queue]
            for queue, place in self.places.items()
            if queue.counter == "lgkmcnt"
        ]
        return under_way[0] if under_way else self.goes_on(done)


class Waits(Observer):
    """What is under way in each wave of a batch; `flights` are those that fill registers.
    `is_told`: whether findings are made of it."""

    def __init__(self, *, is_told: bool = True) -> None:
        self.is_told = is_told
        self._effects: dict[int, Effect] = {}
        self._by_program: WeakKeyDictionary[Any, dict[int, Effect]] = (
            WeakKeyDictionary()
        )
        self._counters: Counters
        self.flights: list[Flight] = []
        self.latest: Flight | None = None
        self._filled: set[int] = set()

    def launched(self, loaded: Any, request: Any) -> None:
        self._counters = loaded.generation.counters
        program = loaded.program(loaded.kernel(request.kernel))
        self._effects = self._by_program.setdefault(program, {})

    def began(self, waves: Any) -> None:
        queues = self._counters.all_queues()
        self.begun = {queue: np.zeros(waves.waves, np.int32) for queue in queues}
        self.done = {queue: np.zeros(waves.waves, np.int32) for queue in queues}
        self.flights, self.latest, self._filled = [], None, set()

    def instruction(self, waves: Any, instruction: Instruction) -> None:
        effect = self._effects.get(instruction.number)
        if effect is None:
            effect = self._effects[instruction.number] = effect_of(instruction)
        if self._filled and not self._filled.isdisjoint(effect.touches | effect.fills):
            self._check(waves, instruction, effect)
        if effect.waits:
            self._wait(waves, effect)
        if effect.kind:
            self._begin(waves, instruction, effect)

    def _begin(self, waves: Any, instruction: Instruction, effect: Effect) -> None:
        places = {}
        for queue in self._counters.queues(effect.kind):
            begun, done = self.begun[queue], self.done[queue]
            begun[waves.rows] += 1
            places[queue] = np.zeros(waves.waves, np.int32)
            places[queue][waves.rows] = begun[waves.rows]
            if queue.is_ordered:
                np.maximum(done, begun - MOST_UNDER_WAY, out=done)
        runs = np.zeros(waves.waves, np.bool_)
        runs[waves.rows] = True
        self.latest = Flight(instruction, effect, places, runs)
        if effect.fills:
            self.flights.append(self.latest)
            self._filled |= effect.fills

    def _wait(self, waves: Any, effect: Effect) -> None:
        for queue, done in self.done.items():
            most = effect.waits.get(queue.counter)
            if most is None or most >= self._counters.most[queue.counter]:
                continue
            if most and not queue.is_ordered:
                continue
            begun = self.begun[queue][waves.rows]
            done[waves.rows] = np.maximum(done[waves.rows], begun - most)
        self.flights = [
            flight for flight in self.flights if flight.goes_on(self.done).any()
        ]
        self._filled = set().union(*(flight.fills for flight in self.flights))

    # Findings.

    def _check(self, waves: Any, instruction: Instruction, effect: Effect) -> None:
        for flight in self.flights:
            numbers = flight.fills & effect.touches
            if not numbers and not self._is_after(flight, effect):
                numbers = flight.fills & effect.fills
            if numbers:
                self._tell(waves, instruction, flight, min(numbers))

    def _is_after(self, flight: Flight, effect: Effect) -> bool:
        """Whether what an instruction begins is surely done after a flight."""
        if not effect.kind:
            return False
        queues = self._counters.queues(effect.kind)
        return queues == tuple(flight.places) and all(
            queue.is_ordered for queue in queues
        )

    def _tell(
        self, waves: Any, instruction: Instruction, flight: Flight, number: int
    ) -> None:
        wrong = (flight.goes_on(self.done) & flight.open)[waves.rows]
        if not wrong.any():
            return
        flight.open[waves.rows] &= ~wrong
        if self.is_told:
            name, counter = register_name(number), next(iter(flight.places)).counter
            what = f"uses {name} without a wait ({counter}) for {flight.instruction}"
            waves.report(WAIT, instruction, what, wrong)

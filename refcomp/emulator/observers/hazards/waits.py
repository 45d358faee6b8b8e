"""Results that are used before a wait makes sure that they are complete.

The observer tracks the operations that each wave has begun and has waited for. Reading a register
that a load still fills is a finding. Overwriting it is a finding, too, unless the second operation
is sure to complete after the load, because both are in the same ordered queue. The race check asks
`Waits` which accesses are still in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import WAIT
from refcomp.emulator.execution.launch import LaunchRequest, LoadedCode
from refcomp.emulator.execution.program import DecodedProgram
from refcomp.emulator.generations.wait_counters import (
    Counters,
    Effect,
    Queue,
    effect_of,
    register_name,
)
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.machine.waves import Waves

# No counter counts further: a wave with so many flights stalls before it begins another one.
MAX_IN_FLIGHT = 64


@dataclass(slots=True, eq=False)
class Flight:
    """An operation that one instruction has begun in some waves of a batch."""

    instruction: Instruction
    effect: Effect
    # int32 [waves] for each queue: the operation's number in it; 0 in waves that did not begin it.
    positions: dict[Queue, Array]
    # bool [waves]: waves in which a use of the result has not been reported.
    is_unreported: Array

    @property
    def counter(self) -> str:
        """The counter to wait for, of several the first."""
        return next(iter(self.positions)).counter

    def is_pending(self, done: dict[Queue, Array]) -> Array:
        """Return, as bool [waves], where the operation may not have completed."""
        pending = [position > done[queue] for queue, position in self.positions.items()]
        return pending[0] if len(pending) == 1 else pending[0] | pending[1]

    def is_pending_in_shared(self, done: dict[Queue, Array]) -> Array:
        """Return, as bool [waves], where accesses to shared memory may not have completed.

        A flat access has two counters, and one of them is for shared memory.
        """
        for queue, position in self.positions.items():
            if queue.counter == "lgkmcnt":
                return position > done[queue]
        return self.is_pending(done)


class Waits(Observer):
    """Tracks what is in flight in each wave of a batch.

    With `reports` False it makes no findings, and only serves the race check.
    """

    def __init__(self, *, reports: bool = True) -> None:
        self._reports = reports
        self._by_program: WeakKeyDictionary[DecodedProgram, dict[int, Effect]] = (
            WeakKeyDictionary()
        )
        self._effects: dict[int, Effect] = {}  # by number of the instruction
        self._counters: Counters
        self.flights: list[Flight] = []  # those that fill registers
        self.latest: Flight | None = None
        self._filled: set[int] = set()  # registers that `flights` fill

    def launched(self, loaded: LoadedCode, request: LaunchRequest) -> None:
        self._counters = loaded.generation.counters
        program = loaded.program(loaded.kernel(request.kernel))
        self._effects = self._by_program.setdefault(program, {})

    def began(self, waves: Waves) -> None:
        queues = self._counters.all_queues()
        # int32 [waves] for each queue: operations that have begun, and that have completed.
        self.begun = {queue: np.zeros(waves.waves, np.int32) for queue in queues}
        self.done = {queue: np.zeros(waves.waves, np.int32) for queue in queues}
        self.flights = []
        self.latest = None
        self._filled = set()

    def instruction(self, waves: Waves, instruction: Instruction) -> None:
        effect = self._effects.get(instruction.number)
        if effect is None:
            effect = effect_of(instruction)
            self._effects[instruction.number] = effect
        if self._filled and not self._filled.isdisjoint(effect.touches | effect.fills):
            self._check(waves, instruction, effect)
        if effect.waits:
            self._wait(waves, effect)
        if effect.kind is not None:
            queues = self._counters.queues(effect.kind)
            self._begin(waves, instruction, effect, queues)

    def _begin(
        self,
        waves: Waves,
        instruction: Instruction,
        effect: Effect,
        queues: tuple[Queue, ...],
    ) -> None:
        """Count an operation in its queues, and keep it until its result is used."""
        positions = {}
        for queue in queues:
            begun = self.begun[queue]
            begun[waves.rows] += 1
            positions[queue] = np.zeros(waves.waves, np.int32)
            positions[queue][waves.rows] = begun[waves.rows]
            if queue.is_ordered:
                done = self.done[queue]
                np.maximum(done, begun - MAX_IN_FLIGHT, out=done)
        running = np.zeros(waves.waves, np.bool_)
        running[waves.rows] = True
        self.latest = Flight(instruction, effect, positions, running)
        if effect.fills:
            self.flights.append(self.latest)
            self._filled |= effect.fills

    def _wait(self, waves: Waves, effect: Effect) -> None:
        for queue, done in self.done.items():
            allowed = effect.waits.get(queue.counter)
            if allowed is None or allowed >= self._counters.maxima[queue.counter]:
                continue
            # Only a wait for 0 says that an operation of an unordered queue has completed.
            if allowed and not queue.is_ordered:
                continue
            begun = self.begun[queue][waves.rows]
            done[waves.rows] = np.maximum(done[waves.rows], begun - allowed)
        self.flights = [
            flight for flight in self.flights if flight.is_pending(self.done).any()
        ]
        self._filled = set().union(*(flight.effect.fills for flight in self.flights))

    def _check(self, waves: Waves, instruction: Instruction, effect: Effect) -> None:
        """Report the registers of `instruction` that flights still fill."""
        for flight in self.flights:
            numbers = flight.effect.fills & effect.touches
            if not numbers and not self._completes_after(effect, flight):
                numbers = flight.effect.fills & effect.fills
            if not numbers:
                continue
            wrong = (flight.is_pending(self.done) & flight.is_unreported)[waves.rows]
            if not wrong.any():
                continue
            flight.is_unreported[waves.rows] &= ~wrong
            if self._reports:
                name = register_name(min(numbers))
                what = f"uses {name} without a wait ({flight.counter}) for {flight.instruction}"
                waves.report(WAIT, instruction, what, wrong)

    def _completes_after(self, effect: Effect, flight: Flight) -> bool:
        """Return True if what an instruction begins is sure to complete after `flight`."""
        if effect.kind is None:
            return False
        queues = self._counters.queues(effect.kind)
        are_ordered = all(queue.is_ordered for queue in queues)
        return are_ordered and queues == tuple(flight.positions)

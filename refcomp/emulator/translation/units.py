"""Units: runs of instructions that one function runs, with the registers that they read and write.

A load that follows a store to the same memory begins another unit: the stores of a unit are made
at its end. So does an instruction without a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.generations.generation import Generation
from refcomp.emulator.machine.registers import SCC
from refcomp.emulator.machine.waves import Run
from refcomp.emulator.translation.steps import HostStep, decode

# A shorter unit would gain less than a call costs, unless it accesses memory.
_MIN_STEPS = 2
# Longer functions take the compiler too long.
_MAX_STEPS = 1500


@dataclass(frozen=True, slots=True)
class BoundRun:
    """An instruction of a block, with the function of the interpreter that runs it."""

    instruction: Instruction
    run: Run
    is_indexed: bool = False  # M0 changes which registers it names


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """Steps that one function runs.

    Attributes:
        steps: in order.
        runs: of the interpreter, one for each step.
        lanes: of a wave.
        inputs: registers that are read before they are written.
        outputs: registers that are written.
    """

    steps: tuple[HostStep, ...]
    runs: tuple[Run, ...]
    lanes: int
    inputs: frozenset[int]
    outputs: frozenset[int]

    @property
    def is_plain(self) -> bool:
        """True if nothing can hold up a wave in an unchecked run: it accesses no memory."""
        return all(step.access is None and step.load is None for step in self.steps)


def units_of(
    bound: Sequence[BoundRun], of: Generation, lanes: int
) -> Iterator[CodeUnit | BoundRun]:
    """Yield the units of a block, and between them the instructions that are in none."""
    steps: list[HostStep] = []
    members: list[BoundRun] = []
    stored: set[bool] = set()  # memories that the unit stores to
    for one in bound:
        step = None if one.is_indexed else decode(one.instruction, of)
        if step is None or len(steps) == _MAX_STEPS or _follows(step, stored):
            yield from _closed(steps, members, lanes)
            steps, members, stored = [], [], set()
        if step is None:
            yield one
            continue
        steps.append(step)
        members.append(one)
        if step.access is not None and step.access.is_store:
            stored.add(step.access.is_shared)
    yield from _closed(steps, members, lanes)


def _follows(step: HostStep, stored: set[bool]) -> bool:
    """Return True if a step may load bytes that the unit has stored."""
    if step.load is not None:
        return False in stored
    access = step.access
    return access is not None and not access.is_store and access.is_shared in stored


def _closed(
    steps: Sequence[HostStep], members: Sequence[BoundRun], lanes: int
) -> Iterator[CodeUnit | BoundRun]:
    accesses = any(step.access is not None for step in steps)
    if len(steps) < _MIN_STEPS and not accesses:
        yield from members
        return
    inputs: set[int] = set()
    outputs: set[int] = set()
    for step in steps:
        inputs |= step.reads - outputs
        outputs |= step.writes
    runs = tuple(one.run for one in members)
    yield CodeUnit(tuple(steps), runs, lanes, frozenset(inputs), frozenset(outputs))


def vectors(numbers: frozenset[int]) -> list[int]:
    """Return the vector registers among `numbers`, sorted."""
    return sorted(number for number in numbers if number > SCC)


def scalars(numbers: frozenset[int]) -> list[int]:
    """Return the scalar registers and SCC among `numbers`, sorted."""
    return sorted(number for number in numbers if number <= SCC)

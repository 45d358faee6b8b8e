"""The numbers of a profile: of an instruction, of its accesses to memory, of a kernel.

All are exact for the launches that were observed. `transactions` and clocks of banks follow from
addresses by the models of coalescing.py and banks.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from refcomp.emulator.code.assembly import Assembly, Instruction
from refcomp.emulator.observers.counting.mnemonics import (
    CLASSES,
    FMA,
    MFMA,
    SCALAR_MEMORY,
    VALU,
    VECTOR_CLASSES,
    class_of,
    fmas_of_lane,
    fmas_of_wave,
)


@dataclass(slots=True)
class MemoryTraffic:
    """Of the accesses that one instruction made: `waves` of them by `lanes` in all, which asked for
    `bytes`. Of global memory `transactions` of a segment each, and the `least` that so many lanes
    need; of shared memory `clocks`, of which `conflicts` for banks that were asked twice.
    `stride` are the bytes between the first two lanes at the first time."""

    space: str
    size: int
    is_store: bool
    is_atomic: bool
    waves: int = 0
    lanes: int = 0
    bytes: int = 0
    transactions: int = 0
    least: int = 0
    clocks: int = 0
    conflicts: int = 0
    stride: int = 0


@dataclass(slots=True)
class InstructionCounts:
    """`waves` ran it, `lanes` of them were active in all. Of accesses that do not say which memory
    they are to, `elsewhere` has those to another one than the first."""

    instruction: Instruction
    waves: int = 0
    lanes: int = 0
    access: MemoryTraffic | None = None
    elsewhere: dict[str, MemoryTraffic] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """One of CLASSES; of two instructions in one that of the more useful one."""
        space = self.access.space if self.access else ""
        found = class_of(self.instruction.mnemonic, space)
        return FMA if found == VALU and fmas_of_lane(self.instruction) else found

    @property
    def fmas(self) -> int:
        """Multiply-adds in all."""
        if self.kind == MFMA:
            return self.waves * fmas_of_wave(self.instruction)
        return self.lanes * fmas_of_lane(self.instruction)


@dataclass(slots=True)
class KernelCounts:
    """All launches of a kernel of the GPU `mcpu`, whose waves have `wave_lanes`: `groups` and
    `waves` that ran, bytes of the `segment`s of global memory that the launches `read` and
    `written`, once a launch. `grid`, `block` and the `shared_bytes` that were asked for beyond the
    kernel's own are those of the last one; `is_on_pairs` where groups are spread over two compute
    units. It begins with instruction `entry` of the `assembly`."""

    name: str
    mcpu: str
    wave_lanes: int
    segment: int
    grid: tuple[int, int, int] = (0, 0, 0)
    block: tuple[int, int, int] = (0, 0, 0)
    launches: int = 0
    groups: int = 0
    waves: int = 0
    read: int = 0
    written: int = 0
    shared_bytes: int = 0
    is_on_pairs: bool = False
    assembly: Assembly | None = None
    entry: int = 0
    by_number: dict[int, InstructionCounts] = field(default_factory=dict)

    def __str__(self) -> str:
        ran = ", ".join(f"{count} {kind}" for kind, count in self.by_class().items())
        return f"{self.name}: {self.fmas} multiply-adds; instructions of waves: {ran}"

    @property
    def instructions(self) -> list[InstructionCounts]:
        """Those that ran, in the order of their addresses."""
        return [self.by_number[number] for number in sorted(self.by_number)]

    def listing(self) -> list[InstructionCounts]:
        """All instructions of the kernel, and those of functions that it called, by address."""
        if self.assembly is None:
            return self.instructions
        names, numbers = [], set(self.by_number)
        for number in range(self.entry, len(self.assembly)):
            address = self.assembly.instruction(number).address
            if number != self.entry and address in self.assembly.symbols:
                break
            names.append(self.assembly.mnemonic(number))
        last = max(
            (n for n, name in enumerate(names) if name == "s_endpgm"), default=-1
        )
        numbers |= set(range(self.entry, self.entry + last + 1))
        return [
            self._counted(self.assembly.instruction(number))
            for number in sorted(numbers)
        ]

    def _counted(self, instruction: Instruction) -> InstructionCounts:
        return self.by_number.get(instruction.number) or InstructionCounts(instruction)

    def by_class(self) -> dict[str, int]:
        """How many instructions of waves were of each class that occurred."""
        found: Counter[str] = Counter()
        for one in self.instructions:
            found[one.kind] += one.waves
        return dict(found)

    def inner_loop(self) -> dict[str, int]:
        """How many instructions of each class stand in the code that ran most often."""
        most = max((one.waves for one in self.instructions), default=0)
        found = Counter(one.kind for one in self.instructions if one.waves == most)
        return {kind: found[kind] for kind in CLASSES if kind in found}

    def by_source(self) -> dict[str, int]:
        """How many instructions of waves came from each source line, as the code object tells."""
        found: Counter[str] = Counter()
        for one in self.instructions:
            found[one.instruction.source] += one.waves
        return dict(found)

    def accesses(self, space: str) -> Iterator[InstructionCounts]:
        """The instructions that access a memory (`global`, `shared`, `private`), but scalar ones,
        which go another way."""
        for one in self.instructions:
            if one.access and one.access.space == space and one.kind != SCALAR_MEMORY:
                yield one
            elif space in one.elsewhere:
                yield replace(one, access=one.elsewhere[space])

    @property
    def fmas(self) -> int:
        """Multiply-adds of lanes in all."""
        return sum(one.fmas for one in self.instructions)

    @property
    def active_lanes(self) -> float:
        """Of the lanes of vector instructions, the part that was active."""
        vectors = [one for one in self.instructions if one.kind in VECTOR_CLASSES]
        waves = sum(one.waves for one in vectors)
        return (
            sum(one.lanes for one in vectors) / (waves * self.wave_lanes)
            if waves
            else 1.0
        )

"""The numbers of a profile: for an instruction, for its accesses to memory, for a kernel.

All counts are exact for the observed launches. `transactions` and clocks of banks follow from
addresses by the models of coalescing.py and banks.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from refcomp.emulator.machine.observation import AddressSpace
from refcomp.emulator.observers.counting.instruction_set import (
    CountedInstruction,
    InstructionSet,
)
from refcomp.emulator.observers.counting.mnemonics import AMD
from refcomp.foundation.counted import counted


@dataclass(slots=True)
class MemoryTraffic:
    """The accesses of one instruction to one memory."""

    space: AddressSpace
    size: int  # bytes of a lane
    is_store: bool
    is_atomic: bool
    waves: int = 0  # accesses, each of one wave
    lanes: int = 0  # active lanes of all accesses
    # Of all lanes. In global memory, bytes that lanes of an access share count once.
    bytes: int = 0
    transactions: int = 0  # global memory: segments that were touched
    least: int = 0  # global memory: transactions that so many bytes need
    clocks: int = 0  # shared memory: see banks.py
    conflicts: int = 0  # shared memory: clocks because of bank conflicts
    stride: int = 0  # bytes between the first two lanes of the first access


@dataclass(slots=True)
class InstructionCounts:
    """The runs of one instruction, and its accesses to memory."""

    instruction: CountedInstruction
    waves: int = 0  # that ran it
    lanes: int = 0  # active lanes of these waves
    access: MemoryTraffic | None = None  # to the memory of its first access
    # To other memories, by space: only flat accesses have several.
    elsewhere: dict[str, MemoryTraffic] = field(default_factory=dict)
    isa: InstructionSet = AMD

    @property
    def kind(self) -> str:
        """Instruction class, one of `isa.classes`."""
        space = self.access.space if self.access else ""
        return self.isa.class_of(self.instruction, space)

    @property
    def fmas(self) -> int:
        """Multiply-adds of all waves that ran the instruction."""
        return self.isa.fmas(self.instruction, self.kind, self.waves, self.lanes)


@dataclass(slots=True)
class KernelCounts:
    """Counts of all launches of a kernel.

    A wave is a warp of an NVIDIA GPU, and a group a block; a segment is a sector.
    """

    name: str
    mcpu: str  # the GPU, such as gfx942 or sm_90
    wave_lanes: int  # lanes of a wave
    segment: int  # bytes of a segment of global memory
    grid: tuple[int, int, int] = (0, 0, 0)  # groups of the last launch
    block: tuple[int, int, int] = (0, 0, 0)  # threads of a group, in the last launch
    launches: int = 0
    groups: int = 0  # of all launches
    waves: int = 0  # of all launches
    read: int = 0  # bytes of segments of global memory, each counted once a launch
    written: int = 0  # likewise
    shared_bytes: int = 0  # of the last launch, in addition to the kernel's own
    is_on_pairs: bool = False  # a group runs on a pair of compute units
    by_number: dict[int, InstructionCounts] = field(default_factory=dict)
    # Returns all instructions of the kernel by number; None if only those that ran are known.
    code: Callable[[], Mapping[int, CountedInstruction]] | None = None
    isa: InstructionSet = AMD

    def __str__(self) -> str:
        ran = ", ".join(f"{count} {kind}" for kind, count in self.by_class().items())
        waves = f"{self.isa.words.wave}s"
        work = counted(self.fmas, "multiply-add")
        return f"{self.name}: {work}; instructions of {waves}: {ran}"

    @property
    def instructions(self) -> list[InstructionCounts]:
        """The instructions that ran, in the order of their addresses."""
        return [self.by_number[number] for number in sorted(self.by_number)]

    def listing(self) -> list[InstructionCounts]:
        """Return all instructions of the kernel, and those that ran in called functions.

        They are in the order of their addresses.
        """
        whole = self.code() if self.code is not None else {}
        found = []
        for number in sorted({*self.by_number, *whole}):
            counts = self.by_number.get(number)
            found.append(counts or InstructionCounts(whole[number], isa=self.isa))
        return found

    def by_class(self) -> dict[str, int]:
        """Return how many instructions of waves ran, by class."""
        found: Counter[str] = Counter()
        for one in self.instructions:
            found[one.kind] += one.waves
        return dict(found)

    def inner_loop(self) -> dict[str, int]:
        """Return how many instructions the most frequent code has, by class."""
        most = max((one.waves for one in self.instructions), default=0)
        found = Counter(one.kind for one in self.instructions if one.waves == most)
        return {kind: found[kind] for kind in self.isa.classes if kind in found}

    def by_source(self) -> dict[str, int]:
        """Return how many instructions of waves ran, by source line ("" if not known)."""
        found: Counter[str] = Counter()
        for one in self.instructions:
            found[one.instruction.source] += one.waves
        return dict(found)

    def accesses(self, space: AddressSpace) -> Iterator[InstructionCounts]:
        """Yield the instructions that access a memory ("global", "shared" or "private").

        Loads that have caches of their own are left out.
        """
        for one in self.instructions:
            is_cached = one.kind in self.isa.cached
            if one.access and one.access.space == space and not is_cached:
                yield one
            elif space in one.elsewhere:
                yield replace(one, access=one.elsewhere[space])

    @property
    def fmas(self) -> int:
        """Multiply-adds of all lanes."""
        return sum(one.fmas for one in self.instructions)

    @property
    def matrix_part(self) -> float:
        """The fraction of the multiply-adds that matrix or tensor cores do."""
        by_cores = sum(
            one.fmas for one in self.instructions if one.kind == self.isa.matrix
        )
        return by_cores / self.fmas if by_cores else 0.0

    @property
    def atomic_updates(self) -> int:
        """Atomic updates of global and shared memory by all lanes."""
        return sum(
            access.lanes
            for one in self.instructions
            for access in (one.access, *one.elsewhere.values())
            if access is not None and access.is_atomic
        )

    @property
    def active_lanes(self) -> float:
        """The fraction of lanes that were active in vector instructions."""
        vectors = [one for one in self.instructions if one.kind in self.isa.of_lanes]
        waves = sum(one.waves for one in vectors)
        if not waves:
            return 1.0
        return sum(one.lanes for one in vectors) / (waves * self.wave_lanes)

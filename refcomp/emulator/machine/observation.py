"""The interface of observers, which see what waves do while a kernel runs.

An observer is given with a launch, or with a GPU for all its launches. It sees each instruction,
each memory access, each barrier and each batch of waves, and changes nothing. It reports findings
by `waves.report`, or keeps counts of its own. Without observers none of this costs time: blocks of
instructions are bound separately for observed launches, and an access tests `observers` once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.machine.arrays import Array, Mask, Offsets

# A `Waves`. Its module imports this one, so that it cannot be named here.
ObservedWaves: TypeAlias = Any

_KIND = re.compile(r"_(?:(load|read)|(store|write))(?:2|2st64)?_")


# Memory of the device, of a group, and of a lane.
AddressSpace = Literal["global", "shared", "private"]


@dataclass(frozen=True, slots=True)
class Access:
    """A memory access of one instruction, without the lanes that are out of bounds.

    An instruction that reads or writes two places makes two accesses. A scalar load is made by the
    first lane of each wave.
    """

    instruction: Instruction
    space: AddressSpace
    is_store: bool
    is_atomic: bool  # neither load nor store
    size: int  # bytes that each lane accesses
    # Flat, one for each lane of `active`. Global: the address less `BASE`; otherwise the offset in
    # `waves.shared` or `waves.private`, which hold the memory of all groups and lanes.
    index: Offsets
    active: Mask | None  # [wave, lane] of the running waves; None: all lanes


class Observer:
    """An observer that ignores everything; a real one overrides what it needs.

    In all methods, `waves.rows` and `waves.mask` are those of the running waves.
    """

    def launched(self, loaded: Any, request: Any) -> None:
        """See that a launch begins: a `LoadedCode` and a `LaunchRequest`."""

    def began(self, waves: ObservedWaves) -> None:
        """See that a batch of waves begins, after all its registers are set."""

    def instruction(self, waves: ObservedWaves, instruction: Instruction) -> None:
        """See any instruction that is about to run, also one without effect or at a block's end."""

    def access(self, waves: ObservedWaves, access: Access) -> None:
        """See a load, store or atomic that is about to be made."""

    def barrier(self, waves: ObservedWaves, rows: Array) -> None:
        """See that the waves numbered `rows`, which waited at barriers, go on together."""

    def ended(self, waves: ObservedWaves) -> None:
        """See that all waves of the batch have ended."""


def show_instruction(instruction: Instruction) -> Callable[[ObservedWaves], None]:
    """Return a function that shows the instruction, about to run, to all observers."""

    def show(waves: ObservedWaves) -> None:
        for observer in waves.around.observers:
            observer.instruction(waves, instruction)

    return show


class AccessKind(NamedTuple):
    """The way an instruction accesses memory: it loads, stores, or updates as an atomic."""

    is_store: bool
    is_atomic: bool  # neither load nor store

    @property
    def is_load(self) -> bool:
        return not (self.is_store or self.is_atomic)


@cache
def kind_of_access(mnemonic: str) -> AccessKind:
    """Return how an instruction accesses memory, by its name."""
    match = _KIND.search(mnemonic)
    return AccessKind(match is not None and match[2] is not None, match is None)

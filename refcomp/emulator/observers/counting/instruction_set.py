"""Descriptions of the instructions of a kind of GPU, as a profile counts them, and its words.

`mnemonics.py` has those of AMD GPUs, `refcomp/emulator/ptx/observers/opcodes.py` those of PTX.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.machine.observation import AddressSpace


class CountedInstruction(Protocol):
    """An instruction, as counts show it."""

    @property
    def text(self) -> str:
        """The instruction as it is printed."""

    @property
    def mnemonic(self) -> str:
        """Its name, with modifiers."""

    @property
    def number(self) -> int:
        """Its place among all instructions of its file."""

    @property
    def source(self) -> str:
        """The source line that it was made of, such as `kernels.ir:12`; "" if not known."""


class CountedAccess(Protocol):
    """A memory access of the lanes of some waves."""

    @property
    def space(self) -> AddressSpace:
        """The memory."""

    @property
    def is_store(self) -> bool:
        """True if it only writes."""

    @property
    def is_atomic(self) -> bool:
        """True if it reads and writes."""

    @property
    def size(self) -> int:
        """Bytes of each lane."""

    @property
    def index(self) -> Array:
        """Offsets in bytes, one for each lane of `active`."""

    @property
    def active(self) -> Mask | None:
        """The lanes that take part, [wave, lane]; None: all of them."""


@dataclass(frozen=True, slots=True)
class GpuWords:
    """The words of a vendor for the parts of a GPU and of a launch."""

    wave: str  # lanes that run together: wave, warp
    group: str  # threads that share memory: group, block
    unit: str  # compute unit, multiprocessor
    simd: str  # SIMD, scheduler
    segment: str  # what global memory moves at a time: segment, sector
    transaction: str  # the move of one of these: transaction, sector
    shared: str  # shared memory
    code: str  # the text of instructions: ISA, PTX


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """The instructions of a kind of GPU.

    Attributes:
        words: of the vendor.
        classes: of instructions, in the order in which tables list them.
        multiply: the class of multiply-adds that each lane does.
        matrix: the class of instructions that multiply matrices.
        arithmetic: classes of all other instructions that compute.
        overhead: classes of instructions that count loops, branch and wait.
        spilled: the class of accesses to a lane's own memory.
        of_lanes: classes whose instructions may leave out lanes.
        cached: classes of loads that have a cache of their own, and do not count as transactions.
        class_of: returns the class of an instruction that accesses a space, "" for none.
        fmas: returns the multiply-adds of an instruction of a class that ran in so many waves and
            lanes.
        product, sum: match names of instructions that only multiply or only add floats.
    """

    words: GpuWords
    classes: tuple[str, ...]
    multiply: str
    matrix: str
    arithmetic: frozenset[str]
    overhead: frozenset[str]
    spilled: str
    of_lanes: frozenset[str]
    cached: frozenset[str]
    class_of: Callable[[Any, str], str]
    fmas: Callable[[Any, str, int, int], int]
    product: re.Pattern[str]
    sum: re.Pattern[str]

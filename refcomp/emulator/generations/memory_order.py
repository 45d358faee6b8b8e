"""How a GPU has groups learn of each other's writes: instructions, and marks on accesses.

A wave that has written, written its caches back and waited for both may tell others of it by an
update of memory; who reads that update and then drops what it has in its caches sees the writes.
RDNA drops them from the outside in: first what an array of units shares, then each unit's own,
which the waves of one group must drop after a barrier, too, where they are on both units of a pair.
(Up to LLVM 16 fences of the whole device have it the other way round, and are told of.)
Source: LLVM's "User Guide for AMDGPU Backend", memory models of these GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.code_object import Descriptor


@dataclass(frozen=True, slots=True)
class CacheInstruction:
    """An instruction that writes back or drops what a cache holds."""

    mnemonic: str
    # The modifier that it must have, such as "sc1"; "": none.
    mark: str = ""

    def is_same(self, instruction: Instruction) -> bool:
        """Return True if `instruction` is this one, with its mark."""
        if instruction.mnemonic != self.mnemonic:
            return False
        return not self.mark or self.mark in instruction.text.split()


@dataclass(frozen=True, slots=True)
class MemoryOrder:
    """How waves of a GPU see each other's writes."""

    # Writes caches back for the whole device; None: nothing needs to be written back.
    writes_back: CacheInstruction | None
    # Drops what caches hold, for the whole device.
    drops: CacheInstruction
    # Modifiers of atomic loads, and of atomic stores where `are_stores_marked`.
    marks: frozenset[str]
    # Those of them by which an access is atomic for all groups, not only within one.
    far_marks: frozenset[str]
    are_stores_marked: bool
    # The waves of a group share one cache, unless a kernel asks for them to be split.
    is_in_order: bool
    # Must follow `drops` where each unit has a cache of its own besides, and drops that.
    drops_own: CacheInstruction | None = None

    def has_stale_reads(self, descriptor: Descriptor) -> bool:
        """Whether a wave may read from its own cache what was there before another wave of its
        group wrote, even after a barrier."""
        return self.drops_own is not None and descriptor.is_on_pairs

    def keeps_order(self, descriptor: Descriptor) -> bool:
        """Whether what a group's waves have reach memory keeps its order at barriers even if
        nothing was waited for: it goes through one cache, unless a kernel has waves on both units
        of a pair."""
        return self.is_in_order or not descriptor.is_on_pairs

    def is_split(self, descriptor: Descriptor) -> bool:
        """Whether a kernel has the waves of a group run on several compute units of CDNA."""
        return self.is_in_order and bool(descriptor.rsrc3 >> 16 & 1)

    def is_write_back(self, instruction: Instruction) -> bool:
        return self.writes_back is not None and self.writes_back.is_same(instruction)

    def is_drop(self, instruction: Instruction) -> bool:
        return self.drops.is_same(instruction)

    def is_drop_of_own(self, instruction: Instruction) -> bool:
        return self.drops_own is not None and self.drops_own.is_same(instruction)

    def is_marked(self, instruction: Instruction) -> bool:
        """Whether a load or store is an atomic one."""
        return not self.marks.isdisjoint(instruction.modifiers)

    def is_for_all(self, instruction: Instruction) -> bool:
        """Whether what is marked is atomic for all groups of the device."""
        return not self.far_marks.isdisjoint(instruction.modifiers)


_GLC = frozenset(("glc",))
# sc0 alone is for a group, sc1 for the device, both for the system.
GFX942_ORDER = MemoryOrder(
    writes_back=CacheInstruction("buffer_wbl2", "sc1"),
    drops=CacheInstruction("buffer_inv", "sc1"),
    marks=frozenset(("sc0", "sc1")),
    far_marks=frozenset(("sc1",)),
    are_stores_marked=True,
    is_in_order=True,
)
GFX90A_ORDER = MemoryOrder(
    writes_back=None,
    drops=CacheInstruction("buffer_wbinvl1_vol"),
    marks=_GLC,
    far_marks=_GLC,
    are_stores_marked=False,
    is_in_order=True,
)
GFX11_ORDER = MemoryOrder(
    writes_back=None,
    drops=CacheInstruction("buffer_gl1_inv"),
    marks=_GLC,
    far_marks=_GLC,
    are_stores_marked=False,
    is_in_order=False,
    drops_own=CacheInstruction("buffer_gl0_inv"),
)

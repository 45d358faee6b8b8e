"""The rules by which waves see each other's writes: cache instructions, modifiers of atomics.

To release, a wave writes, writes its caches back, waits for both, and atomically updates memory. To
acquire, another wave reads that update and then invalidates its caches. RDNA has two levels to
invalidate, the outer one first: the cache of an array of units (gl1), then the cache of each unit
(gl0). If a group runs on both units of a pair, its waves must also invalidate gl0 after a barrier.

Up to LLVM 16, fences of the whole device invalidate in the wrong order, and are reported.

Source: LLVM's "User Guide for AMDGPU Backend", memory models of these GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.code_object import Descriptor


@dataclass(frozen=True, slots=True)
class CacheInstruction:
    """An instruction that writes back or invalidates a cache."""

    mnemonic: str
    modifier: str = ""  # that it must have, such as "sc1"; "" for none

    def matches(self, instruction: Instruction) -> bool:
        """Return True if `instruction` is this one, with its modifier."""
        if instruction.mnemonic != self.mnemonic:
            return False
        return not self.modifier or self.modifier in instruction.text.split()


@dataclass(frozen=True, slots=True)
class MemoryOrder:
    """The rules by which waves of a GPU see each other's writes."""

    # Writes caches back for the whole device; None if stores go through.
    writes_back: CacheInstruction | None
    # Invalidates caches for the whole device.
    invalidates: CacheInstruction
    # Modifiers of atomic loads, and of atomic stores where `are_stores_marked`.
    atomic_modifiers: frozenset[str]
    # Those that make an access atomic for the whole device, not only within a group.
    device_modifiers: frozenset[str]
    # Machine code distinguishes atomic stores from plain ones.
    are_stores_marked: bool
    # The waves of a group share one cache, unless a kernel asks for them to be split.
    has_group_cache: bool
    # Invalidates the cache of a wave's own unit, where that is another one. It follows
    # `invalidates`.
    invalidates_own: CacheInstruction | None = None

    def has_stale_reads(self, descriptor: Descriptor) -> bool:
        """Return True if a wave may read stale data from its own cache after a barrier."""
        return self.invalidates_own is not None and descriptor.is_on_pairs

    def keeps_order(self, descriptor: Descriptor) -> bool:
        """Return True if accesses of a group keep their order at barriers without waits.

        They do if they go through one cache.
        """
        return self.has_group_cache or not descriptor.is_on_pairs

    def is_split(self, descriptor: Descriptor) -> bool:
        """Return True if the waves of a group run on several compute units of CDNA."""
        return self.has_group_cache and bool(descriptor.rsrc3 >> 16 & 1)

    def is_write_back(self, instruction: Instruction) -> bool:
        return self.writes_back is not None and self.writes_back.matches(instruction)

    def is_invalidation(self, instruction: Instruction) -> bool:
        return self.invalidates.matches(instruction)

    def is_own_invalidation(self, instruction: Instruction) -> bool:
        return self.invalidates_own is not None and self.invalidates_own.matches(
            instruction
        )

    def is_atomic(self, instruction: Instruction) -> bool:
        """Return True for a load or store that is marked as atomic."""
        return not self.atomic_modifiers.isdisjoint(instruction.modifiers)

    def is_for_device(self, instruction: Instruction) -> bool:
        """Return True if an atomic load or store is atomic for the whole device."""
        return not self.device_modifiers.isdisjoint(instruction.modifiers)


_GLC = frozenset(("glc",))
# sc0 alone is for a group, sc1 for the device, both for the system.
GFX942_ORDER = MemoryOrder(
    writes_back=CacheInstruction("buffer_wbl2", "sc1"),
    invalidates=CacheInstruction("buffer_inv", "sc1"),
    atomic_modifiers=frozenset(("sc0", "sc1")),
    device_modifiers=frozenset(("sc1",)),
    are_stores_marked=True,
    has_group_cache=True,
)
GFX90A_ORDER = MemoryOrder(
    writes_back=None,
    invalidates=CacheInstruction("buffer_wbinvl1_vol"),
    atomic_modifiers=_GLC,
    device_modifiers=_GLC,
    are_stores_marked=False,
    has_group_cache=True,
)
GFX11_ORDER = replace(
    GFX90A_ORDER,
    invalidates=CacheInstruction("buffer_gl1_inv"),
    has_group_cache=False,
    invalidates_own=CacheInstruction("buffer_gl0_inv"),
)

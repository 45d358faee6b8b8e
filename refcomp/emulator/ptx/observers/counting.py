"""The observer that counts what kernels launched on NVIDIA GPUs do.

profile = Profile()
launch(loaded, PtxLaunch(..., observers=(ThreadCounting(profile, "sm_90"),)))
profile.kernels[0].fmas

An instruction counts once for a warp each time that some of its threads reach it together. Lanes
whose predicate is False do not count. Global memory moves sectors of 32 bytes (NVIDIA, Nsight
Compute, "Kernel Profiling Guide", section "L1/TEX Cache").

`wmma.load` and `wmma.store` move the elements of a warp at once: each sector and each word of a
bank counts once. A GPU may do more, since the ISA does not say which lane holds which element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.machine.observation import AddressSpace
from refcomp.emulator.observers.counting import KernelCounts, Profile
from refcomp.emulator.observers.counting.profile import recorder_of
from refcomp.emulator.ptx.machine.findings import Extents
from refcomp.emulator.ptx.machine.observation import (
    ObservedThreads,
    PtxObserver,
    SpaceAccess,
)
from refcomp.emulator.ptx.machine.threads import WARP
from refcomp.emulator.ptx.observers.opcodes import PTX, CountedPtx
from refcomp.emulator.ptx.text.module import PtxInstruction, PtxModule

SECTOR = 32  # bytes that global memory moves at a time


@dataclass(frozen=True, slots=True)
class _WarpAccess:
    """An access of some warps; see `CountedAccess`."""

    space: AddressSpace
    is_store: bool
    is_atomic: bool
    size: int
    index: Array
    active: Mask | None


class ThreadCounting(PtxObserver):
    """Fills a profile with the counts of all launches that it observes.

    Args:
        profile: the profile.
        gpu: the GPU whose kernels are counted, such as sm_90.
    """

    def __init__(self, profile: Profile, gpu: str) -> None:
        self._recorder = recorder_of(profile)
        self._gpu = gpu
        # By the id of a module. A listing keeps its module alive, so no other module gets this id.
        self._listings: dict[int, _ModuleListing] = {}
        # Space -> the offsets of the parts of an access that were seen so far.
        self._parts: dict[str, list[Array]] = {}

    def launched(
        self, module: PtxModule, grid: Extents, block: Extents, extent: int
    ) -> None:
        found = self._listings.get(id(module))
        if found is None:
            found = self._listings[id(module)] = _ModuleListing(module)
        self._listing = found
        self._is_new = True

    def began(self, threads: ObservedThreads) -> None:
        around = threads.around
        if self._is_new:
            self._is_new = False
            listing = self._listing
            counts = self._recorder.begin(
                listing.module,
                around.kernel,
                lambda: _counts_of(listing, around.kernel, self._gpu),
            )
            counts.grid = around.grid
            counts.block = around.block
            counts.shared_bytes = around.dynamic_bytes
        current = self._recorder.current
        current.groups += len(threads.blocks)
        current.waves += threads.count // WARP

    def ran(
        self,
        threads: ObservedThreads,
        instructions: Sequence[PtxInstruction],
        warps: int,
    ) -> None:
        lanes = threads.size()
        for instruction in instructions:
            self._recorder.ran(self._listing.counted(instruction), warps, lanes)

    def skipped(
        self, threads: ObservedThreads, instruction: PtxInstruction, count: int
    ) -> None:
        self._recorder.ran(self._listing.counted(instruction), 0, -count)

    def accessed(self, threads: ObservedThreads, access: SpaceAccess) -> None:
        instruction = access.instruction
        is_atomic = instruction.opcode in ("atom", "red")
        whole = self._whole(access)
        if whole is None:
            return
        numbers, offsets = access.numbers, whole
        exists = threads.exists[numbers]
        if not exists.all():
            numbers, offsets = numbers[exists], offsets[exists]
        if not len(numbers):
            return
        active = _active(numbers)
        if active is not None and access.parts > 1:
            active = np.repeat(active, access.parts, axis=1)
        found = _WarpAccess(
            space="global" if access.space == "global" else "shared",
            is_store=access.is_store and not is_atomic,
            is_atomic=is_atomic,
            size=access.size,
            index=offsets.reshape(-1),
            active=active,
        )
        self._recorder.accessed(
            self._listing.counted(instruction), found, parts=access.parts
        )

    def _whole(self, access: SpaceAccess) -> Array | None:
        """Return the offsets of all parts, [thread, part]; None before the last part."""
        parts = self._parts.setdefault(access.space, [])
        if not access.part:
            parts.clear()
        parts.append(access.offsets)
        if access.part < access.parts - 1:
            return None
        # A fragment with a part in another space is out of bounds. It is not counted.
        if len(parts) != access.parts or len({len(one) for one in parts}) > 1:
            return None
        return np.stack(parts, axis=-1)


class _ModuleListing:
    """The instructions of a module, numbered function by function."""

    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.of_function: dict[str, dict[int, CountedPtx]] = {}
        self._counted: dict[int, CountedPtx] = {}  # by the id of the instruction
        number = 0
        for function in module.functions.values():
            listed: dict[int, CountedPtx] = {}
            for instruction in function.instructions:
                listed[number] = _counted(instruction, number)
                self._counted[id(instruction)] = listed[number]
                number += 1
            self.of_function[function.name] = listed

    def counted(self, instruction: PtxInstruction) -> CountedPtx:
        """Return the entry of an instruction of the module in the counts."""
        return self._counted[id(instruction)]


def _counted(instruction: PtxInstruction, number: int) -> CountedPtx:
    location = instruction.location
    if location is not None and location.caller is not None:
        location = location.caller
    source = "" if location is None else f"{location.file}:{location.line}"
    return CountedPtx(
        instruction.text, number, source, instruction.opcode, instruction.modifiers
    )


def _counts_of(listing: _ModuleListing, kernel: str, gpu: str) -> KernelCounts:
    """Return the counts of a kernel that has not run."""

    def code() -> Mapping[int, CountedPtx]:
        return listing.of_function[kernel]

    return KernelCounts(
        kernel, mcpu=gpu, wave_lanes=WARP, segment=SECTOR, code=code, isa=PTX
    )


def _active(numbers: Array) -> Mask | None:
    """Return True for the lanes of some threads, [warp, lane]; None: all lanes of their warps.

    Warps without any of these threads are left out. `numbers` are in order.
    """
    warps = numbers // WARP
    starts = np.flatnonzero(np.diff(warps, prepend=-1))
    if len(numbers) == WARP * len(starts):
        return None
    rows = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(numbers)))
    active: Mask = np.zeros((len(starts), WARP), np.bool_)
    active[rows, numbers % WARP] = True
    return active

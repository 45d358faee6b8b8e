"""A profile: the counts of all kernels that ran on an emulated GPU, whatever its kind.

An observer of the GPU fills its recorder: `WaveCounting` on AMD GPUs, `ThreadCounting` on NVIDIA
GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.observers.counting.banks import count_clocks
from refcomp.emulator.observers.counting.coalescing import (
    TouchedSegments,
    count_segments,
    least_segments,
    requested_bytes,
)
from refcomp.emulator.observers.counting.counts import (
    InstructionCounts,
    KernelCounts,
    MemoryTraffic,
)
from refcomp.emulator.observers.counting.instruction_set import (
    CountedAccess,
    CountedInstruction,
)
from refcomp.foundation.errors import UserError


class _KernelKey(NamedTuple):
    """A kernel of loaded code."""

    loaded: int  # id of the loaded code
    name: str


class KernelsThatRan(tuple[KernelCounts, ...]):
    """The kernels of a Profile: a tuple in which an index is explained if no kernel ran."""

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> KernelCounts: ...
    @overload
    def __getitem__(
        self, index: slice[Any, Any, Any], /
    ) -> tuple[KernelCounts, ...]: ...
    def __getitem__(
        self, index: SupportsIndex | slice[Any, Any, Any], /
    ) -> KernelCounts | tuple[KernelCounts, ...]:
        if not self and not isinstance(index, slice):
            raise UserError(
                "no kernel ran while the profile counted",
                why="a device counts only if it was made with the profile, and only kernels on "
                "its own arrays; a function on empty arrays launches none",
                remedy="make the device by rocm_emulator(profile=...) or "
                "cuda_emulator(profile=...), and call the function with arrays on that device",
            )
        return super().__getitem__(index)


class Profile:
    """Counts of all kernels that run on an emulated GPU. Launches of a kernel are added up.

    Pass it to `rocm_emulator(profile=...)` or `cuda_emulator(profile=...)`. `refcomp.profile`
    estimates times from the counts.

    Args:
        *given: nothing. An argument is refused: pass the profile to the device instead.

    Raises:
        UserError: an argument is given.

    Example::

        >>> profile = rc.Profile()
        >>> A = rc.placeholder((64,), name="A")
        >>> B = rc.compute((64,), lambda i: A[i] + 1.0, name="B")
        >>> s = rc.create_schedule(B)
        >>> s[B].bind(B.op.axis[0], rc.thread_axis("threadIdx.x"))
        >>> increment = rc.build(s, [A, B], target="rocm -mcpu=gfx942", name="increment")
        >>> gpu = rc.rocm_emulator("gfx942", profile=profile)
        >>> a, b = rc.array(np.ones(64, "float32"), gpu), rc.empty(64, device=gpu)
        >>> increment(a, b)
        >>> (counts,) = profile.kernels
        >>> counts.name, counts.launches, counts.waves, counts.written  # bytes
        ('increment_kernel0', 1, 1, 256)
    """

    def __init__(self, *given: object) -> None:
        if given:
            raise UserError(
                "a Profile takes no arguments",
                where=f"Profile({', '.join(map(repr, given))})",
                why="it counts the kernels that run while it observes",
                remedy="write Profile(), and pass it on: rocm_emulator(..., profile=it)",
            )
        self._recorder = CountRecorder()

    @property
    def kernels(self) -> tuple[KernelCounts, ...]:
        """The kernels in the order of their first launches.

        If none ran, an index raises UserError with the reasons that are likely.
        """
        return KernelsThatRan(self._recorder.kernels)

    def __str__(self) -> str:
        """Return a line for each kernel."""
        return "\n".join(map(str, self.kernels)) or "no kernel ran"


def recorder_of(profile: Profile) -> CountRecorder:
    """Return the recorder of a profile, which observers fill."""
    return profile._recorder


class CountRecorder:
    """Records the counts of kernels, launch by launch."""

    def __init__(self) -> None:
        self._kernels: dict[_KernelKey, KernelCounts] = {}
        # Kept alive, so that no other code gets the same id.
        self._loaded: list[object] = []
        self._current = KernelCounts("", "", 64, 128)
        # What the current launch has touched.
        self._read = TouchedSegments(self._current.segment)
        self._written = TouchedSegments(self._current.segment)

    @property
    def kernels(self) -> tuple[KernelCounts, ...]:
        """The kernels in the order of their first launches."""
        self._close()
        return tuple(self._kernels.values())

    @property
    def current(self) -> KernelCounts:
        """The kernel that runs."""
        return self._current

    def begin(
        self, loaded: object, name: str, make: Callable[[], KernelCounts]
    ) -> KernelCounts:
        """Begin a launch, and return the counts of its kernel.

        Args:
            loaded: the code that holds the kernel.
            name: of the kernel.
            make: returns the counts of the kernel before its first launch.
        """
        self._close()
        key = _KernelKey(id(loaded), name)
        if key not in self._kernels:
            self._loaded.append(loaded)
            self._kernels[key] = make()
        self._current = self._kernels[key]
        self._current.launches += 1
        self._read = TouchedSegments(self._current.segment)
        self._written = TouchedSegments(self._current.segment)
        return self._current

    def ran(self, instruction: CountedInstruction, waves: int, lanes: int) -> None:
        """Count an instruction that ran in so many waves, and lanes of these."""
        counts = self._of(instruction)
        counts.waves += waves
        counts.lanes += lanes

    def accessed(
        self,
        instruction: CountedInstruction,
        access: CountedAccess,
        *,
        is_paired: bool = False,
        parts: int = 1,
    ) -> None:
        """Count an access of an instruction.

        Args:
            instruction: the instruction.
            access: its access.
            is_paired: as in `count_clocks`.
            parts: items that each lane moves, each at an address of its own. Then `access` has
                the size of one, and offsets of all of them, lane by lane.
        """
        counts = self._of(instruction)
        found = _counts_of_access(counts, access, parts)
        index = _by_wave(access, self._current.wave_lanes * parts)
        requested = requested_bytes(index, access.active, access.size)
        found.waves += int(np.count_nonzero(requested))
        found.lanes += access.index.size // parts
        is_union = access.space == "global" or parts > 1
        if is_union:
            found.bytes += int(requested.sum())
        else:
            found.bytes += access.index.size * access.size
        if counts.kind in self._current.isa.cached:
            self._read.add(access.index, access.size)
        elif access.space == "global":
            self._count_global(found, access, index)
            found.least += least_segments(requested, self._current.segment)
        elif access.space == "shared":
            # The start of a group's memory rotates the banks, which changes no count.
            clocks, least = count_clocks(
                index,
                access.active,
                access.size,
                is_paired=is_paired,
                is_atomic=access.is_atomic,
                is_whole=parts > 1,
            )
            found.clocks += clocks
            found.conflicts += clocks - least

    # Counting.

    def _of(self, instruction: CountedInstruction) -> InstructionCounts:
        counts = self._current.by_number.get(instruction.number)
        if counts is None:
            counts = InstructionCounts(instruction, isa=self._current.isa)
            self._current.by_number[instruction.number] = counts
        return counts

    def _count_global(
        self, found: MemoryTraffic, access: CountedAccess, index: Array
    ) -> None:
        segment = self._current.segment
        found.transactions += count_segments(index, access.active, access.size, segment)
        if not access.is_store:
            self._read.add(access.index, access.size)
        if access.is_store or access.is_atomic:
            self._written.add(access.index, access.size)

    def _close(self) -> None:
        """Add what the last launch touched."""
        self._current.read += self._read.bytes
        self._current.written += self._written.bytes
        self._read = TouchedSegments(self._current.segment)
        self._written = TouchedSegments(self._current.segment)


def _counts_of_access(
    counts: InstructionCounts, access: CountedAccess, parts: int
) -> MemoryTraffic:
    """Return the counts of an instruction for the memory of `access`."""
    if counts.access is not None and counts.access.space == access.space:
        return counts.access
    found = counts.elsewhere.get(access.space)
    if found is not None:
        return found
    size = access.index.size
    traffic = MemoryTraffic(
        space=access.space,
        size=access.size * parts,
        is_store=access.is_store,
        is_atomic=access.is_atomic,
        stride=int(access.index[parts] - access.index[0]) if size > parts else 0,
    )
    if counts.access is None:
        counts.access = traffic
    else:
        counts.elsewhere[access.space] = traffic
    return traffic


def _by_wave(access: CountedAccess, count: int) -> Array:
    """Return the offsets as int64 [wave, item of a lane], 0 for lanes that are off."""
    if access.active is None:
        return access.index.reshape(-1, count)
    whole = np.zeros(access.active.shape, access.index.dtype)
    whole[access.active] = access.index
    return whole

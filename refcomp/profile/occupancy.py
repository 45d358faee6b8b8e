"""An estimate of how many waves of a kernel a SIMD holds at a time, for groups as launched.

`refcomp.toolchain.occupancy`, like LLVM, assumes the largest groups that a kernel could be launched
with, and the kernel's own shared memory. Here both are those of the launch. All waves of a group
begin together, so waves of a group that fits only in part do not count.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from refcomp.emulator.observers.counting import KernelCounts
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.toolchain import Occupancy, occupancy_of
from refcomp.toolchain.occupancy import SIMDS

WHOLE_GROUPS = "whole groups"
# Limits that allow only whole groups anyway.
_GROUP_LIMITS = ("shared memory", "barriers")


def waves_of_launch(kernel: KernelMetadata, counts: KernelCounts) -> Occupancy | None:
    """Return the occupancy of the last launch; None for an unknown GPU."""
    threads = prod(counts.block) if counts.launches else kernel.max_threads
    shared = kernel.shared_bytes + counts.shared_bytes
    launched = replace(kernel, max_threads=threads, shared_bytes=shared)
    found = occupancy_of(launched, counts.mcpu)
    if found is None or found.limit in _GROUP_LIMITS:
        return found
    waves_of_group = -(-threads // kernel.wavefront_size)
    groups = found.waves * SIMDS // waves_of_group
    whole = groups * waves_of_group // SIMDS
    # A group that is larger than the whole unit is beyond this estimate.
    if 0 < whole < found.waves:
        return replace(found, waves=whole, limit=WHOLE_GROUPS)
    return found

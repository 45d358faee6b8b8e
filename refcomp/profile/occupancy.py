"""How many waves of a kernel a SIMD holds at a time, of groups as they were launched.

What `refcomp.toolchain.occupancy` tells, which is what LLVM tells, goes by the largest groups that
a kernel could be launched with and its own shared memory. Here both are those of the launch, and as
groups come and go whole, waves of a group that fits only in part are not counted. An estimate.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from refcomp.emulator.observers.counting import KernelCounts
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.toolchain import Occupancy, occupancy_of
from refcomp.toolchain.occupancy import SIMDS

WHOLE_GROUPS = "whole groups"
# What is counted by groups, and thus whole, anyway.
_OF_GROUPS = ("shared memory", "barriers")


def waves_of_launch(kernel: KernelMetadata, counts: KernelCounts) -> Occupancy | None:
    """Of the last launch; None for a GPU not known."""
    threads = prod(counts.block) if counts.launches else kernel.most_threads
    shared = kernel.shared_bytes + counts.shared_bytes
    launched = replace(kernel, most_threads=threads, shared_bytes=shared)
    found = occupancy_of(launched, counts.mcpu)
    if found is None or found.limit in _OF_GROUPS:
        return found
    of_group = -(-threads // kernel.wavefront_size)
    whole = found.waves * SIMDS // of_group * of_group // SIMDS
    # Of a group that is larger than all that there is this knows nothing.
    return (
        replace(found, waves=whole, limit=WHOLE_GROUPS)
        if 0 < whole < found.waves
        else found
    )

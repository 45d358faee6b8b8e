"""The occupancy of a launch: an estimate of the number of waves that a SIMD holds at a time.

`ptxas_resources` compiles PTX to find the number of registers of a kernel on an NVIDIA GPU.

`refcomp.toolchain.occupancy`, like LLVM, assumes the largest legal groups, and the kernel's static
shared memory. Here the size of groups and the shared memory are those of the launch. All waves of a
group begin together, so a group that does not fit as a whole does not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

from refcomp import toolchain
from refcomp.driver.amd_resources import AmdResources
from refcomp.driver.nvidia_resources import NvidiaResources, launched_resources
from refcomp.emulator.observers.counting import KernelCounts
from refcomp.foundation.amd_metadata import KernelMetadata
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import RefcompError
from refcomp.profile.multiprocessor import SCHEDULERS
from refcomp.toolchain import (
    Occupancy,
    PtxasRecord,
    occupancy_of,
    read_ptxas_report,
)
from refcomp.toolchain.occupancy import SIMDS

WHOLE_GROUPS = "whole groups"
# Limits that count whole groups in any case.
_GROUP_LIMITS = ("shared memory", "barriers")
# A target in PTX that runs on one GPU, or on one family of them.
_OWN_TARGET = re.compile(rb"^\s*\.target\s+(sm_\d+[af])\b", re.MULTILINE)


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
    # The estimate does not cover a group that is larger than the whole unit.
    if 0 < whole < found.waves:
        return replace(found, waves=whole, limit=WHOLE_GROUPS)
    return found


def waves_of_simd(resources: AmdResources | NvidiaResources) -> float:
    """Return the number of waves of a SIMD, or of warps of a scheduler; 0 if it is not known."""
    if isinstance(resources, AmdResources):
        return resources.waves
    return (resources.warps or 0) / SCHEDULERS


class PtxasAnswer(NamedTuple):
    """The resources of a kernel by ptxas, or None and the text of what is missing."""

    resources: NvidiaResources | None
    lack: str = ""


def ptxas_resources(ptx: bytes, counts: KernelCounts) -> PtxasAnswer:
    """Return the resources of a kernel of a PTX file, for the blocks of its last launch.

    PTX with features of a single GPU, such as `.target sm_90a`, is compiled for that target.
    """
    target = _OWN_TARGET.search(ptx)
    records, lack = _records(ptx, target[1].decode() if target else counts.mcpu)
    for record in records:
        if record.kernel == counts.name:
            threads = prod(counts.block)
            return PtxasAnswer(launched_resources(record, threads, counts.shared_bytes))
    return PtxasAnswer(None, lack or "not known: ptxas does not report this kernel")


@lru_cache(maxsize=4)
def _records(ptx: bytes, arch: str) -> tuple[Sequence[PtxasRecord], str]:
    """Return the records of all kernels, or the text of what is missing."""
    text = Source(ptx.rstrip(b"\0").decode("utf-8", "replace"), "ptx")
    with suppress(RefcompError):
        made = toolchain.compile_with_report(
            text, {"arch": arch}, "cubin", description="ptxas"
        )
        return read_ptxas_report(made.report), ""
    with suppress(RefcompError):
        toolchain.find_tools(toolchain.load_description("ptxas"))
        return (), f"not known: ptxas does not compile this PTX for {arch}"
    return (), "not known without ptxas"

"""NVIDIA's GPUs as targets, whatever text the kernels are compiled from: options and resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from refcomp.driver.backend import CompiledFunctions
from refcomp.driver.backends.loading import device_of
from refcomp.driver.kernel_resources import unknown_resources
from refcomp.driver.nvidia_resources import (
    NvidiaResources,
    explain_failure,
    launched_shared_bytes,
    read_resources,
    warn_of_slow_kernels,
)
from refcomp.driver.steps import kernels_of
from refcomp.foundation.compute_capability import archs_of, capability_of
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.own_targets import DEFAULT_CUDA_ARCH
from refcomp.foundation.target import Target
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.ir.func import PrimFunc, Program
from refcomp.runtime.cuda.driver import USUAL_LIMITS, CudaDriver
from refcomp.toolchain import ReportedBinary, max_shared_bytes

# Key of ptxas's report among the texts of some code.
REPORT = "ptxas"
# Shared memory that a block may have on every GPU.
_MIN_SHARED_BYTES = 48 << 10


def arch_of(target: Target) -> str:
    """Return the architecture that the target names, the oldest if it names several.

    By default it is that of this machine's GPU.
    """
    return min(all_archs_of(target), key=capability_of)


def all_archs_of(target: Target) -> tuple[str, ...]:
    """Return the architectures that the target names, by default that of this machine's GPU."""
    if arch := target.option("arch", ""):
        return archs_of(arch)
    device = device_of(target)
    if not device.exist:
        return (DEFAULT_CUDA_ARCH,)
    return (cast(CudaDriver, device.driver).arch(device.index),)


def limits_of_archs(target: Target) -> DeviceLimits:
    """Return the limits of kernels that all architectures which the target names fulfil."""
    sizes = (max_shared_bytes(arch) for arch in all_archs_of(target))
    return replace(
        USUAL_LIMITS, shared_bytes=min(size or _MIN_SHARED_BYTES for size in sizes)
    )


def code_format(target: Target, formats: Sequence[str], default: str) -> str:
    """Return the format of the code that the option `code` names.

    Raises:
        UserError: the format is not one of `formats`.
    """
    chosen = str(target.option("code", default))
    if chosen not in formats:
        raise UserError(
            f"the target {target.kind} makes no code {chosen!r}",
            where=f"-code={chosen}",
            remedy=advise(chosen, formats, f"use {' or '.join(formats)}"),
        )
    return chosen


def assemble(
    compile_text: Callable[[], ReportedBinary],
    kernels: Sequence[PrimFunc],
    target: Target,
) -> ReportedBinary:
    """Run a compiler that ends in ptxas, and warn of kernels that keep values in memory.

    Raises:
        UserError: a kernel needs more than the architecture has.
        Unsupported: the architecture is too old for an instruction.
        ToolchainError: the compiler is missing, or fails for another reason.
    """
    try:
        made = compile_text()
    except ToolchainError as error:
        explained = explain_failure(error, kernels, arch_of(target))
        if explained is error:
            raise
        raise explained from error
    if made.report:
        warn_of_slow_kernels(kernels, read_resources(made.report, kernels))
    return made


def report_text(report: str) -> str:
    """Return ptxas's report without times, which differ from run to run."""
    lines = report.splitlines(keepends=True)
    return "".join(line for line in lines if "Compile time" not in line)


def resources_of_compiled(compiled: CompiledFunctions) -> tuple[NvidiaResources, ...]:
    """Return the resources of all kernels.

    Raises:
        Unsupported: the code is PTX, for which no registers are chosen yet.
    """
    report = compiled.code.sources.get(REPORT) if compiled.code else None
    if report is None:
        raise unknown_resources()
    programs = [made for made in compiled.made if isinstance(made, Program)]
    launched = launched_shared_bytes(programs)
    return read_resources(report, kernels_of(compiled.made), launched)

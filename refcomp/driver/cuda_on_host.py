"""Programs of the target `cuda`, compiled by g++ and run on this machine, to judge their text.

Sanitizers report races (`races`) or wrong addresses (`bounds`), and undefined behaviour with both.
Raises ToolchainError if g++ is missing or refuses a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from refcomp import toolchain
from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.cuda.on_host import host_text, on_host
from refcomp.codegen.signature import machine_symbol, signature_of
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import Cache
from refcomp.ir.func import PrimFunc, Program
from refcomp.runtime.cuda.driver import USUAL_LIMITS
from refcomp.runtime.cuda_on_host.driver import LIMIT_S, host_device
from refcomp.runtime.device import Device
from refcomp.runtime.module import Module

# An architecture with all instructions that this machine can run.
JUDGED_ARCH = "sm_90"
# What the process checks beside its own faults.
Sanitizers = Literal["", "races", "bounds"]
_NAME = "cuda_on_host"


def compile_on_host(
    source: Source, sanitizers: Sanitizers = "", cache: Cache | None = None
) -> Binary:
    """Compile CUDA C++ to a shared object for `device_on_host(sanitizers)`."""
    output = f"kernels_{sanitizers}".strip("_")
    return toolchain.compile_source(
        on_host(source), {}, output, description=_NAME, cache=cache
    )


@cache
def device_on_host(sanitizers: Sanitizers = "", limit_s: float = LIMIT_S) -> Device:
    """Return this machine as a device for code of `compile_on_host`.

    Args:
        sanitizers: what the process checks.
        limit_s: maximum time of a launch, in seconds.
    """
    source = Source(host_text("process.cpp"), _NAME)
    output = f"process_{sanitizers}".strip("_")
    process = toolchain.compile_source(source, {}, output, description=_NAME)
    return host_device(process, limit_s)


def cuda_programs(funcs: Sequence[PrimFunc]) -> list[Program]:
    """Return functions of the nested level after all passes for `cuda`."""
    return [run_device_passes(func, "cuda", USUAL_LIMITS) for func in funcs]


def load_on_host(
    funcs: Sequence[PrimFunc],
    programs: Sequence[Program],
    code: Binary,
    device: Device,
) -> Module:
    """Return a module of `programs`, which the passes made of `funcs`, and their code."""
    names = [kernel.name for program in programs for kernel in program.kernels]
    return Module.from_programs(
        list(zip(map(signature_of, funcs), programs, strict=True)),
        code,
        target="cuda",
        device=device,
        sources={},
        device_sources={},
        symbols={name: machine_symbol(name) for name in names},
    )


def build_on_host(
    funcs: Sequence[PrimFunc], sanitizers: Sanitizers = ""
) -> tuple[Module, Device]:
    """Compile functions together; return their module, and the device of its arrays."""
    programs = cuda_programs(funcs)
    kernels = [kernel for program in programs for kernel in program.kernels]
    code = compile_on_host(print_cuda(kernels, JUDGED_ARCH), sanitizers)
    device = device_on_host(sanitizers)
    return load_on_host(funcs, programs, code, device), device

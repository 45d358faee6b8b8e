"""The output languages whose templates are mutated: how to print, compile and run each.

Everything but `print_right` happens in a child, with the child's own mutated spelling.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from refcomp import toolchain
from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.opencl.module import print_opencl
from refcomp.compiler import build_functions
from refcomp.driver.backends import as_target
from refcomp.driver.backends.llvm import print_host
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.backends.rocm import print_rocm
from refcomp.driver.cuda_on_host import (
    Sanitizers,
    compile_on_host,
    cuda_programs,
    device_on_host,
    load_on_host,
)
from refcomp.driver.devices import device_for
from refcomp.driver.pipeline import run_device_passes, run_passes
from refcomp.emulator.hip import EmulatedHip
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import Cache
from refcomp.foundation.errors import ToolchainError
from refcomp.foundation.target import limits_of
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.hip.interface import offered_by
from refcomp.ir.func import PrimFunc, Program
from refcomp.mutate.child import Send, run_in_child
from refcomp.mutate.host_runs import Ran, run_on_host
from refcomp.oracle.tensors.arrays import Array
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.hip.library import HipLibrary
from refcomp.runtime.module import Module

_TOOL_LIMIT_S = 20.0
_LIMIT_S = 60.0
_GPU = "gfx942"  # one that the emulator knows
_GPU_BYTES = 1 << 26
_SHARED = "__shared__"  # in a text of CUDA C++ with shared arrays
_TARGET = as_target(f"rocm -mcpu={_GPU}")
_HOST = as_target("llvm")
_Code = TypeVar("_Code")


class Output(Protocol[_Code]):
    """The way from functions of the nested level to their results, by one output language.

    Raises ToolchainError where it cannot run here.
    """

    folders: tuple[str, ...]  # of its templates
    limit_s: float  # maximum time for all results of one mutant, in seconds

    def print_right(self, funcs: Sequence[PrimFunc]) -> list[str]:
        """Return the right text of each function, and keep what the other methods need."""

    def printed(self, func: PrimFunc) -> Source:
        """Return the text in the spelling that is loaded."""

    def compiled(self, source: Source, func: PrimFunc) -> _Code:
        """Return the code that `run` takes."""

    def run(self, code: _Code, func: PrimFunc, arrays: Sequence[Array]) -> Ran:
        """Run the code on copies of the arrays. Raises Unsupported for unknown instructions."""

    def is_right_code(self, code: _Code, func: PrimFunc) -> bool:
        """Return True if the right text is known to have the same machine code."""


class HostOutput:
    """LLVM IR for this processor."""

    folders: tuple[str, ...] = ("llvm",)
    limit_s = _LIMIT_S

    def __init__(self, folder: Path) -> None:
        """Keep compiled code in `folder`."""
        self._cache = Cache(folder)
        self._lowered: dict[PrimFunc, PrimFunc] = {}
        self._right: dict[PrimFunc, Source] = {}

    def print_right(self, funcs: Sequence[PrimFunc]) -> list[str]:
        for func in funcs:
            self._lowered[func] = run_passes(func, "llvm")
            self._right[func] = self.printed(func)
        return [self._right[func].text for func in funcs]

    def printed(self, func: PrimFunc) -> Source:
        return print_host([self._lowered[func]], _HOST)

    def compiled(self, source: Source, _func: PrimFunc) -> Binary:
        return toolchain.compile_source(
            source, {}, "so", cache=self._cache, timeout_s=_TOOL_LIMIT_S
        )

    def run(self, code: Binary, func: PrimFunc, arrays: Sequence[Array]) -> Ran:
        return run_on_host(code, func.name, arrays)

    def is_right_code(self, code: Binary, func: PrimFunc) -> bool:
        return self.compiled(self._right[func], func).data == code.data


class OpenCLOutput:
    """OpenCL C for the first device."""

    folders: tuple[str, ...] = ("c_family", "opencl")
    limit_s = _LIMIT_S

    def __init__(self, folder: Path) -> None:
        """Let PoCL keep compiled code in `folder`."""
        self._folder = folder
        self._features: frozenset[str] = frozenset()
        self._kernels: dict[PrimFunc, tuple[PrimFunc, ...]] = {}

    def print_right(self, funcs: Sequence[PrimFunc]) -> list[str]:
        limits = _opencl_limits()
        self._features = limits.features
        for func in funcs:
            self._kernels[func] = run_device_passes(func, "opencl", limits).kernels
        return [self.printed(func).text for func in funcs]

    def printed(self, func: PrimFunc) -> Source:
        return print_opencl(self._kernels[func], extensions=self._features)

    def compiled(self, _source: Source, func: PrimFunc) -> Module:
        os.environ["POCL_CACHE_DIR"] = str(self._folder)
        return build_functions([func], "opencl")

    def run(self, code: Module, _func: PrimFunc, arrays: Sequence[Array]) -> Ran:
        return _run_on_device(code, device_for(as_target("opencl")), arrays)

    def is_right_code(self, _code: Module, _func: PrimFunc) -> bool:
        return False  # OpenCL drivers do not show their machine code


def _opencl_limits() -> DeviceLimits:
    """Return the limits of the first device, as a child reports them.

    Children of a process that has opened a device cannot open it.
    """

    def work(send: Send) -> None:
        device_for(as_target("opencl")).require()
        limits = asdict(device_limits(as_target("opencl")))
        send({"limits": limits | {"features": sorted(limits["features"])}})

    outcome = run_in_child(work, _LIMIT_S)
    found: dict[str, Any] = {}
    for message in outcome.messages:
        found |= cast(dict[str, Any], message)
    if outcome.failure or "limits" not in found:
        raise ToolchainError(
            "the templates of opencl cannot be tried",
            why=found.get("error", outcome.failure),
            remedy="`refcomp doctor` says what OpenCL needs",
        )
    limits = found["limits"]
    for name, value in limits.items():
        if isinstance(value, list):  # JSON has neither tuples nor sets
            limits[name] = frozenset(value) if name == "features" else tuple(value)
    return DeviceLimits(**limits)


class EmulatedOutput:
    """Machine code of AMD GPUs on the emulator.

    The emulator also finds uninitialised values, accesses out of bounds, and barriers that some
    threads do not reach.
    """

    folders: tuple[str, ...] = ("llvm", "llvm_kernels", "amdgpu")
    limit_s = 4 * _LIMIT_S

    def __init__(self, folder: Path) -> None:
        """Keep compiled code in `folder`."""
        self._folder = folder
        self._programs: dict[PrimFunc, Program] = {}
        self._right: dict[PrimFunc, Source] = {}

    def print_right(self, funcs: Sequence[PrimFunc]) -> list[str]:
        limits = limits_of(_TARGET, None)
        for func in funcs:
            self._programs[func] = run_device_passes(func, "rocm", limits)
            self._right[func] = self.printed(func)
        return [self._right[func].text for func in funcs]

    def printed(self, func: PrimFunc) -> Source:
        return print_rocm([self._programs[func]], _TARGET)

    def compiled(self, source: Source, func: PrimFunc) -> tuple[Source, Module]:
        os.environ["REFCOMP_CACHE_DIR"] = str(self._folder)
        return source, build_functions([func], str(_TARGET))

    def run(
        self, code: tuple[Source, Module], _func: PrimFunc, arrays: Sequence[Array]
    ) -> Ran:
        # Opened no earlier: a child cannot use a device that its parent has opened.
        return _run_on_device(code[1], _small_gpu(), arrays)

    def is_right_code(self, code: tuple[Source, Module], func: PrimFunc) -> bool:
        return self._machine_code(code[0]) == self._machine_code(self._right[func])

    def _machine_code(self, source: Source) -> bytes:
        version = str(toolchain.found_code_object_version())
        binary = toolchain.compile_source(
            source,
            {"mcpu": _GPU, "code_object": version},
            "hsaco",
            description="rocm",
            cache=Cache(self._folder),
            timeout_s=_TOOL_LIMIT_S,
        )
        return binary.data


class CudaOutput:
    """CUDA C++ on this machine, by g++. Kernels with shared memory also run checked for races."""

    folders: tuple[str, ...] = ("c_family", "cuda")
    limit_s = 4 * _LIMIT_S

    def __init__(self, folder: Path) -> None:
        """Keep compiled code in `folder`."""
        self._cache = Cache(folder)
        self._programs: dict[PrimFunc, Program] = {}
        self._right: dict[PrimFunc, Source] = {}

    def print_right(self, funcs: Sequence[PrimFunc]) -> list[str]:
        device_on_host("")  # compiled once, for all children
        device_on_host("races")
        for func, program in zip(funcs, cuda_programs(funcs), strict=True):
            self._programs[func] = program
            self._right[func] = self.printed(func)
        return [self._right[func].text for func in funcs]

    def printed(self, func: PrimFunc) -> Source:
        return print_cuda(self._programs[func].kernels)

    def compiled(self, source: Source, _func: PrimFunc) -> tuple[Source, Binary]:
        return source, compile_on_host(source, cache=self._cache)

    def run(
        self, code: tuple[Source, Binary], func: PrimFunc, arrays: Sequence[Array]
    ) -> Ran:
        source, binary = code
        ran = self._run(binary, "", func, arrays)
        if _SHARED not in self._right[func].text:
            return ran
        checked = compile_on_host(source, "races", self._cache)
        try:
            self._run(checked, "races", func, arrays)
        except ToolchainError as error:
            return replace(ran, fault=error.why or error.what)
        return ran

    def _run(
        self,
        binary: Binary,
        sanitizers: Sanitizers,
        func: PrimFunc,
        arrays: Sequence[Array],
    ) -> Ran:
        device = device_on_host(sanitizers)
        module = load_on_host([func], [self._programs[func]], binary, device)
        return _run_on_device(module, device, arrays)

    def is_right_code(self, code: tuple[Source, Binary], func: PrimFunc) -> bool:
        right = compile_on_host(self._right[func], cache=self._cache)
        return right.data == code[1].data


def _run_on_device(module: Module, device: Device, arrays: Sequence[Array]) -> Ran:
    copies = [array(one, device) for one in arrays]
    module(*copies)
    return Ran(tuple(one.asnumpy() for one in copies))


@cache
def _small_gpu() -> Device:
    """Return an emulated GPU with little memory: that of a child is limited."""
    emulated = EmulatedHip(
        _GPU, lambda code: toolchain.disassemble(Binary(code, "hsaco")), size=_GPU_BYTES
    )
    library = HipLibrary(offered_by(emulated), "a small emulator")
    return Device("rocm_emulator_small", 0, HipDriver(lambda: library))


OUTPUTS: dict[str, Callable[[Path], Output[Any]]] = {
    "llvm": HostOutput,
    "opencl": OpenCLOutput,
    "cuda": CudaOutput,
    "amdgpu": EmulatedOutput,
}

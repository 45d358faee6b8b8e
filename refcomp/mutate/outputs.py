"""The output languages whose spelling is mutated: how each is printed, compiled and run.

All but `right_texts` happens in a child, with the child's own spelling.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from refcomp import toolchain
from refcomp.codegen.opencl.module import print_opencl
from refcomp.compiler import build_functions
from refcomp.driver.backends import as_target
from refcomp.driver.backends.llvm import print_host
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.backends.rocm import print_rocm
from refcomp.driver.devices import device_for
from refcomp.driver.pipeline import run_device_passes, run_passes
from refcomp.emulator.hip import EmulatedHip
from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.cache import Cache
from refcomp.foundation.errors import ToolchainError
from refcomp.foundation.target import DeviceLimits, limits_of
from refcomp.hip.interface import offered_by
from refcomp.ir.func import PrimFunc, Program
from refcomp.mutate.child import Tell, run_in_child
from refcomp.mutate.host_runs import Ran, run_on_host
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device
from refcomp.runtime.hip.driver import HipDriver
from refcomp.runtime.hip.library import HipLibrary

_TOOL_LIMIT_S = 20.0
_LIMIT_S = 60.0
_GPU = "gfx942"  # which the emulator knows
_GPU_BYTES = 1 << 26
_TARGET = as_target(f"rocm -mcpu={_GPU}")
_HOST = as_target("llvm")


class Output(Protocol):
    """A way from functions of the nested level to their results; `folders` are those of its
    spelling. All results of one edit are there within `limit_s` seconds. Refuses by ToolchainError
    where it cannot run here."""

    folders: tuple[str, ...]
    limit_s: float

    def right_texts(self, funcs: Sequence[PrimFunc]) -> list[str]:
        """What each function is printed as."""

    def printed(self, func: PrimFunc) -> Source:
        """The text, by the spelling that is loaded."""

    def compiled(self, source: Source, func: PrimFunc) -> Any:
        """Code that `run` takes."""

    def run(self, code: Any, func: PrimFunc, arrays: Sequence[Any]) -> Ran:
        """Runs it on copies of the arrays. Unsupported where what runs it does not know the
        code."""

    def is_right_code(self, code: Any, func: PrimFunc) -> bool:
        """Whether the right text is known to be compiled to the same code."""


class HostOutput:
    """LLVM IR for this processor; what is compiled lies in `folder`."""

    folders: tuple[str, ...] = ("llvm",)
    limit_s = _LIMIT_S

    def __init__(self, folder: Path) -> None:
        self._cache = Cache(folder)
        self._ready: dict[PrimFunc, PrimFunc] = {}
        self._right: dict[PrimFunc, Source] = {}

    def right_texts(self, funcs: Sequence[PrimFunc]) -> list[str]:
        for func in funcs:
            self._ready[func] = run_passes(func, "llvm")
            self._right[func] = self.printed(func)
        return [self._right[func].text for func in funcs]

    def printed(self, func: PrimFunc) -> Source:
        return print_host([self._ready[func]], _HOST)

    def compiled(self, source: Source, _func: PrimFunc) -> Binary:
        return toolchain.compile_source(
            source, {}, "so", cache=self._cache, timeout_s=_TOOL_LIMIT_S
        )

    def run(self, code: Binary, func: PrimFunc, arrays: Sequence[Any]) -> Ran:
        return run_on_host(code, func.name, arrays)

    def is_right_code(self, code: Binary, func: PrimFunc) -> bool:
        return self.compiled(self._right[func], func).data == code.data


class OpenCLOutput:
    """OpenCL C for the first device; what PoCL compiles lies in `folder`."""

    folders: tuple[str, ...] = ("c_family", "opencl")
    limit_s = _LIMIT_S

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._features: frozenset[str] = frozenset()
        self._kernels: dict[PrimFunc, tuple[PrimFunc, ...]] = {}

    def right_texts(self, funcs: Sequence[PrimFunc]) -> list[str]:
        limits = self._limits()
        self._features = limits.features
        for func in funcs:
            self._kernels[func] = run_device_passes(func, "opencl", limits).kernels
        return [self.printed(func).text for func in funcs]

    def _limits(self) -> DeviceLimits:
        """Asked in a child: a process that has opened a device cannot have children that do."""

        def work(tell: Tell) -> None:
            device_for(as_target("opencl")).require()
            limits = device_limits(as_target("opencl"))
            tell([list(limits.threads_per_axis), limits.threads, limits.shared_bytes])
            tell([sorted(limits.features), list(limits.groups_per_axis)])

        outcome = run_in_child(work, _LIMIT_S)
        if len(outcome.told) != 2 or outcome.ended:
            errors = [str(one["error"]) for one in outcome.told if "error" in one]
            raise ToolchainError(
                "the templates of opencl cannot be tried",
                why=errors[0] if errors else outcome.ended,
                remedy="`refcomp doctor` says what OpenCL needs",
            )
        (axes, threads, shared), (features, groups) = outcome.told
        return DeviceLimits(
            tuple(axes), threads, shared, frozenset(features), tuple(groups)
        )

    def printed(self, func: PrimFunc) -> Source:
        return print_opencl(self._kernels[func], extensions=self._features)

    def compiled(self, _source: Source, func: PrimFunc) -> Any:
        os.environ["POCL_CACHE_DIR"] = str(self._folder)
        return build_functions([func], "opencl")

    def run(self, code: Any, _func: PrimFunc, arrays: Sequence[Any]) -> Ran:
        device = device_for(as_target("opencl"))
        given = [array(one, device) for one in arrays]
        code(*given)
        return Ran(tuple(one.asnumpy() for one in given))

    def is_right_code(self, _code: Any, _func: PrimFunc) -> bool:
        return False


class EmulatedOutput:
    """Machine code of AMD GPUs, run by the emulator, which also finds what is undefined, out of
    bounds, or a barrier that some do not reach; what is compiled lies in `folder`."""

    folders: tuple[str, ...] = ("llvm", "amdgpu")
    limit_s = 4 * _LIMIT_S

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs: dict[PrimFunc, Program] = {}
        self._right: dict[PrimFunc, Source] = {}

    def right_texts(self, funcs: Sequence[PrimFunc]) -> list[str]:
        limits = limits_of(_TARGET, None)
        for func in funcs:
            self._programs[func] = run_device_passes(func, "rocm", limits)
            self._right[func] = self.printed(func)
        return [self._right[func].text for func in funcs]

    def printed(self, func: PrimFunc) -> Source:
        return print_rocm([self._programs[func]], _TARGET)

    def compiled(self, source: Source, func: PrimFunc) -> tuple[Source, Any]:
        os.environ["REFCOMP_CACHE_DIR"] = str(self._folder)
        return source, build_functions([func], str(_TARGET))

    def run(
        self, code: tuple[Source, Any], _func: PrimFunc, arrays: Sequence[Any]
    ) -> Ran:
        device = (
            _small_gpu()
        )  # not before: no child uses one that its parent has opened
        given = [array(one, device) for one in arrays]
        code[1](*given)
        return Ran(tuple(one.asnumpy() for one in given))

    def is_right_code(self, code: tuple[Source, Any], func: PrimFunc) -> bool:
        return self._code_of(code[0]) == self._code_of(self._right[func])

    def _code_of(self, source: Source) -> bytes:
        version = str(toolchain.found_code_object_version())
        options = {"mcpu": _GPU, "code_object": version}
        binary = toolchain.compile_source(
            source,
            options,
            "hsaco",
            description="rocm",
            cache=Cache(self._folder),
            timeout_s=_TOOL_LIMIT_S,
        )
        return binary.data


@cache
def _small_gpu() -> Device:
    """An emulated GPU of little memory, as a child may not have much."""
    emulated = EmulatedHip(
        _GPU, lambda code: toolchain.disassemble(Binary(code, "hsaco")), size=_GPU_BYTES
    )
    library = HipLibrary(offered_by(emulated), "a small emulator")
    return Device("rocm_emulator_small", 0, HipDriver(lambda: library))


OUTPUTS: dict[str, Callable[[Path], Output]] = {
    "llvm": HostOutput,
    "opencl": OpenCLOutput,
    "amdgpu": EmulatedOutput,
}

"""The output languages whose spelling is mutated: how each is printed, compiled and run.

All but `right_texts` happens in a child, with the child's own spelling.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from refcomp import toolchain
from refcomp.artifacts import Binary, Source
from refcomp.build import build_functions
from refcomp.cache import Cache
from refcomp.codegen.llvm import print_llvm
from refcomp.codegen.opencl import print_opencl
from refcomp.compile_kernels import device_limits
from refcomp.devices import device_for
from refcomp.errors import ToolchainError
from refcomp.ir.func import PrimFunc
from refcomp.mutate.child import Tell, run_in_child
from refcomp.mutate.host_runs import Ran, run_on_host
from refcomp.pipeline import run_device_passes, run_passes
from refcomp.runtime.ndarray import array
from refcomp.target import DeviceLimits, as_target

_TOOL_LIMIT_S = 20.0
_LIMIT_S = 60.0


class Output(Protocol):
    """A way from functions of the nested level to their results; `folders` are those of its
    spelling. Refuses by ToolchainError where it cannot run here."""

    folders: tuple[str, ...]

    def right_texts(self, funcs: Sequence[PrimFunc]) -> list[str]:
        """What each function is printed as."""

    def printed(self, func: PrimFunc) -> Source:
        """The text, by the spelling that is loaded."""

    def compiled(self, source: Source, func: PrimFunc) -> Any:
        """Code that `run` takes."""

    def run(self, code: Any, func: PrimFunc, arrays: Sequence[Any]) -> Ran:
        """Runs it on copies of the arrays."""

    def is_right_code(self, code: Any, func: PrimFunc) -> bool:
        """Whether the right text is known to be compiled to the same code."""


class HostOutput:
    """LLVM IR for this processor; what is compiled lies in `folder`."""

    folders: tuple[str, ...] = ("llvm",)

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
        triple, layout = toolchain.host_triple_and_layout()
        bits = toolchain.vector_bits("native")
        return print_llvm([self._ready[func]], triple=triple, layout=layout, vector_bits=bits)

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
        return DeviceLimits(tuple(axes), threads, shared, frozenset(features), tuple(groups))

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


OUTPUTS: dict[str, type[HostOutput] | type[OpenCLOutput]] = {
    "llvm": HostOutput,
    "opencl": OpenCLOutput,
}

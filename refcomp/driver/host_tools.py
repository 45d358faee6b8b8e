"""The tools by which emulated GPUs translate hot code to code of this host.

The text of a translation is compiled through the cache, like any module for this host. So a later
process only loads it. The tools run in a thread, beside the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from refcomp.emulator.translation.compilation import HostLibrary, HostTools
from refcomp.foundation.artifacts import Source
from refcomp.runtime.host.machine_code import load_shared_object
from refcomp.toolchain import compile_source, host_triple_and_layout, vector_bits

_LANE_BITS = 32
_MIN_WIDTH = 8  # lanes of a vector: a mask of them fills bytes
_OPTIONS = {"mcpu": "native", "mattr": "", "passes": "early-cse,simplifycfg"}
_OPTIONS_OF_KERNELS = {"mcpu": "native", "mattr": "", "passes": "default<O2>"}


def host_tools() -> HostTools:
    """Return the tools of this machine. No tool is started before code is hot."""
    return HostTools(_compile, _width, is_concurrent=True)


def kernel_tools() -> HostTools:
    """Return the tools that translate whole kernels of PTX, which LLVM optimizes."""
    return HostTools(_compile_kernel, _width)


@cache
def _width() -> int:
    return max(_MIN_WIDTH, vector_bits("native") // _LANE_BITS)


def _compile(text: str) -> HostLibrary:
    return _compiled(text, _OPTIONS)


def _compile_kernel(text: str) -> HostLibrary:
    return _compiled(text, _OPTIONS_OF_KERNELS)


def _compiled(text: str, options: Mapping[str, str]) -> HostLibrary:
    triple, layout = host_triple_and_layout()
    head = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    binary = compile_source(Source(head + text, "llvm"), options, "so")
    return load_shared_object(binary)

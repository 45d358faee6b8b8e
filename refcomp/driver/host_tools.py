"""The tools by which an emulated AMD GPU translates hot code to code of this host.

The text of a translation is compiled like that of any module for this host, through the cache, so
that a later process only loads it. The tools run in a thread, beside the interpreter.
"""

from __future__ import annotations

from functools import cache

from refcomp.emulator.translation.compilation import HostLibrary, HostTools
from refcomp.foundation.artifacts import Source
from refcomp.runtime.host.machine_code import load_shared_object
from refcomp.toolchain import compile_source, host_triple_and_layout, vector_bits

_LANE_BITS = 32
_MIN_WIDTH = 8  # lanes of a vector: a mask of them fills bytes
_OPTIONS = {"mcpu": "native", "mattr": "", "passes": "early-cse,simplifycfg"}


def host_tools() -> HostTools:
    """Return the tools of this machine. No tool is started before code is hot."""
    return HostTools(_compile, _width, is_concurrent=True)


@cache
def _width() -> int:
    return max(_MIN_WIDTH, vector_bits("native") // _LANE_BITS)


def _compile(text: str) -> HostLibrary:
    triple, layout = host_triple_and_layout()
    head = f'target datalayout = "{layout}"\ntarget triple = "{triple}"\n'
    binary = compile_source(Source(head + text, "llvm"), _OPTIONS, "so")
    return load_shared_object(binary)

"""Turn a file of CUDA C++ into one that g++ compiles for this machine.

Needs: the text is `print_cuda`'s, perhaps changed. Ensures: lines of the text keep their numbers,
as lines of `kernel.cu`; for each kernel the file has a function that `process.cpp` calls.
"""

from __future__ import annotations

import re
from functools import cache

from refcomp.foundation.artifacts import Source
from refcomp.foundation.resources import templates_dir

_KERNEL = re.compile(
    r'extern "C" __global__ void (?:__launch_bounds__\((?P<bound>\d+)\w*\)\s)?'
    r"\s*(?P<name>\w+)\("
)
# The process has this memory: C++ has no `extern static`. The line stays, empty.
_DYNAMIC = re.compile(r"^extern __shared__ .*\bdynamic_shared\[\];$", re.MULTILINE)
_CUDA_HEADER = re.compile(r"^#include <cuda_\w+\.h>$", re.MULTILINE)
# A statement of PTX, and its operands in the order of their numbers.
_PTX = re.compile(r'asm volatile\(\s*("[^"]*")\s*:([^;]*?)\);')
_OPERAND = re.compile(r'"[+=]*[a-z]"\((\w+)\)')
_MAX_THREADS = 1024


def on_host(source: Source) -> Source:
    """Return the C++ of kernels that are printed as CUDA C++."""
    body = _CUDA_HEADER.sub("", _DYNAMIC.sub("", source.text))
    entries = "".join(
        f"KERNEL({kernel['name']}, {kernel['bound'] or _MAX_THREADS})\n"
        for kernel in _KERNEL.finditer(source.text)
    )
    body = _PTX.sub(_as_call, body)
    header = host_text("kernels.h") + host_text("warp_instructions.h")
    text = f'{header}\n#line 1 "kernel.cu"\n{body}\n{entries}'
    return Source(text, "cuda_on_host", source.line_map)


def _as_call(statement: re.Match[str]) -> str:
    """Return a call of the function that runs a statement of PTX, on as many lines."""
    operands = ", ".join(_OPERAND.findall(statement[2]))
    lines = "\n" * statement[0].count("\n")
    return f"ptx({statement[1]}, {operands});{lines}"


@cache
def host_text(name: str) -> str:
    """Return a file of templates/cuda_on_host, such as `kernels.h` or `process.cpp`."""
    return (templates_dir() / "cuda_on_host" / name).read_text(encoding="utf-8")

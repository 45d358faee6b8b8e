"""Lists the kernels of a code object and how to run one: `refcomp emulate FILE.hsaco`.

Needs the metadata of a code object, no tool. Names in it may be a stranger's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from refcomp.cli.kernel_arguments import ARGUMENT_FORMS
from refcomp.cli.outcomes import printable
from refcomp.emulator.code.code_object import CodeObject, KernelEntry
from refcomp.emulator.run import explicit_arguments
from refcomp.foundation.amd_metadata import KernelArgument
from refcomp.foundation.local_memory import LOCAL_POINTER

_BUFFER = "global_buffer"
# Dtypes of C types, and of what has only a size.
_OF_NAMES = {
    **{"float": "f32", "double": "f64", "half": "f16", "char": "i8", "uchar": "u8"},
    **{"short": "i16", "ushort": "u16", "int": "i32", "uint": "u32", "long": "i64"},
    **{"ulong": "u64"},
}
_OF_SIZES = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
_USUAL_THREADS = 64


def listing_to_text(code: CodeObject, kernels: Sequence[KernelEntry], file: str) -> str:
    """Return the kernels with their arguments, and a command that runs the first of them."""
    lines = [f"kernels of {file}, for {code.mcpu}:"]
    for kernel in kernels:
        lines.append(f"  {kernel.name}: {_group(kernel)}{_shared(kernel)}")
        lines += [f"    {line}" for line in _arguments(kernel)]
    if not kernels:
        return printable(f"{lines[0]} none\n")
    lines.append(f"arguments, in this order, each by --arg: {ARGUMENT_FORMS}")
    lines += ["example:", f"  {_example(code, kernels[0], file)}"]
    return printable("\n".join(lines) + "\n")


def listing_to_json(code: CodeObject, kernels: Sequence[KernelEntry]) -> dict[str, Any]:
    """Return the same for scripts."""
    return {
        "gpu": code.mcpu,
        "kernels": [_kernel_to_json(kernel) for kernel in kernels],
    }


def _kernel_to_json(kernel: KernelEntry) -> dict[str, Any]:
    return {
        "kernel": kernel.name,
        "block": list(kernel.block),
        "max_threads": kernel.max_threads,
        "shared_bytes": kernel.descriptor.shared_bytes,
        "arguments": [
            {
                "name": argument.name,
                "kind": argument.kind,
                "bytes": argument.size,
                "is_read_only": argument.is_read_only,
                "type": argument.type_name,
            }
            for argument in explicit_arguments(kernel)
        ],
    }


def _group(kernel: KernelEntry) -> str:
    if kernel.block:
        return f"groups of {' x '.join(map(str, kernel.block))} threads"
    return f"groups of at most {kernel.max_threads} threads"


def _shared(kernel: KernelEntry) -> str:
    own = kernel.descriptor.shared_bytes
    return f", {own} bytes of shared memory" if own else ""


def _arguments(kernel: KernelEntry) -> Iterator[str]:
    rows = [(one.name, _what(one), _form(one)) for one in explicit_arguments(kernel)]
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(2)]
    for name, what, form in rows:
        yield f"{name:{widths[0]}}  {what:{widths[1]}}  {form}"
    if not rows:
        yield "no arguments"


def _what(argument: KernelArgument) -> str:
    told = f" ({argument.type_name})" if argument.type_name else ""
    if argument.kind == _BUFFER:
        return f"array{', only read' if argument.is_read_only else ''}{told}"
    if argument.kind == LOCAL_POINTER:
        return f"local memory{told}"
    return f"{argument.size} bytes{told}"


def _form(argument: KernelArgument) -> str:
    """Return what --arg could be given; in Python alone a structure can be passed."""
    name = re.sub(r"\W", "", argument.name) or "x"
    if argument.kind == LOCAL_POINTER:
        return "local:256"
    if argument.kind == _BUFFER:
        return f"{name}.npy" if argument.is_read_only else f"out:{name}.npy"
    dtype = _OF_NAMES.get(argument.type_name) or _OF_SIZES.get(argument.size)
    if dtype is None:
        return "(a structure: in Python, refcomp.load_code_object passes one of ctypes)"
    return f"{name}:{dtype}=1"


def _example(code: CodeObject, kernel: KernelEntry, file: str) -> str:
    block = kernel.block or (min(_USUAL_THREADS, kernel.max_threads), 1, 1)
    extents = ",".join(map(str, block)).removesuffix(",1").removesuffix(",1")
    words = ["refcomp", "emulate", file]
    words += ["--kernel", kernel.name] if len(code.kernels) > 1 else []
    words += ["--grid", "1", "--block", extents]
    for argument in explicit_arguments(kernel):
        words += ["--arg", _form(argument)]
    return shlex.join(words)

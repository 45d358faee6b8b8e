"""Lists the kernels of a code object, and a command that runs one: `refcomp emulate FILE.hsaco`.

The metadata of the code object is enough; no tool is run. Names in it may be a stranger's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from refcomp.cli.kernel_arguments import ARGUMENT_FORMS
from refcomp.cli.outcomes import printable
from refcomp.emulator.code.code_object import CodeObject, KernelEntry
from refcomp.emulator.run import explicit_arguments
from refcomp.foundation.amd_metadata import KernelArgument
from refcomp.foundation.local_memory import LOCAL_POINTER

_BUFFER = "global_buffer"
_DTYPE_OF_C_TYPE = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "char": "i8",
    "uchar": "u8",
    "short": "i16",
    "ushort": "u16",
    "int": "i32",
    "uint": "u32",
    "long": "i64",
    "ulong": "u64",
}
_DTYPE_OF_SIZE = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}  # bytes -> dtype
_USUAL_THREADS = 64  # of a group; a wave on most AMD GPUs


def listing_to_text(code: CodeObject, kernels: Sequence[KernelEntry], file: str) -> str:
    """Return the kernels with their arguments, and a command that runs the first of them."""
    lines = [f"kernels of {file}, for {code.mcpu}:"]
    if not kernels:
        return printable(f"{lines[0]} none\n")
    for kernel in kernels:
        group = f"groups of at most {kernel.max_threads} threads"
        if kernel.block:
            group = f"groups of {' x '.join(map(str, kernel.block))} threads"
        if own := kernel.descriptor.shared_bytes:
            group += f", {own} bytes of shared memory"
        lines.append(f"  {kernel.name}: {group}")
        lines += [f"    {line}" for line in _arguments(kernel)]
    lines.append(f"arguments, in this order, each by --arg: {ARGUMENT_FORMS}")
    lines += ["example:", f"  {_example(code, kernels[0], file)}"]
    return printable("\n".join(lines) + "\n")


def listing_to_json(
    code: CodeObject, kernels: Sequence[KernelEntry]
) -> dict[str, object]:
    """Return the same list for programs."""
    return {
        "gpu": code.mcpu,
        "kernels": [_kernel_to_json(kernel) for kernel in kernels],
    }


def _kernel_to_json(kernel: KernelEntry) -> dict[str, object]:
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


def _arguments(kernel: KernelEntry) -> list[str]:
    """Return a line for each argument: name, description, and a form of --arg, in columns."""
    arguments = explicit_arguments(kernel)
    if not arguments:
        return ["no arguments"]
    described = [_describe(argument) for argument in arguments]
    name_width = max(len(argument.name) for argument in arguments)
    width = max(map(len, described))
    return [
        f"{argument.name:{name_width}}  {text:{width}}  {_form(argument)}"
        for argument, text in zip(arguments, described, strict=True)
    ]


def _describe(argument: KernelArgument) -> str:
    text = f"{argument.size} bytes"
    if argument.kind == _BUFFER:
        text = "array, only read" if argument.is_read_only else "array"
    elif argument.kind == LOCAL_POINTER:
        text = "local memory"
    return f"{text} ({argument.type_name})" if argument.type_name else text


def _form(argument: KernelArgument) -> str:
    """Return an example of --arg. A structure can be passed in Python only."""
    name = re.sub(r"\W", "", argument.name) or "x"
    if argument.kind == LOCAL_POINTER:
        return "local:256"
    if argument.kind == _BUFFER:
        return f"{name}.npy" if argument.is_read_only else f"out:{name}.npy"
    dtype = _DTYPE_OF_C_TYPE.get(argument.type_name)
    dtype = dtype or _DTYPE_OF_SIZE.get(argument.size)
    if dtype is None:
        return "(a structure: in Python, refcomp.load_code_object passes one of ctypes)"
    return f"{name}:{dtype}=1"


def _example(code: CodeObject, kernel: KernelEntry, file: str) -> str:
    block = kernel.block or (min(_USUAL_THREADS, kernel.max_threads), 1, 1)
    # Trailing extents of 1 may be left out.
    extents = ",".join(map(str, block)).removesuffix(",1").removesuffix(",1")
    words = ["refcomp", "emulate", file]
    if len(code.kernels) > 1:
        words += ["--kernel", kernel.name]
    words += ["--grid", "1", "--block", extents]
    for argument in explicit_arguments(kernel):
        words += ["--arg", _form(argument)]
    return shlex.join(words)

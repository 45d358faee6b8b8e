"""Checks of code objects, the machine code of AMD GPUs, against the request that made them.

`read_code_object` raises ToolchainError for other data than a code object. `check_code_object`
raises CompilerBug for a code object that differs from the request.
`refcomp.foundation.amd_metadata` reads the format.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refcomp.foundation.amd_metadata import (
    CodeObjectMetadata,
    KernelMetadata,
    metadata_map,
    read_metadata,
)
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.counted import counted
from refcomp.foundation.dtype import DType
from refcomp.foundation.elf import ElfFile
from refcomp.foundation.errors import CompilerBug, ToolchainError
from refcomp.hip import api as hip_api
from refcomp.toolchain.description import load_description
from refcomp.toolchain.places import file_path

_POINTER_BYTES = 8
_MAJOR = re.compile(r"\.so\.(\d+)")


@dataclass(frozen=True, slots=True)
class ExpectedKernel:
    """The properties of a kernel that its code object must have."""

    symbol: str
    params: tuple[DType | None, ...]  # None for a buffer, else the dtype of a number
    # Threads of a group in x, y and z; () if the launch decides.
    block: tuple[int, ...] = ()
    shared_bytes: int = 0  # upper bound of its shared buffers of constant size


def found_code_object_version() -> int:
    """Return the version to compile for, which is that of the HIP runtime of this machine."""
    path = file_path(load_description("rocm").files["libamdhip64"])
    match = _MAJOR.search(os.path.realpath(path)) if path else None
    return hip_api.code_object_version(int(match[1]) if match else None)


def read_code_object(data: bytes) -> CodeObjectMetadata:
    """Return the metadata of the code object `data`, or raise ToolchainError."""
    try:
        return read_metadata(ElfFile(data))
    except ValueError as error:
        raise _unreadable(error) from error


def metadata_text(data: bytes) -> str:
    """Return all metadata of the code object `data` as JSON, or raise ToolchainError."""
    try:
        elf = ElfFile(data)
        read_metadata(elf)  # refuses what is damaged
        return json.dumps(metadata_map(elf), indent=2) + "\n"
    # TypeError: bytes, for which JSON has no form.
    except (ValueError, TypeError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> ToolchainError:
    return ToolchainError(
        "the metadata of a code object cannot be read",
        why=str(error),
        remedy="compile it again; if that does not help, try another version of LLVM",
    )


def check_code_object(
    binary: Binary, kernels: Sequence[ExpectedKernel], mcpu: str, version: int
) -> CodeObjectMetadata:
    """Return the metadata of `binary` after checking it against the request.

    The code object must be for the GPU `mcpu`, in format `version`, with exactly the expected
    kernels. The arguments of each must be packed naturally. Neither its groups nor its shared
    memory may exceed the request.
    """
    code = read_code_object(binary.data)
    faults = list(_faults(code, kernels, mcpu, version))
    if faults:
        raise CompilerBug(
            "the code object is not what was asked for", why="; ".join(faults)
        )
    return code


def argument_places(params: Sequence[DType | None]) -> tuple[tuple[int, int], ...]:
    """Return the offset and size in bytes of each argument, each at a multiple of its size."""
    places = []
    offset = 0
    for param in params:
        size = _POINTER_BYTES if param is None else param.bytes
        offset = -(-offset // size) * size
        places.append((offset, size))
        offset += size
    return tuple(places)


def _faults(
    code: CodeObjectMetadata, kernels: Sequence[ExpectedKernel], mcpu: str, version: int
) -> Iterator[str]:
    if code.version != version:
        yield f"its version is {code.version}, not {version}"
    if code.mcpu != mcpu:
        yield f"it is for {code.mcpu}, not {mcpu}"
    found = {kernel.name: kernel for kernel in code.kernels}
    expected = [kernel.symbol for kernel in kernels]
    if sorted(found) != sorted(expected):
        yield f"it has the kernels {', '.join(sorted(found))}, not {', '.join(sorted(expected))}"
    for kernel in kernels:
        if kernel.symbol in found:
            yield from _kernel_faults(found[kernel.symbol], kernel)


def _kernel_faults(found: KernelMetadata, expected: ExpectedKernel) -> Iterator[str]:
    places = argument_places(expected.params)
    wanted = []
    for param, (offset, size) in zip(expected.params, places, strict=True):
        wanted.append((offset, size, "global_buffer" if param is None else "by_value"))
    given = [(arg.offset, arg.size, arg.kind) for arg in found.arguments]
    if given != wanted:
        yield f"{found.name} takes (offset, bytes, kind) {given}, not {wanted}"
    # Compilers may add hidden arguments behind.
    least = max((offset + size for offset, size in places), default=0)
    if found.kernarg_bytes < least:
        yield f"{found.name} takes {counted(found.kernarg_bytes, 'byte')} of arguments, not {least}"
    if found.block != expected.block:
        yield f"{found.name} has groups of {_block(found.block)}, not {_block(expected.block)}"
    # It may be less, since compilers remove buffers that have no effect.
    if found.shared_bytes > expected.shared_bytes:
        most = expected.shared_bytes
        shared = counted(found.shared_bytes, "byte")
        yield f"{found.name} has {shared} of shared memory, at most {most} asked"


def _block(block: tuple[int, ...]) -> str:
    return " x ".join(map(str, block)) if block else "any size"

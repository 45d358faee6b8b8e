"""What a code object, the machine code of AMD GPUs, tells of itself, held against what was asked.

A code object is a 64-bit ELF file whose note `AMDGPU` is a MessagePack map. Ensures: what
`read_code_object` gives was there, in the types that the format has. Refuses, by ToolchainError,
what is no code object; `check_code_object`, by CompilerBug, one that is not what was asked for.
Format: LLVM's "User Guide for AMDGPU Backend", code object metadata V3 and later.
"""

import json
import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import CompilerBug, ToolchainError
from refcomp.foundation.msgpack import read_msgpack
from refcomp.hip import api as hip_api
from refcomp.toolchain.description import load_description
from refcomp.toolchain.places import file_path

_MAGIC = b"\x7fELF\x02\x01"
_AMDGPU = 224  # the machine's number
_NOTE = 4  # type of program headers
_METADATA = 32  # type of notes
_ABI_TO_VERSION = {1: 3, 2: 4, 3: 5, 4: 6}
_POINTER_BYTES = 8
_MAJOR = re.compile(r"\.so\.(\d+)")


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One argument as the loader lays it out; `kind` is `global_buffer`, `by_value` or a hidden
    one, `space` the address space of a buffer, `alignment` in bytes that of what it points to."""

    offset: int
    size: int
    kind: str
    space: str
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class KernelMetadata:
    """What is told of a kernel: bytes, threads, and registers of a lane (vgpr, of which `agprs` are
    for matrices) or wave (sgpr)."""

    name: str
    symbol: str
    arguments: tuple[KernelArgument, ...]
    kernarg_bytes: int
    kernarg_alignment: int
    shared_bytes: int
    private_bytes: int
    most_threads: int
    block: tuple[int, ...]
    wavefront_size: int
    vgprs: int
    sgprs: int
    spilled_vgprs: int
    spilled_sgprs: int
    agprs: int = 0


@dataclass(frozen=True, slots=True)
class CodeObjectMetadata:
    """`version` of the format; `target` is the whole name: amdgcn-amd-amdhsa--gfx90a:xnack-."""

    version: int
    target: str
    kernels: tuple[KernelMetadata, ...]

    @property
    def mcpu(self) -> str:
        """The GPU's name alone."""
        return self.target.rpartition("--")[2].partition(":")[0]


@dataclass(frozen=True, slots=True)
class ExpectedKernel:
    """What a kernel was meant to be. `params` are None for a buffer, else the dtype of a number.
    `block` are the threads of a group in x, y and z, () where the launch decides; `shared_bytes`
    what its shared buffers of constant size take at most."""

    symbol: str
    params: tuple[DType | None, ...]
    block: tuple[int, ...] = ()
    shared_bytes: int = 0


def found_code_object_version() -> int:
    """The version to compile for: what the HIP runtime of this machine loads."""
    path = file_path(load_description("rocm").files["libamdhip64"])
    match = _MAJOR.search(os.path.realpath(path)) if path else None
    return hip_api.code_object_version(int(match[1]) if match else None)


def read_code_object(data: bytes) -> CodeObjectMetadata:
    """What the code object `data` tells of itself."""
    try:
        return _read(data)
    except (ValueError, OverflowError, KeyError, TypeError, struct.error) as error:
        raise _unreadable(error) from error


def metadata_text(data: bytes) -> str:
    """All that the code object `data` tells of itself, as JSON."""
    read_code_object(data)
    try:
        return json.dumps(read_msgpack(next(_metadata_notes(data), b"")), indent=2) + "\n"
    except (ValueError, OverflowError, TypeError, struct.error) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> ToolchainError:
    return ToolchainError(
        "the metadata of a code object cannot be read",
        why=f"{type(error).__name__}: {error}",
        remedy="compile it again; if that does not help, try another version of LLVM",
    )


def check_code_object(
    binary: Binary, kernels: Sequence[ExpectedKernel], mcpu: str, version: int
) -> CodeObjectMetadata:
    """What `binary` tells of itself, which is what was asked for: these kernels with their
    arguments packed naturally and no others, their groups and no more shared memory than that, for
    the GPU `mcpu`, in the format `version`."""
    code = read_code_object(binary.data)
    faults = list(_faults(code, kernels, mcpu, version))
    if faults:
        raise CompilerBug("the code object is not what was asked for", why="; ".join(faults))
    return code


# Comparing.


def argument_places(params: Sequence[DType | None]) -> tuple[tuple[int, int], ...]:
    """Offset and size in bytes of each argument: each at a multiple of its size."""
    places, offset = [], 0
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
    kinds = ["global_buffer" if param is None else "by_value" for param in expected.params]
    places = argument_places(expected.params)
    wanted = [(offset, size, kind) for (offset, size), kind in zip(places, kinds, strict=True)]
    given = [(arg.offset, arg.size, arg.kind) for arg in found.arguments]
    if given != wanted:
        yield f"{found.name} takes (offset, bytes, kind) {given}, not {wanted}"
    least = max((offset + size for offset, size in places), default=0)
    if found.kernarg_bytes < least:
        yield f"{found.name} takes {found.kernarg_bytes} bytes of arguments, not {least}"
    if found.block != expected.block:
        yield f"{found.name} has groups of {_block(found.block)}, not {_block(expected.block)}"
    if found.shared_bytes > expected.shared_bytes:
        most = expected.shared_bytes
        yield f"{found.name} has {found.shared_bytes} bytes of shared memory, at most {most} asked"


def _block(block: tuple[int, ...]) -> str:
    return " x ".join(map(str, block)) if block else "any size"


# Reading.


def _read(data: bytes) -> CodeObjectMetadata:
    if not data.startswith(_MAGIC) or struct.unpack_from("<H", data, 18)[0] != _AMDGPU:
        raise ValueError("it is no ELF file for AMD GPUs")
    metadata = read_msgpack(next(_metadata_notes(data), b""))
    kernels = tuple(_kernel(_of(dict, item)) for item in _of(list, metadata["amdhsa.kernels"]))
    return CodeObjectMetadata(
        _ABI_TO_VERSION[data[8]], _of(str, metadata["amdhsa.target"]), kernels
    )


def _metadata_notes(data: bytes) -> Iterator[bytes]:
    (start,) = struct.unpack_from("<Q", data, 32)
    entry_size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQ", data, start + number * entry_size)
        kind, offset, size = fields[0], fields[2], fields[5]
        if kind == _NOTE:
            yield from _notes(data[offset : offset + size])


def _notes(segment: bytes) -> Iterator[bytes]:
    position = 0
    while position + 12 <= len(segment):
        name_size, size, kind = struct.unpack_from("<III", segment, position)
        name_at = position + 12
        at = name_at + -(-name_size // 4) * 4
        if kind == _METADATA and segment[name_at : name_at + name_size] == b"AMDGPU\0":
            yield segment[at : at + size]
        position = at + -(-size // 4) * 4


def _kernel(item: dict[str, Any]) -> KernelMetadata:
    block = tuple(_of(int, extent) for extent in item.get(".reqd_workgroup_size", ()))
    return KernelMetadata(
        name=_of(str, item[".name"]),
        symbol=_of(str, item[".symbol"]),
        arguments=tuple(_argument(_of(dict, arg)) for arg in item.get(".args", ())),
        kernarg_bytes=_of(int, item[".kernarg_segment_size"]),
        kernarg_alignment=_of(int, item[".kernarg_segment_align"]),
        shared_bytes=_of(int, item[".group_segment_fixed_size"]),
        private_bytes=_of(int, item[".private_segment_fixed_size"]),
        most_threads=_of(int, item[".max_flat_workgroup_size"]),
        block=block,
        wavefront_size=_of(int, item[".wavefront_size"]),
        vgprs=_of(int, item[".vgpr_count"]),
        sgprs=_of(int, item[".sgpr_count"]),
        spilled_vgprs=_of(int, item.get(".vgpr_spill_count", 0)),
        spilled_sgprs=_of(int, item.get(".sgpr_spill_count", 0)),
        agprs=_of(int, item.get(".agpr_count", 0)),
    )


def _argument(item: dict[str, Any]) -> KernelArgument:
    return KernelArgument(
        offset=_of(int, item[".offset"]),
        size=_of(int, item[".size"]),
        kind=_of(str, item[".value_kind"]),
        space=_of(str, item.get(".address_space", "")),
        alignment=max(1, _of(int, item.get(".pointee_align", 1))),
    )


def _of(kind: type[Any], value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value

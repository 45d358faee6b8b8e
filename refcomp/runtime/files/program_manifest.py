"""The contents of a module file for a device, and their form as members of an archive.

The member `launch` has the host functions as loop-IR text. The member `binary` has the kernels, as
the text or the machine code that the device's driver loads. The manifest has the signatures.
Everything is checked before it is used, and inconsistent files are refused with UserError.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from refcomp.foundation.artifacts import (
    Binary,
    Signature,
    Source,
    TensorParam,
    signature_from_json,
)
from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_funcs
from refcomp.ir.verify import Level, find_fault
from refcomp.runtime.device import device, device_kinds
from refcomp.runtime.files.damage import damaged
from refcomp.runtime.files.manifest import (
    MALFORMED,
    Manifest,
    as_texts,
    malformed,
    pack_members,
)
from refcomp.runtime.launch import AlignedBuffer, KernelSignature

# Bytes of the host functions' text, which limits the time of parsing. Models need far less.
LAUNCH_LIMIT = 1 << 20
# Kinds of dtypes that kernels do not take. A bf16 is passed as an integer.
_NEVER_PASSED = ("bfloat", "string", "handle")


@dataclass(frozen=True, slots=True)
class ProgramContents:
    """Host functions and their kernels, with everything that is needed to run them elsewhere."""

    signatures: tuple[Signature, ...]
    launch: str  # the host functions as loop-IR text, in the order of `signatures`
    kernels: tuple[KernelSignature, ...]
    device: str  # the kind of device that `code` is for
    code: Source | Binary
    entry: str  # name of the entry function
    target: str  # as text
    sources: Mapping[str, str]  # of the functions: language -> text
    device_sources: Mapping[str, str]  # of the kernels: language -> text


def pack_program(
    contents: ProgramContents, holder: bytes | None = None
) -> dict[str, bytes]:
    """Return the members of the archive, first the manifest.

    Args:
        contents: what the archive holds.
        holder: a shared object that holds the code, and takes its place as the member `binary`.

    Raises UserError if the text of the host functions is too long.
    """
    launch = _raw(contents.launch)
    if len(launch) > LAUNCH_LIMIT:
        raise UserError(
            f"the host functions have {len(launch)} bytes of text, and cannot be saved",
            why=f"a module file can have at most {LAUNCH_LIMIT}",
            remedy="build fewer functions into one module",
        )
    code = contents.code
    held = code_bytes(code)
    members = {"binary": held if holder is None else holder, "launch": launch}
    folders = {"sources": contents.sources, "device": contents.device_sources}
    for folder, texts in folders.items():
        for language, text in sorted(texts.items()):
            members[f"{folder}/{language}"] = _raw(text)
    manifest = _manifest_of(contents)
    if holder is not None:
        manifest["code_place"] = [holder.index(held), len(held)]
    return pack_members(manifest, members)


def code_bytes(code: Source | Binary) -> bytes:
    """Return the code of kernels as bytes."""
    return code.data if isinstance(code, Binary) else _raw(code.text)


def _manifest_of(contents: ProgramContents) -> dict[str, object]:
    code = contents.code
    return {
        "target": contents.target,
        "device": contents.device,
        "code": code.format if isinstance(code, Binary) else code.language,
        "is_binary": isinstance(code, Binary),
        "entry": contents.entry,
        "functions": [signature.to_json() for signature in contents.signatures],
        "kernels": [_kernel_to_json(kernel) for kernel in contents.kernels],
        "languages": list(contents.sources),
        "device_languages": list(contents.device_sources),
    }


def _kernel_to_json(kernel: KernelSignature) -> dict[str, object]:
    return {
        "name": kernel.name,
        "symbol": kernel.symbol,
        "params": [
            "buffer" if dtype is None else str(dtype) for dtype in kernel.params
        ],
        "loops": [list(loop) for loop in kernel.loops],
        "aligned": [
            [str(buffer.position), buffer.name, str(buffer.alignment)]
            for buffer in kernel.aligned
        ],
        "read_only": [str(position) for position in kernel.read_only],
    }


def unpack_program(
    path: str, manifest: Manifest, members: Mapping[str, bytes]
) -> ProgramContents:
    """Return the contents of an archive after `checked_manifest`. UserError."""
    try:
        contents = _contents_from(manifest, members)
    except MALFORMED as error:
        raise malformed(path, error) from error
    kinds = [kind for kind in device_kinds() if hasattr(device(kind).driver, "load")]
    if contents.device not in kinds:
        raise UserError(
            f"{path} has kernels for an unknown kind of device {contents.device!r}",
            remedy=f"build the module for one of: {', '.join(kinds)}",
        )
    return contents


def _contents_from(manifest: Manifest, members: Mapping[str, bytes]) -> ProgramContents:
    keys = ("device", "target", "entry", "code")
    kind, target, entry, form = as_texts([manifest[key] for key in keys])
    launch = members["launch"]
    if len(launch) > LAUNCH_LIMIT:
        raise ValueError(
            f"host functions of {len(launch)} bytes, more than {LAUNCH_LIMIT}"
        )
    raw = _held_code(members["binary"], manifest.get("code_place"))
    is_binary = manifest["is_binary"] is True
    return ProgramContents(
        signatures=tuple(map(signature_from_json, manifest["functions"])),
        launch=_text(launch),
        kernels=tuple(map(_kernel_from_json, manifest["kernels"])),
        device=kind,
        code=Binary(raw, form) if is_binary else Source(_text(raw), form),
        entry=entry,
        target=target,
        sources={
            name: _text(members[f"sources/{name}"])
            for name in as_texts(manifest["languages"])
        },
        device_sources={
            name: _text(members[f"device/{name}"])
            for name in as_texts(manifest["device_languages"])
        },
    )


def _held_code(binary: bytes, place: object) -> bytes:
    """Return the code in the member `binary`, which is a shared object if the code has a place."""
    if place is None:
        return binary
    if not isinstance(place, list) or [type(number) for number in place] != [int, int]:
        raise TypeError(f"a place of code is two numbers, not {place!r}")
    begin, size = place
    if not (begin >= 0 and 0 <= size <= len(binary) - begin):
        raise ValueError(f"no code of {size} bytes lies at {begin}")
    return binary[begin : begin + size]


def _raw(text: str) -> bytes:
    # Surrogates are legal in Python's texts, so names may contain them.
    return text.encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _kernel_from_json(value: Manifest) -> KernelSignature:
    name, symbol = as_texts([value["name"], value["symbol"]])
    params: list[DType | None] = []
    for text in as_texts(value["params"]):
        dtype = None if text == "buffer" else as_dtype(text)
        if dtype and (dtype.lanes != 1 or dtype.kind in _NEVER_PASSED):
            raise ValueError(f"a kernel cannot take a {dtype}")
        params.append(dtype)
    loops = [as_texts(loop) for loop in value["loops"]]
    # A loop of another length than 2 raises ValueError, which MALFORMED includes.
    named = tuple((tag, loop) for tag, loop in loops)
    # Files of earlier versions say nothing of alignment.
    aligned = [as_texts(buffer) for buffer in value.get("aligned", ())]
    # Nor of buffers that are only read.
    read_only = as_texts(value.get("read_only", []))
    return KernelSignature(
        name,
        symbol,
        tuple(params),
        named,
        tuple(_aligned_buffer(params, *buffer) for buffer in aligned),
        tuple(_position_of_buffer(params, text) for text in read_only),
    )


def _aligned_buffer(
    params: list[DType | None], position: str, name: str, alignment: str
) -> AlignedBuffer:
    number = int(alignment)
    if number <= 0:
        raise ValueError(f"no buffer {position} can be aligned to {alignment} bytes")
    return AlignedBuffer(_position_of_buffer(params, position), name, number)


def _position_of_buffer(params: list[DType | None], text: str) -> int:
    position = int(text)
    if not 0 <= position < len(params) or params[position] is not None:
        raise ValueError(f"no buffer is at the position {text}")
    return position


def read_hosts(path: str, contents: ProgramContents) -> tuple[PrimFunc, ...]:
    """Return the host functions of a file, in the order of its signatures.

    Raises UserError unless each is legal at the level `launch` and fits its signature.
    """
    try:
        hosts = tuple(parse_funcs(contents.launch, f"{path}: launch"))
    except RefcompError as error:
        line = error.at.place if error.at else f"{path}: launch"
        raise damaged(
            path, f"its host functions cannot be read: {line}: {error.what}"
        ) from error
    if len(hosts) != len(contents.signatures):
        raise damaged(
            path,
            f"it has {len(hosts)} host functions for {len(contents.signatures)} signatures",
        )
    for host, signature in zip(hosts, contents.signatures, strict=True):
        fault = find_fault(host, Level.LAUNCH)
        if fault is not None:
            raise damaged(
                path, f"its host function {host.name} is not legal: {fault.what}"
            )
        if not _fits(host, signature):
            raise damaged(
                path, f"its host function {host.name} does not fit {signature}"
            )
    return hosts


def _fits(host: PrimFunc, signature: Signature) -> bool:
    kinds = [isinstance(param, Buffer) for param in host.params]
    wanted = [isinstance(param, TensorParam) for param in signature.params]
    # The status array of the checks is one more buffer.
    wanted += [True] * bool(signature.checks)
    fits = kinds == wanted and len(host.symbols) == len(signature.symbols)
    return fits and len(host.checks) == len(signature.checks)

"""The contents of a module file for a host, and their form as members of an archive.

`pack` writes a manifest: versions, target, machine, CPU features, needed libraries, functions, and
the size and SHA-256 of each member. `unpack` compares it with this refcomp and this machine. The
hashes detect damage, but not an attack: load only files that you trust. Files for devices
(program_manifest.py) also use `checked_manifest` and `pack_members`. An archive inside of an object
(`pack_description`) has no code, and `unpack` checks everything else.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from refcomp import __version__
from refcomp.foundation import machine
from refcomp.foundation.artifacts import Binary, Signature, signature_from_json
from refcomp.foundation.errors import RefcompError, UserError
from refcomp.foundation.hashing import sha256
from refcomp.foundation.python_limits import paused_collector
from refcomp.foundation.records import record
from refcomp.runtime.files.damage import damaged

# A JSON object. A value is checked where it is used, by `as_texts` or one of the MALFORMED.
Manifest = dict[str, Any]

FORMAT = "refcomp module"
FORMAT_VERSION = 1

MANIFEST = "manifest.json"
# The format of code that is not in the archive, since it is linked to a library or a program.
LINKED = "linked"
_LINKED_CODE = Binary(b"", LINKED)
# The exceptions that code raises when it reads a malformed manifest.
MALFORMED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    RefcompError,
)


@record
class ModuleContents:
    """Machine code with everything that is needed to load and call it elsewhere."""

    signatures: tuple[Signature, ...]
    entry: str  # name of the entry function
    target: str  # as text
    binary: Binary
    symbols: Mapping[str, str]  # name of a function -> its name in the binary
    sources: Mapping[str, str]  # language -> text
    cpu_features: tuple[str, ...] = ()  # instruction sets that the code may use
    # File names of needed libraries. They are read from the binary when a module is saved.
    libraries: tuple[str, ...] = ()


@record
class ObjectContents:
    """Code for another machine, which can be read and saved. No module file holds it."""

    machine: str  # its triple
    signatures: tuple[Signature, ...]
    target: str  # as text
    sources: Mapping[str, str]  # language -> text


@record
class LinkedContents:
    """Functions that are linked into this process. They are not saved again."""

    files: str  # the libraries that they are part of


@record
class JoinedContents:
    """The parts of a module for several targets. No module file holds them."""

    # For each part its target and the texts or codes that it is saved as, by language.
    parts: tuple[tuple[str, Mapping[str, str]], ...]


def pack(contents: ModuleContents, processor: str = "") -> dict[str, bytes]:
    """Return the members of the archive, first the manifest. The result is deterministic.

    Args:
        contents: what the archive holds.
        processor: the kind of processor, as `machine()` names it; '' for that of this machine.
    """
    is_linked = contents.binary.format == LINKED
    members = {} if is_linked else {"binary": contents.binary.data}
    for language, text in sorted(contents.sources.items()):
        members[f"sources/{language}"] = text.encode("utf-8", "surrogatepass")
    manifest = {
        "machine": processor or machine.machine(),
        "target": contents.target,
        "cpu_features": sorted(contents.cpu_features),
        "libraries": list(contents.libraries),
        "binary_format": contents.binary.format,
        "entry": contents.entry,
        "functions": [
            {
                "symbol": contents.symbols[signature.name],
                "signature": signature.to_json(),
            }
            for signature in contents.signatures
        ],
        "languages": list(contents.sources),
    }
    return pack_members(manifest, members)


def pack_description(contents: ModuleContents | ObjectContents) -> dict[str, bytes]:
    """Return the members of an archive that lies inside of the object that it describes.

    The manifest comes first. The code is left out, since the object has it. So are the libraries,
    which the linker finds.
    """
    if isinstance(contents, ModuleContents):
        return pack(replace(contents, binary=_LINKED_CODE, libraries=()))
    from refcomp.foundation.triples import architecture_of  # noqa: PLC0415  (rare)

    names = [signature.name for signature in contents.signatures]
    described = ModuleContents(
        signatures=contents.signatures,
        entry=names[0],
        target=contents.target,
        binary=_LINKED_CODE,
        symbols=dict(zip(names, names, strict=True)),
        sources=contents.sources,
    )
    return pack(described, architecture_of(contents.machine).name)


def pack_members(
    manifest: Mapping[str, object], members: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Return `manifest` and then `members`.

    The manifest gets the versions and a fingerprint of each member.
    """
    full = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "refcomp_version": __version__,
        **manifest,
        "members": {name: _fingerprint(data) for name, data in members.items()},
    }
    return {MANIFEST: json.dumps(full, indent=1).encode(), **members}


def _fingerprint(data: bytes) -> dict[str, int | str]:
    return {"size": len(data), "sha256": sha256(data).hexdigest()}


def unpack(path: str, members: Mapping[str, bytes]) -> ModuleContents:
    """Return the contents of the archive at `path`, if this machine can run them.

    Raises UserError for another version, machine or processor, and for a missing or changed member.
    """
    manifest = checked_manifest(path, members)
    _check_machine(path, manifest)
    try:
        return _contents_from(manifest, members)
    except MALFORMED as error:
        raise malformed(path, error) from error


def checked_manifest(path: str, members: Mapping[str, bytes]) -> Manifest:
    """Return the manifest in `members`. UserError for another version or damaged members."""
    manifest = _read_manifest(path, members[MANIFEST])
    form = manifest.get("format_version")
    version = manifest.get("refcomp_version")
    if (form, version) != (FORMAT_VERSION, __version__):
        raise UserError(
            f"{path} was written by refcomp {version} (format {form}), "
            f"this is refcomp {__version__} (format {FORMAT_VERSION})",
            why="the calling convention of machine code may differ between versions",
            remedy=f"compile and save the module again, or install refcomp {version}",
        )
    _check_members(path, manifest.get("members"), members)
    return manifest


def _read_manifest(path: str, raw: bytes) -> Manifest:
    try:
        # At the bottom of deeply nested JSON, the stack is too small for the finalizers that
        # the garbage collector might run.
        with paused_collector():
            manifest = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise malformed(path, error) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UserError(
            f"{path} is a zip archive, but not a module file",
            why=f"its manifest does not say {FORMAT!r}",
            remedy="load what module.save(path) wrote",
        )
    return manifest


def _check_machine(path: str, manifest: Manifest) -> None:
    remedy = "compile and save the module on this machine"
    if manifest.get("machine") != machine.machine():
        raise UserError(
            f"{path} has code for {manifest.get('machine')}, this machine is {machine.machine()}",
            remedy=remedy,
        )
    try:
        features = as_texts(manifest.get("cpu_features"))
    except TypeError as error:
        raise malformed(path, error) from error
    if lacking := sorted(set(features) - machine.cpu_flags()):
        raise UserError(
            f"{path} was compiled for a processor with {', '.join(lacking)}, which this one lacks",
            why=f"this machine has {machine.cpu_name()}; the target was {manifest.get('target')}",
            remedy=f"{remedy}, or for a level that both support: 'llvm -mcpu=x86-64-v2'",
        )


def _check_members(path: str, declared: object, members: Mapping[str, bytes]) -> None:
    found = {
        name: _fingerprint(data) for name, data in members.items() if name != MANIFEST
    }
    if not isinstance(declared, dict):
        raise damaged(path, "its manifest does not list the members")
    if set(found) != set(declared):
        names = sorted(set(found) ^ set(declared))
        raise damaged(path, f"manifest and members differ in {', '.join(names)}")
    for name, fingerprint in found.items():
        if declared[name] != fingerprint:
            raise damaged(
                path, f"member {name} was changed after saving (SHA-256 differs)"
            )


def _contents_from(manifest: Manifest, members: Mapping[str, bytes]) -> ModuleContents:
    functions = [
        (signature_from_json(item["signature"]), item["symbol"])
        for item in manifest["functions"]
    ]
    languages = as_texts(manifest["languages"])
    libraries = as_texts(manifest["libraries"])
    as_texts([symbol for _, symbol in functions])
    entry, target, form = as_texts(
        [manifest[k] for k in ("entry", "target", "binary_format")]
    )
    return ModuleContents(
        signatures=tuple(signature for signature, _ in functions),
        entry=entry,
        target=target,
        binary=_LINKED_CODE if form == LINKED else Binary(members["binary"], form),
        symbols={signature.name: symbol for signature, symbol in functions},
        sources={
            name: members[f"sources/{name}"].decode("utf-8", "surrogatepass")
            for name in languages
        },
        cpu_features=tuple(as_texts(manifest["cpu_features"])),
        libraries=tuple(libraries),
    )


def as_texts(values: object) -> list[str]:
    """Return `values`. TypeError unless it is a list of texts."""
    if not isinstance(values, list) or not all(
        isinstance(value, str) for value in values
    ):
        raise TypeError(f"a list of texts is expected, not {values!r}")
    return values


def malformed(path: str, error: BaseException) -> UserError:
    """Return the error for a manifest whose reading raised `error`."""
    why = f"its manifest is malformed: {type(error).__name__}: {error}"
    return damaged(path, why[:500])

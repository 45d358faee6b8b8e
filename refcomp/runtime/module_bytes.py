"""Modules as bytes, for the cache: the members of a module file, without compression.

Ensures: a module that is read back equals the module that was written, its texts included.
Refuses, with UserError or ValueError, bytes that are malformed, or are for another version, machine
or processor; with ToolchainError code that cannot be loaded.
"""

from collections.abc import Callable, Mapping
from functools import partial

from refcomp.foundation.artifacts import Binary
from refcomp.runtime.device import device
from refcomp.runtime.files.bundle import join_members, split_members
from refcomp.runtime.files.manifest import (
    MANIFEST,
    Manifest,
    ModuleContents,
    checked_manifest,
    pack,
    unpack,
)
from refcomp.runtime.module import Module

_PLACE = "the cache"  # the file that messages name
# Formats of code that a tool disassembles. The others are texts.
_DISASSEMBLED = frozenset({"so", "hsaco", "cubin", "fatbin"})


def module_to_bytes(module: Module) -> bytes | None:
    """Return the bytes that `module_from_bytes` reads; None if the module cannot be saved."""
    contents = module.contents
    if contents is None:
        return None
    if isinstance(contents, ModuleContents):
        return join_members(pack(contents))
    from refcomp.runtime.files.program_manifest import (  # noqa: PLC0415  (of devices)
        pack_program,
    )

    return join_members(pack_program(contents))


def module_from_bytes(data: bytes, disassemble: Callable[[Binary], str]) -> Module:
    """Load the module that `module_to_bytes` wrote.

    Args:
        data: the bytes, of which nothing is executed before everything is checked.
        disassemble: makes the source `asm` when it is requested.
    """
    members = split_members(data)
    if MANIFEST not in members:
        raise ValueError("no manifest")
    manifest = checked_manifest(_PLACE, members)
    if "device" in manifest:
        return _program_from(manifest, members, disassemble)
    contents = unpack(_PLACE, members)
    return Module.from_contents(contents, partial(disassemble, contents.binary))


def _program_from(
    manifest: Manifest,
    members: Mapping[str, bytes],
    disassemble: Callable[[Binary], str],
) -> Module:
    from refcomp.runtime.files.program_manifest import (  # noqa: PLC0415  (of devices)
        read_hosts,
        unpack_program,
    )

    program = unpack_program(_PLACE, manifest, members)
    code = program.code
    make_asm = None
    if isinstance(code, Binary) and code.format in _DISASSEMBLED:
        make_asm = partial(disassemble, code)
    hosts = read_hosts(_PLACE, program)
    home = device(program.device)
    return Module.from_program_contents(program, hosts, home, make_asm)

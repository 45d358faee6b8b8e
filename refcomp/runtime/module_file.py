"""Loads the files that `Module.save` wrote, after checking everything that can be checked.

Refuses, by UserError, a file that is missing, foreign, truncated, changed, too large, of another
version of refcomp, for another machine, or for a processor with more instruction sets; and, by
ToolchainError, one that needs a library that is not there, or whose kernels the device refuses.
Nothing is unpickled or executed before. A file for a device that this machine lacks is loaded: its
texts can be read, and calling it tells what is missing.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.elf import needed_libraries
from refcomp.foundation.paths import checked_path
from refcomp.ir.func import PrimFunc
from refcomp.runtime.device import device
from refcomp.runtime.files.archive import damaged, read_archive
from refcomp.runtime.files.manifest import checked_manifest, unpack
from refcomp.runtime.files.program_manifest import (
    ProgramContents,
    read_hosts,
    unpack_program,
)
from refcomp.runtime.host.machine_code import require_library
from refcomp.runtime.module import Module


def load_module(
    path: str | os.PathLike[str], *, disassemble: Callable[[Binary], str] | None = None
) -> Module:
    """The module in the file at `path`; `disassemble` makes its `asm` source when asked for.

    Load files from sources you trust only: they hold machine code.
    """
    name = checked_path(path, "a module file")
    members = read_archive(name)
    manifest = checked_manifest(name, members)
    if "device" in manifest:
        program = unpack_program(name, manifest, members)
        return _program_module(program, read_hosts(name, program), disassemble)
    contents = unpack(name, members)
    if contents.libraries != needed_libraries(contents.binary.data):
        raise damaged(
            name, "its manifest and its code disagree about the libraries needed"
        )
    for library in contents.libraries:
        require_library(library)
    if disassemble is None:
        return Module.from_contents(contents)
    return Module.from_contents(contents, lambda: disassemble(contents.binary))


def _program_module(
    contents: ProgramContents,
    hosts: Sequence[PrimFunc],
    disassemble: Callable[[Binary], str] | None,
) -> Module:
    code = contents.code
    made = (
        None
        if disassemble is None or isinstance(code, Source)
        else partial(disassemble, code)
    )
    return Module.from_program_contents(contents, hosts, device(contents.device), made)

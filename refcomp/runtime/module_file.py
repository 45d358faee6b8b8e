"""Loads the files that `Module.save` wrote, after checking everything that can be checked.

Refuses, by UserError, a file that is missing, foreign, truncated, changed, too large, of another
version of refcomp, for another machine, or for a processor with more instruction sets; and, by
ToolchainError, one that needs a library that is not there. Nothing is unpickled or executed before.
"""

import os
from collections.abc import Callable

from refcomp.artifacts import Binary
from refcomp.runtime.archive import damaged, read_archive
from refcomp.runtime.elf import needed_libraries
from refcomp.runtime.host import require_library
from refcomp.runtime.manifest import unpack
from refcomp.runtime.module import Module


def load_module(
    path: str | os.PathLike[str], *, disassemble: Callable[[Binary], str] | None = None
) -> Module:
    """The module in the file at `path`; `disassemble` makes its `asm` source when asked for.

    Load files from sources you trust only: they hold machine code.
    """
    name = os.fspath(path)
    contents = unpack(name, read_archive(name))
    if contents.libraries != needed_libraries(contents.binary.data):
        raise damaged(name, "its manifest and its code disagree about the libraries needed")
    for library in contents.libraries:
        require_library(library)
    if disassemble is None:
        return Module.from_contents(contents)
    return Module.from_contents(contents, lambda: disassemble(contents.binary))

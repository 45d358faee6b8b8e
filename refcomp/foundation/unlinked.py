"""A check for code objects that were compiled and not linked (`.o`). No GPU can load them.

`clang -c` and `llc -filetype=obj` write such files, in which kernels have no addresses yet.
"""

from refcomp.foundation.elf import ElfFile
from refcomp.foundation.errors import UserError


def refuse_unlinked(data: bytes, file: str = "") -> None:
    """Raise UserError, which says how to link, if `data` is relocatable code of AMD GPUs.

    `file` is the name of the file, for the message.
    """
    try:
        elf = ElfFile(data)
    except ValueError:
        return
    if (elf.kind, elf.machine) != ("ET_REL", "EM_AMDGPU"):
        return
    source = file or "kernels.o"
    result = source.removesuffix(".o") + ".hsaco"
    raise UserError(
        f"{file or 'the code object'} is relocatable: it was compiled, but not linked",
        why="its kernels have no addresses yet, so no GPU can load it",
        remedy="link it by ld.lld of the LLVM version that compiled it: "
        f"ld.lld -shared {source} -o {result}",
    )

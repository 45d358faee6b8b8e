"""Code objects that were compiled and not linked (`.o`), which no GPU loads.

`clang -c` and `llc -filetype=obj` write them: kernels have no addresses yet. Needs the header of
an ELF file. Refuses such a file by a UserError that says how to link it.
"""

from refcomp.foundation.elf import ElfFile
from refcomp.foundation.errors import UserError


def refuse_unlinked(data: bytes, file: str = "") -> None:
    """Raise UserError if `data` is a relocatable ELF file for AMD GPUs; `file` is its name."""
    try:
        elf = ElfFile(data)
    except ValueError:
        return
    if (elf.kind, elf.machine) != ("ET_REL", "EM_AMDGPU"):
        return
    source = file or "kernels.o"
    result = source.removesuffix(".o") + ".hsaco"
    raise UserError(
        f"{file or 'the code object'} is relocatable: it was compiled, and not linked",
        why="its kernels have no addresses yet, so that no GPU can load it",
        remedy=f"link it by the lld of the LLVM that compiled it: ld.lld -shared {source} "
        f"-o {result}",
    )

"""Code objects that were compiled and not linked (`.o`), which no GPU loads.

`clang -c` and `llc -filetype=obj` write them: kernels have no addresses yet. Needs the first bytes
of an ELF file. Refuses such a file by a UserError that says how to link it.
"""

import struct

from refcomp.foundation.errors import UserError

_ELF = b"\x7fELF\x02\x01"
_TYPE_OFFSET, _MACHINE_OFFSET = 16, 18
_RELOCATABLE, _AMDGPU = 1, 224


def refuse_unlinked(data: bytes, file: str = "") -> None:
    """Raise UserError if `data` is a relocatable ELF file for AMD GPUs; `file` is its name."""
    if not data.startswith(_ELF) or len(data) < _MACHINE_OFFSET + 2:
        return
    (kind,) = struct.unpack_from("<H", data, _TYPE_OFFSET)
    (machine,) = struct.unpack_from("<H", data, _MACHINE_OFFSET)
    if (kind, machine) != (_RELOCATABLE, _AMDGPU):
        return
    source = file or "kernels.o"
    result = source.removesuffix(".o") + ".hsaco"
    raise UserError(
        f"{file or 'the code object'} is relocatable: it was compiled, and not linked",
        why="its kernels have no addresses yet, so that no GPU can load it",
        remedy=f"link it by the lld of the LLVM that compiled it: ld.lld -shared {source} "
        f"-o {result}",
    )

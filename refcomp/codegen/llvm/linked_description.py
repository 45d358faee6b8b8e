"""Print the description of the functions of an object into its text in LLVM IR.

Ensures: the object has a note of ELF, with the name `refcomp` and the type 1, whose contents are
the description. Linkers keep it, also those that discard what nothing refers to.
`refcomp.runtime.host.linked_objects` reads it.
"""

from refcomp.codegen.llvm.separate_imports import separate
from refcomp.codegen.spelling import load_spelling

_ALIGNMENT = 4  # bytes, of each part of a note


def with_description(text: str, description: bytes) -> str:
    """Return the text of a file with a note that holds `description`.

    Args:
        text: the LLVM IR of a whole module. Its own list of what compilers keep is extended.
        description: any bytes.
    """
    padding = -len(description) % _ALIGNMENT
    spelled = "".join(f"\\{byte:02x}" for byte in description + bytes(padding))
    note = load_spelling("llvm").macros.linked_description(
        size=len(description), length=len(description) + padding, text=spelled
    )
    return "".join(separate([text, note]))

"""The one error for machine code that the emulator cannot run."""

from __future__ import annotations

from refcomp.emulator.code.assembly import Instruction
from refcomp.foundation.errors import Unsupported


def not_emulated(what: str, instruction: Instruction) -> Unsupported:
    """Return the error for an instruction, or a form of one, that the emulator lacks.

    Args:
        what: a noun phrase, such as "DPP of comparisons".
        instruction: the instruction; the error quotes it with its line.
    """
    return Unsupported(
        f"the emulator does not support {what}",
        where=str(instruction),
        remedy="run the kernel on a GPU, or add the form to refcomp/emulator",
    )

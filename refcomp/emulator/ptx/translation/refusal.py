"""The reason why a kernel cannot be translated. The interpreter runs it then."""

from __future__ import annotations

from refcomp.emulator.ptx.text.module import PtxInstruction


class NotTranslated(Exception):
    """A kernel has an instruction, or an operand, that translated code lacks."""

    def __init__(self, instruction: PtxInstruction, what: str = "") -> None:
        reason = what or f"{instruction.opcode}.{'.'.join(instruction.modifiers)}"
        super().__init__(f"line {instruction.line}: {reason}")

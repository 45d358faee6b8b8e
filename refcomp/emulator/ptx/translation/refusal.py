"""The reason why a kernel cannot be translated. The interpreter runs it then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.errors import RefcompError


class NotTranslated(Exception):
    """A kernel has an instruction or an operand that is not translated."""

    def __init__(self, instruction: PtxInstruction, what: str = "") -> None:
        reason = what or f"{instruction.opcode}.{'.'.join(instruction.modifiers)}"
        super().__init__(f"line {instruction.line}: {reason}")


@contextmanager
def refusing(instruction: PtxInstruction) -> Iterator[None]:
    """Raise NotTranslated if an instruction lacks an operand, or is malformed in any other way.

    So the interpreter reports the error, and only if the instruction runs.
    """
    try:
        yield
    except (NotTranslated, RefcompError):
        raise
    except Exception as error:  # whatever the code makes of what it does not foresee
        what = f"not foreseen: {instruction.text}"
        raise NotTranslated(instruction, what) from error

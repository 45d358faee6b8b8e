"""The modifiers of an instruction, which are read one after the other.

A reader takes the modifiers that it knows from a `Form`. A modifier that no reader takes is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import is_type
from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.foundation.errors import Unsupported, UserError

# Modifiers of PTX that are not supported in any form.
_LACKING = ("oob", "rs", "scaled")


class Form:
    """An instruction whose modifiers are being read.

    Attributes:
        instruction: the whole instruction.
        opcode: its name, such as "cvt".
        types: the modifiers that are types, in order: first those of results, then of sources.
    """

    def __init__(self, instruction: PtxInstruction) -> None:
        self.instruction = instruction
        self.opcode = instruction.opcode
        self.types = tuple(filter(is_type, instruction.modifiers))
        self._rest = [name for name in instruction.modifiers if not is_type(name)]

    @property
    def type(self) -> str:
        """The last type, which is the type of the sources; "" if there is none."""
        return self.types[-1] if self.types else ""

    def take(self, *names: str, default: str = "") -> str:
        """Take the first modifier that is among the names, and return it; else `default`."""
        for modifier in self._rest:
            if modifier in names:
                self._rest.remove(modifier)
                return modifier
        return default

    def has(self, name: str) -> bool:
        """Take a modifier. Return False if it is missing."""
        return self.take(name) == name

    def must_take(self, *names: str) -> str:
        """Take the modifier that is among the names, and return it.

        Raises:
            UserError: the instruction has none of them.
        """
        found = self.take(*names)
        if not found:
            spelled = ", ".join(f".{name}" for name in names)
            raise self.damaged(f"{self.opcode} needs one of {spelled}")
        return found

    def check_read(self) -> None:
        """Raise UserError for a modifier that has not been taken."""
        for name in self._rest:
            if name in _LACKING:
                raise self.unsupported(f"the modifier .{name} of {self.opcode}")
        if self._rest:
            raise self.damaged(
                f"{self.opcode} does not have the modifier .{self._rest[0]}"
                f"{' with .' + self.type if self.type else ''}"
            )

    def damaged(self, what: str) -> UserError:
        """Return the error for an instruction that is not PTX."""
        return UserError(
            what,
            where=f"line {self.instruction.line}: {self.instruction}",
            remedy="see NVIDIA's Parallel Thread Execution ISA for the forms of the instruction",
        )

    def unsupported(self, what: str) -> Unsupported:
        """Return the error for a form that the emulator lacks.

        Args:
            what: a noun phrase, such as "vectors of 8-bit floats".
        """
        return Unsupported(
            f"the emulator of PTX does not support {what}",
            where=f"line {self.instruction.line}: {self.instruction}",
            remedy="run the kernel on a GPU, or add the form to refcomp/emulator/ptx/instructions",
        )


# Takes the modifiers that it knows from a form, and returns what the instruction does.
Describe: TypeAlias = Callable[[Form], ValueRule]
# (opcode, last type) -> the function that describes the instruction.
Table: TypeAlias = dict[tuple[str, str], Describe]


def rows(opcodes: str, kinds: str, describe: Describe) -> Table:
    """Return the rows of a table: each opcode with each last type, both separated by blanks."""
    return {
        (opcode, kind): describe for opcode in opcodes.split() for kind in kinds.split()
    }


def joined(tables: Iterable[Table]) -> Table:
    """Return all rows of some tables, in which no row occurs twice."""
    result: Table = {}
    for table in tables:
        assert result.keys().isdisjoint(table), result.keys() & table
        result |= table
    return result

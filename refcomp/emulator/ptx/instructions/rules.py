"""The table of all instructions on values, by opcode and type.

Refuses, by UserError, forms that PTX does not have. Refuses, by Unsupported, opcodes and forms that
are missing here.
"""

from __future__ import annotations

from refcomp.emulator.ptx.instructions.approximate import APPROXIMATE
from refcomp.emulator.ptx.instructions.bits import BITS
from refcomp.emulator.ptx.instructions.comparisons import COMPARISONS
from refcomp.emulator.ptx.instructions.conversions import CONVERSIONS
from refcomp.emulator.ptx.instructions.floats import FLOATS
from refcomp.emulator.ptx.instructions.form import Form, Table, joined
from refcomp.emulator.ptx.instructions.halves import HALVES
from refcomp.emulator.ptx.instructions.integers import INTEGERS
from refcomp.emulator.ptx.instructions.moves import MOVES
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import CARRY
from refcomp.emulator.ptx.instructions.wide import CARRYING_SUMS, WIDE
from refcomp.emulator.ptx.text.module import Pair, PtxInstruction, Vector
from refcomp.foundation.counted import counted

RULES: Table = joined(
    [
        APPROXIMATE,
        BITS,
        COMPARISONS,
        CONVERSIONS,
        FLOATS,
        HALVES,
        INTEGERS,
        MOVES,
        WIDE,
    ]
)
OPCODES = frozenset(opcode for opcode, _ in RULES)
# Types of PTX that no instruction here has.
_LACKING = frozenset({"b128", "u128", "s128", "f32x2"})


def rule_of(instruction: PtxInstruction) -> ValueRule:
    """Return the rule by which an instruction computes.

    Raises:
        UserError: PTX has no such form of the opcode.
        Unsupported: the emulator lacks the opcode or the form.
    """
    form = Form(instruction)
    if form.opcode not in OPCODES:
        raise form.unsupported(f"the instruction {form.opcode}")
    lacking = _LACKING.intersection(form.types)
    if lacking:
        raise form.unsupported(f"{form.opcode} of .{min(lacking)}")
    is_carrying = "cc" in instruction.modifiers and form.opcode in ("add", "sub")
    table = CARRYING_SUMS if is_carrying else RULES
    describe = table.get((form.opcode, form.type))
    if describe is None:
        kinds = [f".{kind}" for opcode, kind in table if opcode == form.opcode]
        raise form.damaged(
            f"{form.opcode} needs one of the types {', '.join(sorted(kinds))}"
        )
    rule = describe(form)
    form.check_read()
    _check_operands(form, rule)
    return rule


def _check_operands(form: Form, rule: ValueRule) -> None:
    """Raise UserError if the instruction has too many or too few operands."""
    needed = [kind for kind in (*rule.results, *rule.sources) if kind != CARRY]
    given = 0
    for operand in form.instruction.operands:
        if isinstance(operand, Vector):
            given += len(operand.parts)
        else:
            given += 2 if isinstance(operand, Pair) else 1
    if given != len(needed):
        raise form.damaged(
            f"{form.opcode} has {counted(given, 'operand')} here, and needs {len(needed)}"
        )

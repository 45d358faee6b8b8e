"""The reason why a kernel is not translated names the line and the instruction."""

from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.emulator.ptx.translation.refusal import NotTranslated

_ONE = PtxInstruction(0, 7, "fns", ("b32",), (), "fns.b32 d, a, b, c")


def test_the_line_and_the_instruction_are_named():
    assert str(NotTranslated(_ONE)) == "line 7: fns.b32"
    assert str(NotTranslated(_ONE, "the operand x")) == "line 7: the operand x"

"""The reason why a kernel is not translated names the line and the instruction."""

import pytest

from refcomp.emulator.ptx.text.module import PtxInstruction
from refcomp.emulator.ptx.translation.refusal import NotTranslated, refusing
from refcomp.foundation.errors import UserError

_ONE = PtxInstruction(0, 7, "fns", ("b32",), (), "fns.b32 d, a, b, c")


def test_the_line_and_the_instruction_are_named():
    assert str(NotTranslated(_ONE)) == "line 7: fns.b32"
    assert str(NotTranslated(_ONE, "the operand x")) == "line 7: the operand x"


def test_whatever_goes_wrong_with_an_instruction_is_a_reason():
    expected = "line 7: not foreseen: fns.b32 d, a, b, c"
    with pytest.raises(NotTranslated, match=expected), refusing(_ONE):
        raise IndexError("no such operand")
    with pytest.raises(NotTranslated, match="line 7: the operand x"), refusing(_ONE):
        raise NotTranslated(_ONE, "the operand x")
    with pytest.raises(UserError, match="no such form"), refusing(_ONE):
        raise UserError("no such form")

import pytest

from refcomp.emulator.ptx.instructions.form import Form, joined, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.instructions.worded import instruction


def _describe(form: Form) -> ValueRule:
    return ValueRule(lambda a: a, (form.type,), (form.type,))


def test_modifiers_are_read_once() -> None:
    form = Form(instruction("cvt.rn.ftz.f32.f64 d, a"))
    assert form.types == ("f32", "f64")
    assert form.type == "f64"
    assert form.take("rz", "rn") == "rn"
    assert form.take("rz", "rn", default="none") == "none"
    assert form.has("ftz")
    assert not form.has("ftz")
    form.check_read()


def test_missing_and_remaining_modifiers_are_refused_with_the_line() -> None:
    form = Form(instruction("add.abc.f32 d, a, b"))
    with pytest.raises(UserError, match="add needs one of .rn, .rz") as caught:
        form.must_take("rn", "rz")
    assert caught.value.where == "line 7: add.abc.f32 d, a, b"
    with pytest.raises(UserError, match="add does not have the modifier .abc with .f32"):
        form.check_read()
    with pytest.raises(UserError, match=r"bar does not have the modifier .abc\n"):
        Form(instruction("bar.abc 0")).check_read()


def test_modifiers_that_the_emulator_lacks_are_named() -> None:
    form = Form(instruction("cvt.rs.f16x2.f32 d, a, b, c"))
    with pytest.raises(Unsupported, match="the modifier .rs of cvt"):
        form.check_read()


def test_rows_of_tables_are_joined() -> None:
    table = joined([rows("a b", "u32", _describe), rows("a", "s32 f32", _describe)])
    assert set(table) == {("a", "u32"), ("b", "u32"), ("a", "s32"), ("a", "f32")}

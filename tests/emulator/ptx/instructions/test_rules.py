"""The table of all instructions: its refusals, and that ptxas knows each form that tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from refcomp.emulator.ptx.instructions.rules import OPCODES, rule_of
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.instructions.assembled import refusals
from tests.emulator.ptx.instructions.spelled_forms import accepted_forms
from tests.emulator.ptx.instructions.worded import instruction, rule


def test_unknown_opcodes_are_named() -> None:
    with pytest.raises(Unsupported, match="does not support the instruction vadd4") as caught:
        rule_of(instruction("vadd4.s32.s32.s32 d, a, b, c"))
    assert caught.value.where == "line 7: vadd4.s32.s32.s32 d, a, b, c"
    assert "refcomp/emulator/ptx" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("popc.f32 d, a", "popc needs one of the types .b32, .b64"),
        ("and d, a, b", "and needs one of the types .b16, .b32, .b64, .pred"),
        ("add.s32 d, a", "add has 2 operands here, and needs 3"),
        ("add.s32 d, a, b, c", "add has 4 operands here, and needs 3"),
    ],
)
def test_types_and_operands_are_checked(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)


def test_types_that_the_emulator_lacks_are_named() -> None:
    with pytest.raises(Unsupported, match="the emulator of PTX does not support mov of .b128"):
        rule("mov.b128 d, {a, b}")
    with pytest.raises(Unsupported, match="the emulator of PTX does not support add of .f32x2"):
        rule("add.rn.f32x2 d, a, b")


def test_table_has_all_opcodes_of_arithmetic() -> None:
    assert {"add", "fma", "cvt", "setp", "prmt", "lop3", "mad", "ex2", "mov", "selp"} <= OPCODES


@pytest.mark.nvcc
def test_ptxas_knows_each_form_that_has_a_rule(tmp_path: Path) -> None:
    forms = accepted_forms()
    assert len(forms) > 600
    assert refusals(forms, tmp_path) == {}


@pytest.mark.nvcc
def test_ptxas_knows_forms_with_operands_of_their_own(tmp_path: Path) -> None:
    forms = [
        "lop3.b32 d, a, b, c, e",
        "lop3.or.b32 d|p, a, b, c, e, q",
        "prmt.b32.f4e d, a, b, c",
        "mov.b64 d, {a, b}",
        "mov.b32 {a, b}, d",
        "mov.b64 {a, b, c, e}, d",
        "dp4a.u32.s32 d, a, b, c",
        "dp2a.hi.s32.u32 d, a, b, c",
        "max.f32 d, a, b, c",
    ]
    assert refusals(forms, tmp_path) == {}

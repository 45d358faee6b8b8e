"""Instructions read off a disassembly."""

import pytest

from refcomp.emulator.code.assembly import read_assembly, read_operand
from refcomp.foundation.errors import ToolchainError
from tests.emulator.snippets import assembly, instruction

_TEXT = """
0000000000002c00 <kernel>:
\ts_load_dwordx2 s[4:5], s[0:1], 0x18       // 000000002C00: C0060100 00000018
; kernel.ir:3
\tv_fma_f32 v1, -v2, |s3|, -|v4| clamp mul:2 // 000000002C08: D1CB0001 00000702
\ts_cbranch_execz 21                        // 000000002C10: BF880015 <kernel+0x7c>
"""


def test_names_places_and_sizes():
    code = read_assembly(_TEXT)
    first, second, third = (code.instruction(n) for n in range(len(code)))
    assert (first.mnemonic, first.address, first.size) == ("s_load_dwordx2", 0x2C00, 8)
    assert code.number_at(0x2C10) == 2 and code.number_at(0x2C04) is None
    assert code.symbol_of(third) == "kernel+0x10"
    assert (first.source, second.source, third.source) == ("", "kernel.ir:3", "kernel.ir:3")
    assert str(third).endswith("at 0x2c10, made of kernel.ir:3)")
    assert str(second).startswith("v_fma_f32 v1, -v2, |s3|, -|v4| clamp mul:2  (D1CB0001")


def test_operands_and_modifiers():
    fma = read_assembly(_TEXT).instruction(1)
    assert fma.modifiers == {"clamp": "", "mul": "2"}
    assert [(o.file, o.index, o.negative, o.absolute) for o in fma.operands] == [
        ("v", 1, False, False),
        ("v", 2, True, False),
        ("s", 3, False, True),
        ("v", 4, True, True),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("v[4:7]", ("v", 4, 4)),
        ("a[0:3]", ("a", 0, 4)),
        ("vcc", ("s", 106, 2)),
        ("exec_hi", ("s", 127, 1)),
        ("m0", ("s", 124, 1)),
        ("ttmp9", ("s", 117, 1)),
        ("0x3f800000", ("c", 0, 1)),
        ("-0.5", ("c", 0, 1)),
        ("off", ("c", 0, 1)),
    ],
)
def test_places(text, place):
    operand = read_operand(text)
    assert (operand.file, operand.index, operand.count) == place
    assert not operand.negative


def test_commas_within_brackets_part_nothing():
    moved = instruction("v_mov_b32_dpp v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf")
    assert moved.mnemonic == "v_mov_b32" and len(moved.operands) == 2
    assert moved.modifiers["quad_perm"] == "[1,0,3,2]"
    mode = instruction("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3")
    assert [operand.text for operand in mode.operands] == ["hwreg(HW_REG_MODE, 4, 2)", "3"]
    extended = instruction("v_xor_b32_sdwa v10, sext(v4), v6 src0_sel:WORD_0").operands[1]
    assert extended.sign_extended and extended.index == 4


def test_text_without_instructions_is_refused():
    with pytest.raises(ToolchainError, match="the disassembly holds no instructions"):
        read_assembly("no such file")


def test_snippets_are_laid_out_one_by_one():
    code = assembly("f:", "s_nop 0", "g:", "s_endpgm")
    assert code.symbols == {0: "f", 4: "g"} and code.mnemonic(1) == "s_endpgm"

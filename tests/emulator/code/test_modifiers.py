"""Modifiers as the ledger lists them."""

import pytest

from refcomp.emulator.code.modifiers import flags_of, modifiers_of
from tests.emulator.snippets import instruction


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("v_add_f32_e64 v1, -v2, |s3| clamp mul:2", "abs clamp neg omod"),
        ("v_add_u32_e32 v1, v2, v3", ""),
        ("v_add_u32_sdwa v1, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1"
         " src1_sel:DWORD", "src0_sel"),
        ("v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0x3", "bank_mask row_shr"),
        ("global_load_dword v1, v2, s[0:1] offset:4 sc0 nt", "offset"),
        ("global_atomic_add v1, v2, v3, s[0:1] sc0 sc1", "sc0"),
        ("v_bfe_i32 v0, sext(v1), 3, 4", "sext"),
    ],
)  # fmt: skip
def test_what_is_not_as_usual_is_named(line, names):
    assert modifiers_of(instruction(line)) == frozenset(names.split())


def test_a_flag_for_each_operand():
    told = {"op_sel": "[1,0,0]", "neg": "[0,1]"}
    assert flags_of(told, "op_sel", 2) == [True, False, False]
    assert flags_of(told, "neg", 3) == [False, True, False]
    assert flags_of(told, "op_sel_hi", 2) == [False, False]
    assert flags_of(told, "op_sel_hi", 2, usual=True) == [True, True]
    assert flags_of({"op_sel_hi": "[0]"}, "op_sel_hi", 2, usual=True) == [False, True]

"""Blocks of a program, and instructions that are not known."""

import pytest

from refcomp.emulator.execution.program import DecodedProgram, bind, known_mnemonics
from refcomp.foundation.errors import Unsupported
from tests.emulator.snippets import assembly, instruction


def test_blocks_begin_where_branches_lead():
    code = assembly(
        "f:",
        "s_mov_b32 s0, 0",
        "s_add_u32 s0, s0, 1",
        "s_nop 0",
        "s_cbranch_scc1 65533",
        "s_endpgm",
    )
    program = DecodedProgram(code)
    first, loop = program.block(0), program.block(1)
    assert (len(first.runs), first.end, first.next) == (1, None, 1)
    assert (len(loop.runs), loop.count, loop.target, loop.next) == (1, 3, 1, 4)
    assert program.block(4).end.mnemonic == "s_endpgm"
    assert program.block(1) is loop
    names = {"s_mov_b32", "s_add_u32", "s_nop", "s_cbranch_scc1", "s_endpgm"}
    assert program.executed == {(name, frozenset()) for name in names}


def test_an_unknown_instruction_is_refused_with_its_place():
    with pytest.raises(
        Unsupported, match="does not support the instruction v_frobnicate"
    ) as caught:
        bind(instruction("v_frobnicate_f32 v0, v1"))
    assert "v_frobnicate_f32 v0, v1  (00000000 at 0x0)" in str(caught.value)
    assert "or add the form to refcomp/emulator" in str(caught.value)


def test_waiting_does_nothing():
    assert bind(instruction("s_waitcnt vmcnt(0) lgkmcnt(0)")) is None


def test_other_modes_have_blocks_of_their_own():
    code = assembly(
        "f:", "v_add_f32_e32 v0, v1, v1", "s_setreg_b32 hwreg(HW_REG_MODE), s0", "s_endpgm"
    )
    program = DecodedProgram(code)
    usual, other = program.block(0), program.block(0, mode=0xC0)
    assert usual is not other and program.block(0, mode=0xC0) is other
    assert (usual.count, usual.end, usual.next) == (2, None, 2)


def test_code_must_end():
    with pytest.raises(Unsupported, match="the code ends without s_endpgm"):
        DecodedProgram(assembly("f:", "s_nop 0")).block(0)


@pytest.mark.parametrize("where", ["9", "s[0:1]", "v0, 12"])
def test_a_branch_must_lead_to_an_instruction(where):
    """Where a wave meets it: tables among the instructions are no fault."""
    program = DecodedProgram(assembly("f:", "s_nop 0", "s_endpgm", f"s_branch {where}", "s_endpgm"))
    assert program.block(0).count == 2
    with pytest.raises(Unsupported, match="a branch leads to a place where no instruction begins"):
        program.block(2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v_mov_b32_e32 v0", "0 sources of v_mov_b32, which has 1"),
        ("v_readlane_b32 s0, v1", "does not support these operands of v_readlane_b32"),
        ("ds_write_b32", "does not support these operands of ds_write_b32"),
    ],
)
def test_operands_that_no_such_instruction_has_are_refused(line, message):
    with pytest.raises(Unsupported, match=message):
        bind(instruction(line))


def test_blocks_know_how_many_registers_they_name():
    code = ("f:", "v_mov_b32_e32 v7, a3", "global_load_dwordx4 v[8:11], v[2:3], off", "s_endpgm")
    assert DecodedProgram(assembly(*code)).block(0).registers == (12, 4)
    assert DecodedProgram(assembly("f:", "s_endpgm")).block(0).registers == (0, 0)


def test_what_is_known():
    names = known_mnemonics()
    assert len(names) >= 400 and {"v_add_f32", "v_pk_fma_f32", "s_barrier"} <= set(names)

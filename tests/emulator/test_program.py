"""Blocks of a program, and instructions that are not known."""

import pytest

from refcomp.emulator.program import Program, bind, known_mnemonics
from refcomp.errors import Unsupported
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
    program = Program(code)
    first, loop = program.block(0), program.block(1)
    assert (len(first.runs), first.end, first.next) == (1, None, 1)
    assert (len(loop.runs), loop.count, loop.target, loop.next) == (1, 3, 1, 4)
    assert program.block(4).end.mnemonic == "s_endpgm"
    assert program.block(1) is loop
    names = {"s_mov_b32", "s_add_u32", "s_nop", "s_cbranch_scc1", "s_endpgm"}
    assert program.executed == {(name, frozenset()) for name in names}


def test_an_unknown_instruction_is_refused_with_its_place():
    with pytest.raises(Unsupported, match="does not know the instruction v_frobnicate") as caught:
        bind(instruction("v_frobnicate_f32 v0, v1"))
    assert "v_frobnicate_f32 v0, v1  (00000000 at 0x0)" in str(caught.value)
    assert "add a row to the tables" in str(caught.value)


def test_waiting_does_nothing():
    assert bind(instruction("s_waitcnt vmcnt(0) lgkmcnt(0)")) is None


def test_other_modes_have_blocks_of_their_own():
    code = assembly(
        "f:", "v_add_f32_e32 v0, v1, v1", "s_setreg_b32 hwreg(HW_REG_MODE), s0", "s_endpgm"
    )
    program = Program(code)
    usual, other = program.block(0), program.block(0, mode=0xC0)
    assert usual is not other and program.block(0, mode=0xC0) is other
    assert (usual.count, usual.end, usual.next) == (2, None, 2)


def test_code_must_end():
    with pytest.raises(Unsupported, match="the code ends without s_endpgm"):
        Program(assembly("f:", "s_nop 0")).block(0)
    with pytest.raises(Unsupported, match="no instruction begins at 0x28"):
        Program(assembly("f:", "s_branch 9", "s_endpgm"))


def test_what_is_known():
    names = known_mnemonics()
    assert len(names) >= 400 and {"v_add_f32", "v_pk_fma_f32", "s_barrier"} <= set(names)

"""Registers whose number stands in M0."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.instructions.indexing import positions_after
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.snippets import (
    assembly,
    execute,
    found,
    get,
    instruction,
    make_waves,
    put,
    run,
    scalar,
    set_scalar,
)


def _waves(count=2, **options):
    """v4 to v9 are 104 to 109; s0 is 1 in the first wave and 3 in the second."""
    waves = make_waves(count, **options)
    for number in range(4, 10):
        put(waves, number, np.full(64, 100 + number, np.uint32))
    waves.initialise_scalar(0, np.array([1, 3], np.uint32)[:count])
    return waves


def _run(waves, *lines):
    execute(waves, assembly("begin:", *lines, "s_endpgm"))
    return [get(waves, 0, wave=wave)[0] for wave in range(waves.waves)]


def test_sources_are_those_further_on():
    lines = ["s_set_gpr_idx_on s0, gpr_idx(SRC0)", "v_mov_b32_e32 v0, v4", "s_set_gpr_idx_off"]
    assert _run(_waves(), *lines) == [105, 107]
    after = [*lines, "v_mov_b32_e32 v0, v4"]
    assert _run(_waves(), *after) == [104, 104]


def test_each_operand_may_be_meant():
    sums = ("v_sub_u32_e32 v0, v9, v4", "s_set_gpr_idx_off")
    assert _run(_waves(), "s_set_gpr_idx_on s0, gpr_idx(SRC1)", *sums) == [4, 2]
    waves = _waves()
    lines = ("v_mov_b32_e32 v4, 7", "s_set_gpr_idx_off")
    _run(waves, "s_set_gpr_idx_on s0, gpr_idx(DST)", *lines)
    assert [get(waves, n, wave=1)[0] for n in (4, 5, 6, 7)] == [104, 105, 106, 7]
    assert [get(waves, n, wave=0)[0] for n in (4, 5, 6, 7)] == [104, 7, 106, 107]


def test_the_index_and_what_is_indexed_may_change():
    lines = ["s_set_gpr_idx_on 2, gpr_idx(SRC0,DST)", "s_set_gpr_idx_mode gpr_idx(SRC0)"]
    lines += ["s_set_gpr_idx_idx s0", "v_mov_b32_e32 v0, v4", "s_set_gpr_idx_off"]
    waves = _waves()
    assert _run(waves, *lines) == [105, 107]
    assert scalar(waves, 124) == 0x1001
    positions = positions_after(instruction("s_set_gpr_idx_mode gpr_idx(SRC1,SRC2)"), frozenset())
    assert positions == {2, 3}


def test_scalar_registers():
    waves = _waves()
    for number, value in enumerate((10, 11, 12, 13, 14)):
        set_scalar(waves, 20 + number, value)
    run(waves, "s_mov_b32 m0, s0", "s_movrels_b32 s30, s20", "s_movreld_b32 s40, s20")
    s = waves.values.s
    assert (s[30, 0], s[30, 1]) == (11, 13) and (s[41, 0], s[43, 1]) == (10, 10)
    run(waves, "s_mov_b32 m0, 2", "s_movrels_b64 s[30:31], s[20:21]")
    assert (s[30, 1], s[31, 1]) == (12, 13)


def test_an_index_must_be_defined_and_within():
    waves = _waves()
    run(waves, "s_set_gpr_idx_on s9, gpr_idx(SRC0)")
    assert [(f.kind, f.what) for f in found(waves)] == [
        (UNDEFINED, "which register is meant depends on bits that nothing wrote")
    ]
    lines = ("s_set_gpr_idx_on 12, gpr_idx(SRC0)", "v_mov_b32_e32 v0, v4", "s_set_gpr_idx_off")
    with pytest.raises(UserError, match="the index 12 leads beyond the registers of the kernel"):
        _run(_waves(), *lines)


def test_a_jump_is_refused():
    with pytest.raises(Unsupported, match="a jump while registers are indexed"):
        _run(_waves(), "s_set_gpr_idx_on s0, gpr_idx(SRC0)", "s_branch 0")

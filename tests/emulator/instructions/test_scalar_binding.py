"""Scalar instructions bound to operands: EXEC saved, and undefined bits that reach it."""

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.machine.registers import SCC
from tests.emulator.snippets import LANE, found, make_waves, run, scalar, set_scalar


def test_exec_is_saved_and_changed():
    waves = make_waves()
    set_scalar(waves, 4, 0xF0, 2)
    run(waves, "s_and_saveexec_b64 s[6:7], s[4:5]")
    assert scalar(waves, 6, "u64") == (1 << 64) - 1 and scalar(waves, 126, "u64") == 0xF0
    assert waves.values.scc[0] and (waves.mask[0] == ((LANE >= 4) & (LANE < 8))).all()
    run(waves, "s_andn2_saveexec_b64 s[6:7], s[6:7]")
    assert scalar(waves, 126, "u64") == ~0xF0 & (1 << 64) - 1
    run(waves, "s_xor_b64 exec, exec, -1", "s_or_b64 exec, exec, 3")
    assert scalar(waves, 126, "u64") == 0xF3


def test_undefined_lanes_are_told_of():
    waves = make_waves(v1=LANE)
    run(waves, "v_cmp_lt_u32_e32 vcc, v1, v9", "s_and_saveexec_b64 s[6:7], vcc")
    (finding,) = found(waves)
    assert finding.kind == UNDEFINED and "which lanes run" in finding.what
    assert finding.times == 64


def test_a_mask_of_defined_bits_is_no_finding():
    waves = make_waves()
    set_scalar(waves, 4, 0, 2)
    run(waves, "s_and_b64 s[8:9], s[4:5], s[10:11]", "s_mov_b64 exec, s[8:9]")
    assert not found(waves) and scalar(waves, 126, "u64") == 0


def test_what_scc_depends_on():
    waves = make_waves(s4=1)
    run(waves, "s_cmp_eq_u32 s4, s5")
    assert SCC in waves.dirty and waves.shadow.scc[0]
    run(waves, "s_cmp_eq_u32 s4, 1")
    assert SCC not in waves.dirty
    run(waves, "s_mov_b64 exec, s[20:21]")
    assert "which lanes run" in found(waves)[0].what

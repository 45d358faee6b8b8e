"""What s_setreg writes holds for the waves that ran it, from the next instruction on."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import UNDEFINED
from refcomp.emulator.execution.program import bind
from refcomp.emulator.instructions.mode_register import bind_mode
from refcomp.foundation.errors import Unsupported
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
)


def _run(waves, *lines):
    put(waves, 1, np.full(64, 2.0**-127, np.float32))
    put(waves, 2, np.full(64, 1 + 2.0**-23, np.float32))
    return execute(waves, assembly("begin:", *lines, "s_endpgm"))


def test_rounding_changes_on_the_way():
    waves = make_waves()
    _run(
        waves,
        "v_mul_f32_e32 v3, v2, v2",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1",
        "v_mul_f32_e32 v4, v2, v2",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0",
        "v_mul_f32_e32 v5, v2, v2",
    )
    low, high = 1 + 2.0**-22, 1 + 3 * 2.0**-23
    assert [get(waves, n, "f32")[0] for n in (3, 4, 5)] == [low, high, low]


def test_denormals():
    waves = make_waves()
    _run(waves, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0", "v_add_f32_e32 v3, v1, v1")
    assert get(waves, 3, "f32")[0] == 0


def test_parts_have_instructions_of_their_own():
    waves = make_waves()
    _run(
        waves,
        "s_denorm_mode 12",
        "v_add_f32_e32 v3, v1, v1",
        "s_round_mode 0x1",
        "v_mul_f32_e32 v4, v2, v2",
        "s_getreg_b32 s5, hwreg(HW_REG_MODE, 0, 8)",
    )
    assert get(waves, 3, "f32")[0] == 0 and get(waves, 4, "f32")[0] == 1 + 3 * 2.0**-23
    assert scalar(waves, 5) == 0xC1


def test_waves_may_differ():
    """The second wave rounds up; both meet again at the same instructions."""
    waves = make_waves(2)
    waves.initialise_scalar(4, np.array([0, 1], np.uint32))
    _run(
        waves,
        "s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s4",
        "v_mul_f32_e32 v3, v2, v2",
        "s_getreg_b32 s5, hwreg(HW_REG_MODE, 0, 8)",
    )
    assert [get(waves, 3, "f32", wave=n)[0] for n in (0, 1)] == [1 + 2.0**-22, 1 + 3 * 2.0**-23]
    assert waves.values.s[5].tolist() == [0xF0, 0xF1]


def test_the_register_can_be_read():
    waves = make_waves()
    run(waves, "s_getreg_b32 s0, hwreg(HW_REG_MODE)", "s_getreg_b32 s1, hwreg(HW_REG_MODE, 4, 2)")
    assert (scalar(waves, 0), scalar(waves, 1)) == (0x3F0, 3)


def test_the_treatment_of_nans_can_be_changed():
    """Bit 8 is DX10_CLAMP, bit 9 IEEE_MODE."""
    waves = make_waves(v6=np.uint32(0x7F800001))
    _run(
        waves,
        "v_mul_f32_e32 v3, 1.0, v6",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 0",
        "v_mul_f32_e32 v4, 1.0, v6",
        "v_max_f32_e64 v5, v6, v6 clamp",
        "s_getreg_b32 s5, hwreg(HW_REG_MODE)",
    )
    assert [get(waves, n)[0] for n in (3, 4, 5)] == [0x7FC00001, 0x7F800001, 0x7F800001]
    assert scalar(waves, 5) == 0xF0


def test_setting_what_already_is_costs_nothing():
    waves = make_waves()
    run(waves, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15")
    assert waves.modes is None
    run(waves, "s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s9")
    assert [(f.kind, f.what) for f in found(waves)] == [
        (UNDEFINED, "how numbers are rounded depends on bits that nothing wrote")
    ]


def test_what_is_not_known_is_refused():
    with pytest.raises(
        Unsupported, match=r"does not support the register hwreg\(HW_REG_TRAPSTS, 0, 4\)"
    ):
        bind(instruction("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS, 0, 4)"))
    waves = make_waves(s1=1)
    with pytest.raises(Unsupported, match="does not support changes of this part of MODE"):
        run(waves, "s_setreg_b32 hwreg(HW_REG_MODE, 23, 1), s1")
    assert bind_mode(instruction("s_mov_b32 s0, 1")) is None

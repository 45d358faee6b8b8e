"""Sums over instructions: by class, by source line, of lanes."""

from dataclasses import replace

from refcomp.emulator.observers.counting.counts import (
    InstructionCounts,
    KernelCounts,
    MemoryTraffic,
)
from tests.emulator.snippets import instruction


def _counts(*rows):
    kernel = KernelCounts("k", "gfx942", 64, 128)
    for number, (text, waves, lanes, access) in enumerate(rows):
        one = replace(instruction(text), number=number, source=f"kernels.ir:{number // 2}")
        kernel.by_number[number] = InstructionCounts(one, waves, lanes, access)
    return kernel


def test_sums():
    private = MemoryTraffic("private", 4, False, False)
    kernel = _counts(
        ("v_fma_f32 v0, v1, v2, v3", 10, 320, None),
        ("s_add_u32 s0, s1, s2", 10, 640, None),
        ("buffer_load_dword v0, v1, s[0:3], 0 offen", 2, 128, private),
        ("v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 3, 192, None),
    )
    assert kernel.by_class() == {"VALU FMA": 10, "SALU": 10, "scratch": 2, "MFMA": 3}
    assert kernel.by_source() == {"kernels.ir:0": 20, "kernels.ir:1": 5}
    assert kernel.fmas == 320 + 3 * 32 * 32 * 8
    # Scalar instructions have no lanes.
    assert kernel.active_lanes == (320 + 128 + 192) / (15 * 64)
    assert [one.instruction.number for one in kernel.accesses("private")] == [2]
    assert [*kernel.accesses("global")] == []


def test_the_inner_loop_is_what_ran_most_often():
    kernel = _counts(
        ("s_mov_b32 s0, 0", 1, 64, None),
        ("v_fma_f32 v0, v1, v2, v3", 10, 640, None),
        ("v_fma_f32 v0, v1, v2, v3", 10, 640, None),
        ("s_cbranch_scc1 1", 10, 640, None),
    )
    assert kernel.inner_loop() == {"VALU FMA": 2, "branch": 1}


def test_a_kernel_of_which_nothing_ran():
    assert _counts().inner_loop() == {}
    assert _counts().active_lanes == 1 and _counts().fmas == 0


def test_instructions_stand_in_the_order_of_their_addresses():
    kernel = _counts(("s_nop 0", 1, 64, None), ("s_nop 1", 1, 64, None))
    kernel.by_number = dict(reversed(kernel.by_number.items()))
    assert [one.instruction.text for one in kernel.instructions] == ["s_nop 0", "s_nop 1"]


def test_two_instructions_in_one_count_as_the_multiply_add_among_them():
    kernel = _counts(("v_dual_mul_f32 v0, v1, v2 :: v_dual_fmac_f32 v3, v4, v5", 2, 64, None))
    assert (kernel.by_class(), kernel.fmas) == ({"VALU FMA": 2}, 64)

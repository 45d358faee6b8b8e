"""Clocks of a compute unit, computed by hand from counts and figures."""

from dataclasses import replace

import pytest

from refcomp.profile.bound import bound_of
from refcomp.profile.cards import CARDS
from tests.profile.estimated import CARD, access_of, counted_kernel


def test_vector_instructions_take_a_clock_of_a_unit():
    bound = bound_of(counted_kernel(("v_fma_f32 v0, v1, v2, v3", 1000, None)), CARD)
    assert bound.limit == "VALU" and bound.units == 10
    # 1000 waves of 64 lanes by 64 lanes a clock, on 10 units at 1 GHz.
    assert bound.seconds["VALU"] == pytest.approx(100e-9)
    assert bound.peak == bound.useful == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "clocks"),
    [
        ("v_exp_f32 v0, v1", 4),
        ("v_mul_lo_u32 v0, v1, v2", 4),
        ("v_mad_u64_u32 v[0:1], s[0:1], v2, v3, v[4:5]", 4),
        ("v_mul_lo_u16 v0, v1, v2", 1),
        ("v_add_f64 v[0:1], v[2:3], v[4:5]", 16),
    ],
)
def test_some_take_longer(text, clocks):
    unit = replace(CARD.unit, f64_rate=1 / 16, integer_rate=1 / 4)
    bound = bound_of(counted_kernel((text, 10, None)), replace(CARD, unit=unit))
    assert bound.seconds["VALU"] == pytest.approx(clocks * 1e-9)
    assert bound.peak == 0


def test_matrix_instructions_go_by_their_dtype():
    text = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"
    bound = bound_of(counted_kernel((text, 10, None)), CARD)
    assert bound.limit == "MFMA"
    assert bound.seconds["MFMA"] == pytest.approx(32 * 32 * 8 / 1024 * 1e-9)


def test_transcendental_functions_have_a_unit_of_their_own_on_rdna():
    card = replace(CARDS["RX 7900 XTX"], units=10, gigahertz=1.0)
    slow, fast = ("v_exp_f32 v0, v1", 10, None), ("v_add_f32 v0, v1, v2", 100, None)
    clocks = [
        bound_of(counted_kernel(*rows), card).seconds["VALU"] for rows in ((slow,), (slow, fast))
    ]
    assert clocks == pytest.approx([4e-9, 11e-9])


@pytest.mark.parametrize(
    ("card", "text", "passes"),
    [
        # As AMD's Matrix Instruction Calculator tells them.
        ("MI300X", "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 8),
        ("MI300X", "v_mfma_f32_32x32x4_2b_f16 a[0:31], v[0:1], v[2:3], a[0:31]", 16),
        ("MI300X", "v_mfma_f32_4x4x4_16b_bf16 a[0:3], v[0:1], v[2:3], a[0:3]", 2),
        ("MI300X", "v_mfma_i32_32x32x4_2b_i8 a[0:31], v0, v1, a[0:31]", 16),
        ("MI300X", "v_mfma_i32_16x16x32_i8 a[0:3], v[0:1], v[2:3], a[0:3]", 4),
        ("MI300X", "v_mfma_f32_16x16x8_xf32 a[0:3], v[0:1], v[2:3], a[0:3]", 4),
        ("MI300X", "v_mfma_f32_16x16x1_4b_f32 a[0:15], v0, v1, a[0:15]", 8),
        ("MI300X", "v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[2:3], a[0:7]", 8),
        ("MI300X", "v_mfma_f64_4x4x4_4b_f64 a[0:1], v[0:1], v[2:3], a[0:1]", 4),
        ("MI210", "v_mfma_f64_4x4x4f64 a[0:1], v[0:1], v[2:3], a[0:1]", 4),
        ("MI210", "v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]", 16),
        ("MI210", "v_mfma_f32_32x32x4f16 a[0:31], v[0:1], v[2:3], a[0:31]", 16),
        ("MI210", "v_mfma_f32_32x32x8bf16_1k a[0:15], v[0:1], v[2:3], a[0:15]", 16),
        ("MI210", "v_mfma_f32_32x32x4bf16 a[0:15], v0, v1, a[0:15]", 16),
        ("MI210", "v_mfma_i32_16x16x16i8 a[0:3], v0, v1, a[0:3]", 8),
    ],
)
def test_matrix_instructions_take_their_passes(card, text, passes):
    """Of four clocks, on each of four SIMDs."""
    card = replace(CARDS[card], units=10, gigahertz=1.0)
    assert bound_of(counted_kernel((text, 10, None)), card).seconds["MFMA"] == pytest.approx(
        passes * 1e-9
    )


def test_memories():
    kernel = counted_kernel(
        ("ds_read_b32 v0, v1", 10, access_of("shared", clocks=500)),
        ("ds_bpermute_b32 v0, v1, v2", 10, None),
        ("global_load_dword v0, v[2:3], off", 10, access_of("global", transactions=100)),
        read=10_000,
    )
    seconds = bound_of(kernel, CARD).seconds
    assert seconds["LDS"] == pytest.approx((500 + 20) / 10 * 1e-9)
    assert seconds["L1"] == pytest.approx(100 / 10 * 1e-9)
    assert seconds["memory"] == pytest.approx(100e-9)
    assert bound_of(kernel, CARD).limit == "memory"


@pytest.mark.parametrize(("card", "clocks"), [("MI300X", 600), ("RX 7900 XTX", 300)])
def test_scalar_instructions_go_one_a_clock_of_a_scheduler(card, clocks):
    rows = (("s_add_u32 s0, s0, 1", 4000, None), ("s_load_dword s0, s[2:3], 0x0", 2000, None))
    bound = bound_of(counted_kernel(*rows), replace(CARDS[card], units=10, gigahertz=1.0))
    assert bound.limit == "SALU" and bound.seconds["SALU"] == pytest.approx(clocks * 1e-9)


def test_lanes_own_memory_goes_through_the_cache():
    kernel = counted_kernel(
        ("scratch_load_dword v0, v1, off", 10, access_of("private", bytes=2560))
    )
    assert bound_of(kernel, CARD).seconds["L1"] == pytest.approx(2560 / 128 / 10 * 1e-9)

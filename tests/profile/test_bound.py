"""Estimates, computed by hand from counts and figures."""

from dataclasses import replace

import pytest

from refcomp.emulator.profile import AccessCounts, InstructionCounts, KernelCounts
from refcomp.profile.bound import bound_of
from refcomp.profile.cards import CARDS
from tests.emulator.snippets import instruction

CARD = replace(CARDS["MI300X"], units=10, gigahertz=1.0, bandwidth=100.0)


def _kernel(*rows, groups=10, launches=1, read=0):
    kernel = KernelCounts("k", "gfx942", 64, 128, groups=groups, launches=launches, read=read)
    for number, (text, waves, access) in enumerate(rows):
        one = replace(instruction(text), number=number)
        kernel.by_number[number] = InstructionCounts(one, waves, 64 * waves, access)
    return kernel


def _access(space, **costs):
    return AccessCounts(space, 4, False, False, **costs)


def test_vector_instructions_take_a_clock_of_a_unit():
    bound = bound_of(_kernel(("v_fma_f32 v0, v1, v2, v3", 1000, None)), CARD)
    assert bound.limit == "VALU" and bound.units == 10
    # 1000 waves of 64 lanes by 64 lanes a clock, on 10 units at 1 GHz.
    assert bound.seconds["VALU"] == pytest.approx(100e-9)
    assert bound.peak == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "clocks"),
    [
        ("v_exp_f32 v0, v1", 4),
        ("v_mul_lo_u32 v0, v1, v2", 4),
        ("v_add_f64 v[0:1], v[2:3], v[4:5]", 16),
    ],
)
def test_some_take_longer(text, clocks):
    card = replace(CARD, f64_rate=1 / 16)
    bound = bound_of(_kernel((text, 10, None)), card)
    assert bound.seconds["VALU"] == pytest.approx(clocks * 1e-9)
    assert bound.peak == 0


def test_matrix_instructions_go_by_their_dtype():
    text = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"
    bound = bound_of(_kernel((text, 10, None)), CARD)
    assert bound.limit == "MFMA"
    assert bound.seconds["MFMA"] == pytest.approx(32 * 32 * 8 / 1024 * 1e-9)


def test_memories():
    kernel = _kernel(
        ("ds_read_b32 v0, v1", 10, _access("shared", clocks=500)),
        ("ds_bpermute_b32 v0, v1, v2", 10, None),
        ("global_load_dword v0, v[2:3], off", 10, _access("global", transactions=100)),
        read=10_000,
    )
    seconds = bound_of(kernel, CARD).seconds
    assert seconds["LDS"] == pytest.approx((500 + 20) / 10 * 1e-9)
    assert seconds["L1"] == pytest.approx(100 * 128 / 64 / 10 * 1e-9)
    assert seconds["memory"] == pytest.approx(100e-9)
    assert bound_of(kernel, CARD).limit == "memory"


@pytest.mark.parametrize(("groups", "units"), [(4, 4), (10, 10), (11, 5.5), (20, 10)])
def test_groups_come_in_rounds(groups, units):
    kernel = _kernel(("v_mov_b32 v0, v1", 1, None), groups=groups)
    assert bound_of(kernel, CARD).units == units


def test_one_of_several_launches():
    rows = (("v_fma_f32 v0, v1, v2, v3", 1000, None),)
    once = bound_of(_kernel(*rows), CARD)
    twice = bound_of(_kernel(("v_fma_f32 v0, v1, v2, v3", 2000, None), groups=20, launches=2), CARD)
    assert once.seconds == twice.seconds and once.peak == twice.peak


def test_of_nothing_there_is_no_estimate():
    assert bound_of(_kernel(groups=0, launches=1), CARD) is None

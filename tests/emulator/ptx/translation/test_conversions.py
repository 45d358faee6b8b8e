"""Conversions: what is printed for them, and what is refused. Their bits: `test_values`."""

import pytest

from tests.emulator.ptx.translation.forms import form_of, is_translated


@pytest.mark.parametrize(
    "text",
    [
        "cvt.u64.u32 d, a",
        "cvt.sat.s8.s32 d, a",
        "cvt.rn.f32.s64 d, a",
        "cvt.rzi.ftz.s32.f32 d, a",
        "cvt.rn.f16.f32 d, a",
        "cvt.f32.f16 d, a",
        "cvt.rni.f32.f32 d, a",
        "cvt.sat.f32.f32 d, a",
    ],
)
def test_usual_conversions_are_translated(text):
    assert is_translated(form_of(text))


@pytest.mark.parametrize(
    "text",
    ["cvt.rn.bf16x2.f32 d, a, b", "cvt.rna.tf32.f32 d, a", "cvt.rp.f32.s32 d, a"],
)
def test_rare_conversions_are_interpreted(text):
    assert not is_translated(form_of(text))

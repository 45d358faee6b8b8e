import numpy as np

from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.results import (
    finish_of,
    float_of,
    float_value,
    made_finite,
    not_negative,
)
from refcomp.emulator.ptx.instructions.rounding import exactly
from tests.emulator.ptx.instructions.worded import bits, instruction


def test_nan_of_each_type() -> None:
    nan = exactly(np.array([-np.nan]))
    for kind, word in (("f16", 0x7FFF), ("bf16", 0x7FFF), ("f32", 0x7FFFFFFF)):
        assert bits(float_of(nan, kind)) == [word]


def test_infinities_become_the_greatest_numbers() -> None:
    words = np.array([0x7F80, 0xFF80, 0x3F80, 0x7FC0], np.uint16)
    assert made_finite(words, "bf16").tolist() == [0x7F7F, 0xFF7F, 0x3F80, 0x7FC0]


def test_negative_numbers_become_0() -> None:
    values = np.array([-1, -0.0, 2, np.nan], np.float16)
    assert bits(not_negative(values, "f16")) == [0, 0, 0x4000, 0x7FFF]


def test_bf16_is_seen_as_f32() -> None:
    assert float_value(np.array([0x4000], np.uint16), "bf16").tolist() == [2]


def test_modifiers_of_a_form_are_read() -> None:
    form = Form(instruction("cvt.rn.relu.satfinite.f16.f32 d, a"))
    finish = finish_of(form, "f16", "relu satfinite")
    assert finish(np.array([np.inf, -1], np.float16)).tolist() == [65504, 0]
    assert not form.has("relu")

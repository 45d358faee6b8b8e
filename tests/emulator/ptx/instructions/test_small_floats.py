"""Small floats, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.rounding import exactly
from refcomp.emulator.ptx.instructions.small_floats import (
    bf16_of,
    f32_of_bf16,
    f32_of_small,
    power_of_two_of,
    small_of,
    tf32_of,
    without_bits,
)
from tests.emulator.ptx.instructions.edges import floats
from tests.emulator.ptx.instructions.exact_floats import F32, Format, rounded

DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
ALL_BYTES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("kind", DTYPES)
def test_each_byte_means_what_ml_dtypes_says(kind: str) -> None:
    expected = ALL_BYTES.view(DTYPES[kind]).astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f32_of_small(ALL_BYTES, kind), expected)


def test_each_bf16_means_what_ml_dtypes_says() -> None:
    words = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    expected = words.view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(f32_of_bf16(words), expected)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_numbers_are_rounded_to_nearest_and_clamped(kind: str) -> None:
    values = np.unique(np.abs(f32_of_small(ALL_BYTES, kind)))
    values = values[np.isfinite(values)]
    middles = (values[1:] + values[:-1]) / np.float32(2)
    near = [np.nextafter(middles, np.float32(x)) for x in (0, np.inf)]
    given = np.concatenate([values, middles, *near])
    given = np.concatenate([given, -given])
    expected = given.astype(DTYPES[kind]).view(np.uint8)
    np.testing.assert_array_equal(small_of(given, kind), expected)
    limit = int(np.max(expected[expected < 0x80]))
    far = np.array([1e30, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    assert small_of(far, kind).tolist() == [limit, limit, limit | 0x80, 0x7F, 0x7F]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_bf16_is_rounded_once(mode: str) -> None:
    kind = Format(8, 7)
    words = [x for x in floats(F32, 200) if F32.value(x) is not None]
    given = np.array(words, np.uint32).view(np.float32)
    found = bf16_of(exactly(given), mode).tolist()
    for word, result in zip(words, found, strict=True):
        expected = rounded(F32.value(word), kind, mode)
        assert result == expected | (kind.sign if word & F32.sign else 0), hex(word)


def test_bf16_of_f64_near_a_tie_is_rounded_once() -> None:
    # In f32 this would be a tie.
    number = np.array([1 + 2.0**-8 + 2.0**-40])
    assert bf16_of(exactly(number)).tolist() == [0x3F81]


@pytest.mark.parametrize("mode", ["rn", "rz", "rna"])
def test_tf32_is_rounded_once(mode: str) -> None:
    kind = Format(8, 10)
    words = [x for x in floats(F32, 200) if F32.value(x) is not None]
    words += [0x3F801000, 0x3F803000, 0xBF801000]  # ties
    found = tf32_of(np.array(words, np.uint32).view(np.float32), mode).tolist()
    for word, result in zip(words, found, strict=True):
        expected = rounded(F32.value(word), kind, mode) << 13
        assert result == expected | (F32.sign if word & F32.sign else 0), hex(word)
    special = np.array([np.inf, -np.inf, np.nan], np.float32)
    assert tf32_of(special, mode).tolist() == [0x7F800000, 0xFF800000, 0x7FFFFFFF]


def test_carry_of_the_mantissa_is_the_next_exponent() -> None:
    assert without_bits(np.array(0x3FFFFFFF, np.uint32).view(np.float32), 16, "rn") == 0x4000


def test_powers_of_two_are_rounded_up_or_down() -> None:
    small = [0, 2.0**-130, 2.0**-127, 1.5 * 2.0**-127]
    given = np.array([1, 1.5, -2, *small, np.inf, np.nan, 1.9 * 2.0**127], np.float32)
    down = power_of_two_of(given, "rz", is_finite=True)
    assert down.tolist() == [127, 127, 128, 0, 0, 0, 0, 254, 255, 254]
    up = power_of_two_of(given, "rp", is_finite=True)
    assert up.tolist() == [127, 128, 128, 0, 0, 0, 1, 254, 255, 254]
    assert power_of_two_of(given, "rp", is_finite=False)[-1] == 255

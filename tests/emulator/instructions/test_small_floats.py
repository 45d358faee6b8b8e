"""Floats of eight bits, held against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from refcomp.emulator.instructions.small_floats import (
    from_bytes,
    to_bytes,
    to_bytes_by_chance,
    to_xf32,
    values_of,
)

_TYPES = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}


@pytest.mark.parametrize("kind", _TYPES)
def test_all_bytes_mean_what_they_should(kind):
    octets = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(values_of(kind), octets.view(_TYPES[kind]).astype(np.float32))
    np.testing.assert_array_equal(from_bytes(octets[::-1], kind), values_of(kind)[::-1])
    assert to_bytes(values_of(kind), kind).tolist() == octets.tolist()


@pytest.mark.parametrize("kind", _TYPES)
def test_f32_are_rounded_to_nearest_even(kind):
    rng = np.random.default_rng(2)
    exact = values_of(kind)[np.isfinite(values_of(kind))].astype(np.float64)
    halves = (np.sort(exact)[1:] + np.sort(exact)[:-1]) / 2
    drawn = np.ldexp(rng.normal(size=2000), rng.integers(-20, 18, 2000))
    near = np.nextafter(halves.astype(np.float32), np.float32(np.inf))
    edges = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-30, -1e-30, 3e38]
    values = np.concatenate([halves, drawn, near, edges]).astype(np.float32)
    expected = values.astype(_TYPES[kind]).view(np.uint8)
    np.testing.assert_array_equal(to_bytes(values, kind), expected)


def test_chance_decides_which_neighbour():
    value = np.float32(1.0 + 0.125 * 0.25)  # a quarter of the way from 1 to the next
    noise = (np.arange(8, dtype=np.uint64) << np.uint64(29)).astype(np.uint32)
    found = values_of("fp8")[to_bytes_by_chance(np.full(8, value), noise, "fp8")]
    assert found.tolist() == [1.0] * 6 + [1.125] * 2
    assert to_bytes_by_chance(np.float32(-2.0), np.uint32(0xFFFFFFFF), "bf8") == to_bytes(
        np.float32(-2.0), "bf8"
    )


def test_xf32():
    values = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-10, np.inf], np.float32)
    assert to_xf32(values).tolist() == [1.0, 1 + 2.0**-9, -1 - 2.0**-10, np.inf]
    assert np.isnan(to_xf32(np.float32(np.nan)))

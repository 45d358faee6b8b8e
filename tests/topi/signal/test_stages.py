"""Stages of transforms: factors, roots of unity, and refusals."""

import math

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.signal.stages import (
    as_state,
    check_length,
    complex_numpy,
    factors_of,
    parts_numpy,
    transform,
    transform_numpy,
    wide_dtype,
)


@pytest.mark.parametrize(
    ("length", "expected"),
    [(1, [1]), (2, [2]), (7, [7]), (8, [4, 2]), (12, [4, 3]), (30, [2, 3, 5]), (49, [7, 7])],
)
def test_factors(length, expected) -> None:
    assert factors_of(length) == expected


@pytest.mark.parametrize("length", range(1, 60))
def test_product_of_factors_is_the_length(length) -> None:
    assert math.prod(factors_of(length)) == length


@pytest.mark.parametrize("factors", [[8], [4, 2], [2, 4], [2, 2, 2], [3, 5], [15], [1]])
@pytest.mark.parametrize("inverse", [False, True])
def test_stages_are_the_transform(factors, inverse) -> None:
    length = math.prod(factors)
    values = np.random.default_rng(1).standard_normal((length, 2))
    data = rc.placeholder((length, 2), "float64", name="data")
    start = as_state(
        lambda index, side: data[(*index, side)], (length,), 0, size=length, length=length
    )
    (found,) = rc.oracle.evaluate([transform(start, 0, factors, inverse=inverse)], {data: values})
    numbers = values[:, 0] + 1j * values[:, 1]
    expected = np.fft.ifft(numbers) * length if inverse else np.fft.fft(numbers)
    np.testing.assert_allclose(found[0, :, 0] + 1j * found[0, :, 1], expected, atol=1e-13)
    meant = transform_numpy(numbers, 0, length, inverse)
    scale = length if inverse else 1
    np.testing.assert_allclose(meant.astype(complex) * scale, expected, atol=1e-13)


def test_roots_of_right_angles_are_exact() -> None:
    data = rc.placeholder((8, 2), "float64", name="data")
    start = as_state(lambda index, side: data[(*index, side)], (8,), 0, size=8, length=8)
    pulse = np.zeros((8, 2))
    pulse[2, 0] = 1
    (found,) = rc.oracle.evaluate([transform(start, 0, [8], inverse=False)], {data: pulse})
    expected = [[1, 0], [0, -1], [-1, 0], [0, 1]] * 2
    np.testing.assert_array_equal(found[0], expected)


def test_complex_numbers_and_their_parts() -> None:
    data = np.array([[1, 2], [3, -4]], np.float32)
    numbers = complex_numpy(data)
    np.testing.assert_array_equal(numbers, [1 + 2j, 3 - 4j])
    np.testing.assert_array_equal(parts_numpy(numbers, data.dtype), data)
    np.testing.assert_array_equal(complex_numpy(data[:, :1]), [1, 3])


def test_sums_have_32_bits_at_least() -> None:
    assert [str(wide_dtype(rc.as_dtype(name))) for name in ("f16", "bf16", "f32", "f64")] == [
        "f32",
        "f32",
        "f32",
        "f64",
    ]


def test_empty_transform_is_refused() -> None:
    assert check_length(1, "it") == 1
    with pytest.raises(UserError, match="it cannot transform 0 elements"):
        check_length(0, "it")

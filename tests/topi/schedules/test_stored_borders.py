"""Stored borders: image and border as one row, and which images they can be of."""

import numpy as np
import pytest

import refcomp
from refcomp.topi.schedules.stored_borders import (
    has_border,
    has_pixels,
    is_padded,
    store_border,
    store_pixels,
)


def _padded(*shape, before=(0, 1, 2, 0), after=(0, 2, 1, 0), dtype="float32", value=0.5):
    x = refcomp.placeholder(shape, dtype, "x")
    return x, refcomp.compute(
        [n + a + b for n, a, b in zip(shape, before, after, strict=True)],
        lambda *at: _inside(x, at, before, after, value),
        name="padded",
        tag="pad",
    )


def _inside(x, at, before, after, value):
    conditions = [
        condition
        for index, offset, behind, extent in zip(at, before, after, x.shape, strict=True)
        if offset or behind
        for condition in (index >= offset, index < offset + extent)
    ]
    places = [index - offset for index, offset in zip(at, before, strict=True)]
    return refcomp.if_then_else(refcomp.all(*conditions), x[tuple(places)], value)


def _run(inputs, made, *given):
    """Return what a kernel stores."""
    target = "rocm -mcpu=gfx942"
    module = refcomp.build(refcomp.create_schedule(made), [*inputs, made], target, name="f")
    device = refcomp.rocm_emulator("gfx942", hazards=True)
    result = refcomp.empty([extent.value for extent in made.shape], device=device)
    module(*(refcomp.array(array, device) for array in given), result)
    return result.asnumpy()


@pytest.mark.rocm
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_pixels_have_four_channels_and_zeros_behind_rows(channels, has_zeros) -> None:
    x, image = _padded(2, 3, 5, channels, value=0.0)
    given = np.random.default_rng(0).random((2, 3, 5, channels), np.float32)
    found = _run([x], store_pixels(image if has_zeros else x), given)
    expected = np.pad(given, ((0, 0), (1, 2), (2, 1), (0, 0))) if has_zeros else given
    expected = np.pad(expected, ((0, 0), (0, 0), (0, 1), (0, 4 - channels)))
    np.testing.assert_array_equal(found, expected.ravel())


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (refcomp.placeholder((1, 3, 3, 3)), True),
        (refcomp.placeholder((1, 3, 3, 5)), False),
        (refcomp.placeholder((1, 3, 3, 3), "float16"), False),
        (refcomp.placeholder((3,)), False),
    ],
)
def test_pixels_of_images_that_can_be_stored(image, expected) -> None:
    assert has_pixels(image) == expected


@pytest.mark.parametrize(("value", "expected"), [(0.0, True), (0.5, False)])
def test_borders_of_pixels_are_zeros(value, expected) -> None:
    assert has_pixels(_padded(1, 3, 3, 3, value=value)[1]) == expected


@pytest.mark.rocm
@pytest.mark.parametrize("shape", [(1, 3, 5, 4), (2, 4, 3, 16), (1, 2, 70, 20), (1, 1, 1, 4)])
def test_image_and_border_are_stored(shape) -> None:
    x, padded = _padded(*shape)
    given = np.random.default_rng(0).random(shape, np.float32)
    found = _run([x], store_border(padded), given)
    expected = np.pad(given, ((0, 0), (1, 2), (2, 1), (0, 0)), constant_values=0.5)
    np.testing.assert_array_equal(found, expected.ravel())


@pytest.mark.parametrize(
    ("padded", "expected"),
    [
        (_padded(1, 3, 3, 8)[1], True),
        (_padded(1, 3, 3, 6)[1], False),  # the last extent is not a multiple of 4
        (_padded(1, 3, 3, 8, dtype="float16")[1], False),
        (_padded(1, 3, 3, 4, after=(0, 1, 1, 4))[1], False),  # channels have a border
        (_padded(refcomp.var("n"), 3, 3, 8)[1], False),
    ],
)
def test_borders_that_can_be_stored(padded, expected) -> None:
    assert is_padded(padded)
    assert has_border(padded) == expected


def test_other_tensors_have_no_border() -> None:
    x = refcomp.placeholder((4, 4), name="x")
    assert not is_padded(x) and not has_border(x)
    assert not has_border(refcomp.topi.relu(x))

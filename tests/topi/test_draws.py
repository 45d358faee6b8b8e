"""Samples: equal seeds draw the same, bounds hold, and corners do occur."""

import numpy as np

from refcomp.topi.draws import (
    Draws,
    one_float_operand,
    one_integer_operand,
    one_number_operand,
    several_operands,
    two_operands,
)

MANY = range(300)


def test_equal_seeds_draw_the_same():
    for draw in (one_float_operand, one_integer_operand, one_number_operand):
        (first,), (second,) = draw(Draws(7)).operands, draw(Draws(7)).operands
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)


def test_scalars_keep_their_bounds():
    for seed in MANY:
        draws = Draws(seed)
        assert 2 <= draws.integer(2, 4) <= 4
        assert all(2 <= drawn <= 4 for drawn in draws.pair(2, 4))
        assert -1 <= draws.number(-1, 2) <= 2
        assert draws.choice("abc") in "abc"
        assert draws.flag() in (True, False)
        assert sorted(draws.order(4)) == [0, 1, 2, 3]
        assert -3 <= draws.axis(3) < 3
        assert 1 <= draws.extent() <= 5


def test_shapes_have_corners_and_few_elements():
    shapes = [Draws(seed).shape() for seed in MANY]
    assert () in shapes and any(0 in shape for shape in shapes)
    assert any(1 in shape for shape in shapes) and max(map(len, shapes)) == 4
    assert max(int(np.prod(shape)) for shape in shapes) <= 150
    assert all(min(Draws(seed).shape(2, 2, least=3)) >= 3 for seed in MANY)


def test_floats_have_corners_unless_they_are_plain():
    drawn = np.concatenate([Draws(seed).array((9,), "float32") for seed in MANY])
    assert np.isnan(drawn).any() and np.isposinf(drawn).any() and np.isneginf(drawn).any()
    is_zero = drawn == 0
    assert np.signbit(drawn[is_zero]).any() and not np.signbit(drawn[is_zero]).all()
    assert (np.abs(drawn[~is_zero]) < np.finfo(np.float32).tiny).any()
    for seed in MANY:
        assert np.isfinite(Draws(seed).array((9,), "float16", special=False)).all()


def test_integers_have_extremes_unless_they_are_plain():
    for dtype in ("int8", "uint16", "int64"):
        drawn = np.concatenate([Draws(seed).array((9,), dtype) for seed in MANY])
        limits = np.iinfo(dtype)
        assert drawn.dtype == dtype
        assert drawn.min() == limits.min and drawn.max() == limits.max
        plain = np.concatenate([Draws(seed).array((9,), dtype, special=False) for seed in MANY])
        assert plain.min() >= -8 and plain.max() <= 8


def test_arrays_between_bounds():
    for seed in MANY:
        draws = Draws(seed)
        whole, real = draws.integers((4,), -2, 3), draws.uniform((4,), 0.5, 2, "float64")
        assert whole.dtype == np.int32 and whole.min() >= -2 and whole.max() <= 3
        assert real.dtype == np.float64 and real.min() >= 0.5 and real.max() <= 2
        assert draws.array((2,), "bool").dtype == np.bool_


def test_two_operands_broadcast():
    are_different = 0
    for seed in MANY:
        a, b = two_operands(Draws(seed), "float32").operands
        np.broadcast_shapes(a.shape, b.shape)
        are_different += a.shape != b.shape
    assert are_different > 50


def test_several_operands_broadcast():
    for seed in MANY:
        sample = several_operands(Draws(seed), ("bool", "int8", "float32"))
        assert [str(array.dtype) for array in sample.operands] == ["bool", "int8", "float32"]
        np.broadcast_shapes(*(array.shape for array in sample.operands))


def test_reduced_shapes_broadcast_to_the_whole():
    for seed in MANY:
        draws = Draws(seed)
        shape = draws.shape()
        assert np.broadcast_shapes(draws.reduced_shape(shape), shape) == shape

"""First values of parameters."""

import math

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.testing.initializers import (
    ConstantInitializer,
    NormalInitializer,
    UniformInitializer,
    Xavier,
    initializer_named,
)

SHAPE = (64, 32, 3, 3)


def draws() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", ["fc_bias", "bn_beta", "bn_moving_mean"])
def test_shifts_begin_at_0(name: str) -> None:
    assert (Xavier().fill(name, (3,), draws()) == 0).all()


@pytest.mark.parametrize("name", ["bn_gamma", "bn_moving_var"])
def test_factors_begin_at_1(name: str) -> None:
    assert (Xavier().fill(name, (3,), draws()) == 1).all()


@pytest.mark.parametrize(
    ("factor_type", "factor"), [("in", 32 * 9), ("out", 64 * 9), ("avg", 48 * 9)]
)
def test_scale_of_xavier_follows_from_the_layer(factor_type: str, factor: int) -> None:
    scale = math.sqrt(3 / factor)
    drawn = Xavier(factor_type=factor_type).fill("conv_weight", SHAPE, draws())
    assert 0.99 * scale < np.abs(drawn).max() <= scale
    drawn = Xavier("gaussian", factor_type).fill("conv_weight", SHAPE, draws())
    assert 0.97 * scale < drawn.std() < 1.03 * scale


def test_xavier_takes_any_rank() -> None:
    for shape in ((), (3,), (0, 2)):
        assert Xavier().weights(shape, draws()).shape == shape


def test_other_initializers_keep_their_number() -> None:
    assert (ConstantInitializer(2.5).weights((3,), draws()) == 2.5).all()
    assert np.abs(UniformInitializer(0.1).weights(SHAPE, draws())).max() <= 0.1
    assert 0.09 < NormalInitializer(0.1).weights(SHAPE, draws()).std() < 0.11


def test_initializers_have_names() -> None:
    for name, value in (("zeros", 0), ("ones", 1)):
        assert (initializer_named(name).weights((3,), draws()) == value).all()
    for name in ("uniform", "normal", "xavier"):
        assert initializer_named(name).weights(SHAPE, draws()).std() > 0


def test_unknown_words_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"no initializer is called 'zero'\n(.|\n)*did you mean zeros"
    ):
        initializer_named("zero")
    with pytest.raises(UserError, match=r"Xavier does not know 'gausian'\n(.|\n)*mean gaussian"):
        Xavier("gausian")
    with pytest.raises(UserError, match=r"Xavier does not know 'sum'\n(.|\n)*avg, in, out"):
        Xavier(factor_type="sum")

"""Activations of cells: their values, their parameters, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import compute
from refcomp.topi.draws import Draws
from refcomp.topi.recurrent.activations import (
    ACTIVATIONS,
    read_activations,
    sample_activations,
)
from tests.strategies.operands import assert_same, run_te

X = np.array([-3, -0.5, 0, 0.25, 2], np.float32)
BY_HAND = {
    "affine": 2 * X + 0.5,
    "elu": np.where(X > 0, X, 2 * np.expm1(X)),
    "hard_sigmoid": np.clip(2 * X + 0.5, 0, 1),
    "leaky_relu": np.where(X < 0, 2 * X, X),
    "relu": np.maximum(X, 0),
    "scaled_tanh": 2 * np.tanh(0.5 * X),
    "sigmoid": 1 / (1 + np.exp(-X)),
    "softplus": np.log(1 + np.exp(X)),
    "softsign": X / (1 + np.abs(X)),
    "tanh": np.tanh(X),
    "thresholded_relu": np.array([0, 0, 0, 0, 0], np.float32),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_by_hand(name):
    (found,) = read_activations("rnn", name, 1, alphas=(2.0,), betas=(0.5,))
    wanted = BY_HAND[name].astype(np.float32)
    assert_same(found.apply_numpy(0, X.astype(float)).astype(np.float32), wanted, 1e-6)

    def apply(data):
        return compute(data.shape, lambda i: found.apply(0, data[i]), name="applied")

    assert_same(run_te(apply, X), wanted, 1e-6)


def test_inputs_are_clipped() -> None:
    (found,) = read_activations("rnn", "affine", 1, limit=1.0)
    assert found.apply_numpy(0, X).tolist() == [-1, -0.5, 0, 0.25, 1]


def test_one_list_serves_both_directions() -> None:
    first, second = read_activations("gru", "sigmoid, tanh", 2, 2)
    assert first == second
    assert first.names == ("sigmoid", "tanh")


def test_directions_may_differ() -> None:
    names = "sigmoid,tanh,hard_sigmoid,relu"
    first, second = read_activations("gru", names, 2, 2, alphas=(1, 2, 3, 4))
    assert second.names == ("hard_sigmoid", "relu")
    assert (first.alphas, second.alphas) == ((1, 2), (3, 4))
    assert second.betas == (0.5, 1)


def test_parameters_are_rounded() -> None:
    (found,) = read_activations("rnn", "affine", 1, alphas=(0.6,), betas=(1.4,))
    assert found.rounded(round).alphas == (1,)


@pytest.mark.parametrize(
    ("names", "how", "message"),
    [
        ("sigmoid,tan", {}, "gru does not know the activation 'tan'"),
        ("sigmoid", {}, "gru cannot use 1 activations: sigmoid"),
        ("tanh,tanh", {"alphas": (1,)}, "gru cannot use 1 alphas for 2 activations"),
        ("tanh,tanh", {"betas": (1,)}, "gru cannot use 1 betas for 2 activations"),
        ("tanh,tanh", {"limit": -1}, "gru cannot clip to the limit -1"),
    ],
)
def test_what_does_not_fit(names, how, message):
    with pytest.raises(UserError, match=message):
        read_activations("gru", names, 2, **how)


def test_near_names_are_offered() -> None:
    with pytest.raises(UserError) as info:
        read_activations("gru", "sigmoid,tan", 2)
    assert "did you mean tanh?" in info.value.remedy


def test_samples_fit() -> None:
    for seed in range(20):
        drawn = sample_activations(Draws(seed), "activations", 3, 2)
        names = str(drawn.get("activations", "sigmoid,tanh,tanh"))
        alphas = drawn.get("alphas", ())
        assert len(read_activations("lstm", names, 3, 2, alphas=alphas)) == 2

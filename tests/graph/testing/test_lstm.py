"""The unrolled layer of long short-term memory: against plain numpy, and compiled."""

import numpy as np
import pytest

from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.testing import lstm
from tests.graph.testing.built import assert_build_keeps_meaning, count_parameters


def test_all_steps_share_their_parameters() -> None:
    # Four gates, each with two matrices and two biases, as in PyTorch.
    expected = 4 * 128 * (100 + 128 + 2)
    assert count_parameters(lstm.get_symbol(), 1, 4, 100) == expected


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_layer_is_that_of_the_paper() -> None:
    net, params = lstm.get_workload(2, num_hidden=5, num_steps=3, num_inputs=4)
    data = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4)).astype("float32")
    feeds = {name: array.asnumpy() for name, array in params.items()}
    (made,) = evaluate_graph(net.to_graph({"data": data.shape}), {"data": data, **feeds})
    hidden = np.zeros((2, 5))
    cell = np.zeros((2, 5))
    for step in range(3):
        gates = data[:, step] @ feeds["i2h_weight"].T + feeds["i2h_bias"]
        gates = gates + hidden @ feeds["h2h_weight"].T + feeds["h2h_bias"]
        enter, forget, change, leave = np.split(gates, 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(change)
        hidden = sigmoid(leave) * np.tanh(cell)
    np.testing.assert_allclose(made, hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["interp", pytest.param("llvm", marks=pytest.mark.llvm)])
def test_compiled_layer_agrees_with_numpy(target: str) -> None:
    net, params = lstm.get_workload(1, num_hidden=8, num_steps=3, num_inputs=4)
    assert_build_keeps_meaning(net, params, (1, 3, 4), target)

"""Layers of many steps, or of a symbolic number of steps, against those that are unrolled."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.converters import recurrent
from tests.frontend.onnx.converters.cases import NodeCase

STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 2, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = np.array([3, 1], np.int32)
MIXED = {
    "activations": ["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Softsign", "Elu"],
    "activation_alpha": [0.25, 0.5, 2.0],
    "activation_beta": [0.75],
}


def floats(*shape, seed=0):
    count = int(np.prod(shape))
    return ((np.arange(count) * 7 + seed) % 23 / 11 - 1).reshape(shape).astype(np.float32)


def case(operator, direction, layout, *, lengths=None, has_states=True):
    count = 2 if direction == "bidirectional" else 1
    rows = GATES[operator] * HIDDEN
    data = floats(STEPS, BATCH, INPUTS)
    state = floats(count, BATCH, HIDDEN, seed=4)
    if layout:
        data, state = data.swapaxes(0, 1), state.swapaxes(0, 1)
    inputs = [
        data,
        floats(count, rows, INPUTS, seed=1),
        floats(count, rows, HIDDEN, seed=2),
        floats(count, 2 * rows, seed=3),
        lengths,
    ]
    if has_states:
        inputs.append(state)
    if operator == "LSTM" and has_states:
        inputs += [-state, floats(count, 3 * HIDDEN, seed=6)]
    attributes = {"direction": direction, "layout": layout, "hidden_size": HIDDEN}
    if operator == "LSTM" and count == 2:
        attributes |= MIXED
    outputs = 3 if operator == "LSTM" else 2
    return NodeCase(operator, 14, inputs, attributes, outputs=outputs)


def run(one):
    return onnx_backend.prepare(one.model(), "INTERP").run(one.feeds())


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_scan_computes_what_unrolled_steps_do(operator, direction, layout, monkeypatch):
    given = [
        case(operator, direction, layout, lengths=LENGTHS),
        case(operator, direction, layout, has_states=False),
    ]
    unrolled = [run(one) for one in given]
    monkeypatch.setattr(recurrent, "MAX_UNROLLED", 1)
    nodes = from_onnx(given[0].model().SerializeToString()).nodes
    assert any(node.operator == "scan" for node in nodes)
    for one, expected in zip(given, unrolled, strict=True):
        for made, right in zip(run(one), expected, strict=True):
            np.testing.assert_allclose(made, right, rtol=1e-5, atol=1e-6)


def symbolic(shape, direction, *, has_lengths=False):
    """Return a model of a GRU without states on data of this shape, with symbols."""
    count = 2 if direction == "bidirectional" else 1
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    if has_lengths:
        infos.append(helper.make_tensor_value_info("n", TensorProto.INT32, shape[1:2]))
    stored = [
        numpy_helper.from_array(floats(count, 3 * HIDDEN, INPUTS, seed=1), "w"),
        numpy_helper.from_array(floats(count, 3 * HIDDEN, HIDDEN, seed=2), "r"),
    ]
    names = ["x", "w", "r", "", "n"] if has_lengths else ["x", "w", "r"]
    node = helper.make_node("GRU", names, ["y", "h"], hidden_size=HIDDEN, direction=direction)
    outputs = [helper.make_empty_tensor_value_info(name) for name in "yh"]
    graph = helper.make_graph([node], "net", infos, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])


def operators(model):
    return [node.operator for node in from_onnx(model.SerializeToString()).nodes]


def check_run(model, direction, lengths=None):
    feeds = {"x": floats(STEPS, BATCH, INPUTS)}
    if lengths is not None:
        feeds["n"] = lengths
    made = onnx_backend.prepare(model, "INTERP").run(feeds)
    fixed = symbolic((STEPS, BATCH, INPUTS), direction, has_lengths=lengths is not None)
    expected = onnx_backend.prepare(fixed, "INTERP").run(feeds)
    for one, right in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_symbolic_steps(direction):
    model = symbolic(("T", BATCH, INPUTS), direction)
    assert "scan" in operators(model)
    check_run(model, direction)


@pytest.mark.parametrize(
    ("shape", "direction", "has_lengths"),
    [
        (("T", "N", INPUTS), "forward", False),
        # The number of the last step is needed.
        (("T", BATCH, INPUTS), "reverse", True),
    ],
)
def test_what_is_left_to_the_run(shape, direction, has_lengths, monkeypatch):
    model = symbolic(shape, direction, has_lengths=has_lengths)
    assert "onnx.GRU" in operators(model)
    # A run unrolls the steps, however many there are.
    monkeypatch.setattr(recurrent, "MAX_UNROLLED", 1)
    check_run(model, direction, LENGTHS if has_lengths else None)


def test_long_sequences_of_a_symbolic_batch_are_unrolled():
    assert operators(symbolic((70, "N", INPUTS), "forward")) == ["gru"]
    assert "scan" in operators(symbolic((70, BATCH, INPUTS), "forward"))


def test_too_many_steps_of_a_symbolic_batch():
    with pytest.raises(Unsupported, match="it has 5000 steps, more than 4096, and a symbolic"):
        operators(symbolic((5000, "N", INPUTS), "forward"))

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check

STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 2, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = np.array([3, 1], np.int32)


def floats(*shape, seed=0, dtype=np.float32):
    count = int(np.prod(shape))
    return ((np.arange(count) * 7 + seed) % 23 / 11 - 1).reshape(shape).astype(dtype)


def layer(operator, *, directions=1, lengths=None, peephole=False, dtype=np.float32):
    """Return all inputs of a layer."""
    rows = GATES[operator] * HIDDEN
    inputs = [
        floats(STEPS, BATCH, INPUTS, dtype=dtype),
        floats(directions, rows, INPUTS, seed=1, dtype=dtype),
        floats(directions, rows, HIDDEN, seed=2, dtype=dtype),
        floats(directions, 2 * rows, seed=3, dtype=dtype),
        lengths,
        floats(directions, BATCH, HIDDEN, seed=4, dtype=dtype),
    ]
    if operator == "LSTM":
        inputs.append(floats(directions, BATCH, HIDDEN, seed=5, dtype=dtype))
        if peephole:
            inputs.append(floats(directions, 3 * HIDDEN, seed=6, dtype=dtype))
    return inputs


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def plain_rnn(act=np.tanh, limit=np.inf):
    """Return both outputs of the layer RNN forward, by definition."""
    x, w, r, bias, _, h = layer("RNN")
    h = h[0]
    outputs = []
    for step in x:
        inner = step @ w[0].T + h @ r[0].T + bias[0, :HIDDEN] + bias[0, HIDDEN:]
        h = act(np.clip(inner, -limit, limit))
        outputs.append(h)
    return [np.array(outputs, np.float32)[:, None], h[None].astype(np.float32)]


def old_gru():
    """Return both outputs of the layer GRU-1, by definition."""
    x, w, r, bias, _, h = layer("GRU")
    h = h[0]
    wz, wr, wn = np.split(w[0], 3)
    rz, rr, rn = np.split(r[0], 3)
    bz, br, bn, cz, cr, cn = np.split(bias[0], 6)
    outputs = []
    for step in x:
        z = sigmoid(step @ wz.T + bz + h @ rz.T + cz)
        reset = sigmoid(step @ wr.T + br + h @ rr.T + cr)
        candidate = np.tanh(step @ wn.T + bn + (reset * h) @ rn.T + cn)
        h = (1 - z) * candidate + z * h
        outputs.append(h)
    return [np.array(outputs, np.float32)[:, None], h[None].astype(np.float32)]


def coupled_lstm(limit=np.inf, input_forget=True, version=7):
    """Return all outputs of the layer LSTM with peepholes, by definition."""
    x, w, r, bias, _, h, c, peephole = layer("LSTM", peephole=True)
    h, c = h[0], c[0]
    pi, po, pf = np.split(peephole[0], 3)

    def clip(value):
        return np.clip(value, -limit, limit)

    outputs = []
    for step in x:
        gates = step @ w[0].T + h @ r[0].T + bias[0, : 4 * HIDDEN] + bias[0, 4 * HIDDEN :]
        i, o, f, g = np.split(gates, 4, axis=-1)
        admitted = sigmoid(clip(i + pi * c))
        kept = 1 - admitted if input_forget else sigmoid(clip(f + pf * c))
        c = kept * c + admitted * np.tanh(clip(g))
        h = sigmoid(clip(o + po * c)) * np.tanh(clip(c))
        outputs.append(h)
    return [np.array(outputs, np.float32)[:, None], h[None].astype("f4"), c[None].astype("f4")]


SIZE = {"hidden_size": HIDDEN}
BOTH = {**SIZE, "direction": "bidirectional"}
OLD = [
    NodeCase("RNN", 1, layer("RNN"), SIZE, outputs=2, expected=plain_rnn()),
    NodeCase("GRU", 1, layer("GRU"), SIZE, outputs=2, expected=old_gru(), label="reset-first"),
    NodeCase("GRU", 3, layer("GRU"), SIZE, outputs=2, expected=old_gru()),
    NodeCase(
        "LSTM",
        1,
        layer("LSTM", peephole=True),
        {**SIZE, "output_sequence": 1, "input_forget": 1},
        outputs=3,
        expected=coupled_lstm(),
        wrong={"ONNX's evaluator": "it ignores input_forget"},
    ),
]
NEW = [
    NodeCase(operator, version, layer(operator), SIZE, outputs=outputs)
    for operator, outputs in (("RNN", 2), ("GRU", 2), ("LSTM", 3))
    for version in (7, 14, 22)
]


def states_of(found):
    return zip(*[one[1:] for one in found], strict=True)


def by_sample(operator, outputs):
    """Return the outputs of a layer of two directions, where each sample is run by itself."""
    inputs = layer(operator, directions=2, peephole=True)
    found = []
    for b, length in enumerate(LENGTHS):
        alone = [inputs[0][:length, b : b + 1], *inputs[1:5]]
        alone += [state[:, b : b + 1] for state in inputs[5:7]] + inputs[7:]
        case = NodeCase(operator, 14, alone, BOTH, outputs=outputs)
        y, *states = ReferenceEvaluator(case.model()).run(None, case.feeds())
        behind = [(0, STEPS - length), *[(0, 0)] * 3]
        found.append([np.pad(y, behind), *states])
    first = np.concatenate([one[0] for one in found], axis=2)
    return [first, *(np.concatenate(parts, axis=1) for parts in states_of(found))]


FEATURES = [
    NodeCase(
        operator,
        14,
        layer(operator, directions=2, lengths=LENGTHS, peephole=True),
        BOTH,
        outputs=outputs,
        expected=by_sample(operator, outputs),
        wrong={"ONNX's evaluator": "it ignores sequence_lens"},
        label="lengths",
    )
    for operator, outputs in (("RNN", 2), ("GRU", 2), ("LSTM", 3))
]
FEATURES += [
    NodeCase(
        operator,
        14,
        layer(operator),
        {**SIZE, "direction": "reverse"},
        outputs=2,
        label="reverse",
    )
    for operator in GATES
]
FEATURES += [
    NodeCase(
        "RNN",
        14,
        layer("RNN"),
        {**SIZE, "clip": 0.5},
        outputs=2,
        label="clip",
        expected=plain_rnn(limit=0.5),
        wrong={"ONNX's evaluator": "it ignores clip"},
    ),
    NodeCase(
        "LSTM",
        14,
        layer("LSTM", peephole=True),
        {**SIZE, "clip": 0.3},
        outputs=3,
        label="clip",
        expected=coupled_lstm(0.3, False),
        wrong={"ONNX's evaluator": "it ignores clip"},
    ),
    NodeCase(
        "GRU", 14, layer("GRU"), {**SIZE, "linear_before_reset": 1}, outputs=2, label="linear"
    ),
]
FUNCTIONS = {
    "Affine": ([0.5], [0.25], lambda x: 0.5 * x + 0.25),
    "Elu": ([0.5], [], lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "HardSigmoid": ([0.5], [0.25], lambda x: np.clip(0.5 * x + 0.25, 0, 1)),
    "LeakyRelu": ([0.5], [], lambda x: np.where(x >= 0, x, 0.5 * x)),
    "Relu": ([], [], lambda x: np.maximum(x, 0)),
    "ScaledTanh": ([0.5], [0.25], lambda x: 0.5 * np.tanh(0.25 * x)),
    "Sigmoid": ([], [], sigmoid),
    "Softplus": ([], [], lambda x: np.log1p(np.exp(x))),
    "Softsign": ([], [], lambda x: x / (1 + np.abs(x))),
    "Tanh": ([], [], np.tanh),
    "ThresholdedRelu": ([0.5], [], lambda x: np.where(x > 0.5, x, 0)),
}
FEATURES += [
    NodeCase(
        "RNN",
        14,
        layer("RNN"),
        {
            **SIZE,
            "activations": [name],
            **({"activation_alpha": alphas} if alphas else {}),
            **({"activation_beta": betas} if betas else {}),
        },
        outputs=2,
        expected=plain_rnn(function),
        wrong={"ONNX's evaluator": "it knows few activations, and no parameters"},
        label=name,
    )
    for name, (alphas, betas, function) in FUNCTIONS.items()
]
FEATURES += [
    NodeCase(
        "RNN",
        14,
        layer("RNN"),
        {**SIZE, "activations": [name]},
        outputs=2,
        expected=plain_rnn(function),
        wrong={"ONNX's evaluator": "it knows few activations, and no parameters"},
        label=f"{name}-default",
    )
    for name, function in (
        ("HardSigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
        ("LeakyRelu", lambda x: np.where(x >= 0, x, 0.01 * x)),
        ("Elu", lambda x: np.where(x > 0, x, np.expm1(x))),
    )
]
# The first direction has the first three activations. Only those with a parameter take one.
MIXED = {
    **BOTH,
    "activations": ["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Softsign", "Elu"],
    "activation_alpha": [0.25, 0.5, 2.0],
    "activation_beta": [0.75],
}
BY_TWO = layer("LSTM", directions=2)


def of_direction(place):
    """Return the operands of one direction of the layer of two."""
    return [
        BY_TWO[0],
        *(part[place : place + 1] for part in BY_TWO[1:4]),
        None,
        *(part[place : place + 1] for part in BY_TWO[5:]),
    ]


CASES = [*OLD, *NEW, *FEATURES]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def run(case):
    return onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())


def test_activations_of_two_directions():
    """Both directions together compute what each computes alone."""
    both = run(NodeCase("LSTM", 14, BY_TWO, MIXED, outputs=3))
    parts = (
        ("forward", ["HardSigmoid", "Tanh", "LeakyRelu"], [0.25, 0.5], [0.75]),
        ("reverse", ["Sigmoid", "Softsign", "Elu"], [2.0], []),
    )
    for place, (direction, names, alphas, betas) in enumerate(parts):
        attributes = {**SIZE, "direction": direction, "activations": names}
        attributes["activation_alpha"] = alphas
        if betas:
            attributes["activation_beta"] = betas
        one = run(NodeCase("LSTM", 14, of_direction(place), attributes, outputs=3))
        np.testing.assert_allclose(both[0][:, place], one[0][:, 0], rtol=1e-6)
        np.testing.assert_allclose(both[2][place], one[2][0], rtol=1e-6)


def test_layout_exchanges_steps_and_batch():
    inputs = layer("GRU")
    swapped = [inputs[0].swapaxes(0, 1), *inputs[1:5], inputs[5].swapaxes(0, 1)]
    plain = run(NodeCase("GRU", 14, inputs, SIZE, outputs=2))
    other = run(NodeCase("GRU", 14, swapped, {**SIZE, "layout": 1}, outputs=2))
    np.testing.assert_array_equal(other[0], plain[0].transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(other[1], plain[1].swapaxes(0, 1))


def test_all_versions_have_a_case():
    tested = {case.pair for case in CASES}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in GATES:
            assert ("", schema.name, schema.since_version) in tested


def convert(shape, opset=14, **attributes):
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, one)
        for name, one in (("x", shape), ("w", (1, 3, 2)), ("r", (1, 3, 3)))
    ]
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid("", opset)]
    return from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString())


def test_symbolic_batch_needs_no_macro():
    graph = convert((4, "N", 2))
    assert [node.operator for node in graph.nodes] == ["rnn"]
    assert graph.outputs[0].shape == (4, 1, "N", 3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"hidden_size": 4}, "its attribute hidden_size is 4"),
        ({"activations": ["Tan"]}, "its activation 'Tan' is unknown"),
        ({"clip": -1.0}, "rnn cannot clip to the limit -1"),
        ({"direction": "up"}, "rnn does not know the direction 'up'"),
    ],
)
def test_what_does_not_fit(attributes, message):
    with pytest.raises(UserError, match=message):
        convert((4, 1, 2), **attributes)

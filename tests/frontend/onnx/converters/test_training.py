import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check

DOMAIN = "ai.onnx.preview.training"
A, B = np.array([1.5, -2], np.float32), np.array([[0.5], [3]], np.float32)
GRADIENTS = [np.array([0.5, 1], np.float32), np.array([[-1], [2]], np.float32)]
SPEEDS = [np.array([0.25, -1], np.float32), np.array([[2], [0.5]], np.float32)]
SQUARES = [np.array([1, 4], np.float32), np.array([[0.25], [2]], np.float32)]
RATE = np.float32(0.125)


def adagrad(count, norm, decay, epsilon):
    rate = RATE / (1 + count * decay)
    made = []
    for x, g, h in zip((A, B), GRADIENTS, SQUARES, strict=True):
        slope = norm * x + g
        new = h + slope * slope
        made.append((x - rate * slope / (np.sqrt(new) + epsilon), new))
    return made


def adam(count, norm, after, alpha=0.9, beta=0.999, epsilon=1e-6):
    rate = RATE
    if count > 0:
        rate = RATE * np.sqrt(1 - beta**count) / (1 - alpha**count)
    made = []
    for x, g, v, h in zip((A, B), GRADIENTS, SPEEDS, SQUARES, strict=True):
        slope = norm * x + g
        speed = alpha * v + (1 - alpha) * slope
        new = beta * h + (1 - beta) * slope * slope
        result = x - rate * speed / (np.sqrt(new) + epsilon)
        made.append(((1 - after) * result, speed, new))
    return made


def momentum(count, norm, alpha, beta, mode):
    factor = beta if count > 0 else 1
    made = []
    for x, g, v in zip((A, B), GRADIENTS, SPEEDS, strict=True):
        slope = norm * x + g
        speed = alpha * v + factor * slope
        step = slope + alpha * speed if mode == "nesterov" else speed
        made.append((x - RATE * step, speed))
    return made


def columns(rows):
    return [np.asarray(value, np.float32) for column in zip(*rows, strict=True) for value in column]


ADAGRAD = {"norm_coefficient": 0.25, "decay_factor": 0.5, "epsilon": 0.01}
ADAM = {"norm_coefficient": 0.25, "norm_coefficient_post": 0.5}
MOMENTUM = {"norm_coefficient": 0.25, "alpha": 0.75, "beta": 0.5}
CASES = [
    NodeCase(
        "Adagrad",
        1,
        [RATE, np.int64(count), A, B, *GRADIENTS, *SQUARES],
        ADAGRAD,
        expected=columns(adagrad(count, 0.25, 0.5, 0.01)),
        domain=DOMAIN,
        outputs=4,
        label=f"count-{count}",
    )
    for count in (0, 3)
]
CASES += [
    NodeCase(
        "Adam",
        1,
        [RATE, np.int64(count), A, B, *GRADIENTS, *SPEEDS, *SQUARES],
        ADAM,
        expected=columns(adam(count, 0.25, 0.5)),
        domain=DOMAIN,
        outputs=6,
        label=f"count-{count}",
    )
    for count in (0, 1, 3)
]
CASES += [
    NodeCase(
        "Momentum",
        1,
        [RATE, np.int64(count), A, B, *GRADIENTS, *SPEEDS],
        {**MOMENTUM, "mode": mode},
        expected=columns(momentum(count, 0.25, 0.75, 0.5, mode)),
        domain=DOMAIN,
        outputs=4,
        label=f"{mode}-count-{count}",
    )
    for mode in ("standard", "nesterov")
    for count in (0, 3)
]
CASES += [
    NodeCase(
        "Adam",
        1,
        [
            np.array([0.125], np.float32),
            np.array([1]),
            A,
            *GRADIENTS[:1],
            *SPEEDS[:1],
            *SQUARES[:1],
        ],
        expected=columns([adam(1, 0, 0)[0]]),
        wrong={"ONNX's evaluator": "its results are of float64"},
        domain=DOMAIN,
        outputs=3,
        label="vectors-of-one",
    )
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("count", "attributes", "message"),
    [
        (4, {"mode": "standard"}, "it has 2 tensors behind the learning rate"),
        (2, {"mode": "standard"}, "it has 0 tensors behind the learning rate"),
        (5, {"mode": "fast"}, "its attribute mode is 'fast'"),
    ],
)
def test_what_does_not_fit(count, attributes, message):
    types = [TensorProto.FLOAT, TensorProto.INT64, *[TensorProto.FLOAT] * count][:count]
    infos = [helper.make_tensor_value_info(f"x{k}", one, ()) for k, one in enumerate(types)]
    names = [info.name for info in infos]
    given = {**MOMENTUM, **attributes}
    node = helper.make_node("Momentum", names, ["y"], domain=DOMAIN, **given)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=sets)
    with pytest.raises(UserError, match=message):
        from_onnx(model.SerializeToString())


def gradient_model(nodes, shapes, outputs, constants=()):
    """Return a model of nodes: (operator, inputs, outputs, attributes)."""
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    protos = [
        helper.make_node(
            operator, inputs, made, domain=DOMAIN if operator == "Gradient" else "", **attributes
        )
        for operator, inputs, made, attributes in nodes
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    stored = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(protos, "net", infos, results, stored)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=sets)


CUBE = [("Mul", ["x", "x"], ["h"], {}), ("Mul", ["h", "x"], ["y"], {})]
X = np.array([1, -2, 3], np.float32)


def run(model, **feeds):
    return onnx_backend.prepare(model, "INTERP").run(feeds)


def test_gradient_of_a_tensor_is_that_of_its_sum():
    nodes = [*CUBE, ("Gradient", ["x"], ["g"], {"xs": ["x"], "y": "y"})]
    made = run(gradient_model(nodes, {"x": ("N",)}, ["y", "g"]), x=X)
    np.testing.assert_allclose(made[0], X**3)
    np.testing.assert_allclose(made[1], 3 * X**2)


def test_gradient_at_other_values_by_an_intermediate_tensor():
    """Of y = h * x by h, at values that the model does not compute."""
    attributes = {"xs": ["h"], "zs": ["x"], "y": "y"}
    nodes = [*CUBE, ("Gradient", ["a", "b"], ["g"], attributes)]
    model = gradient_model(nodes, {"x": (3,), "a": (3,), "b": (3,)}, ["g"])
    (made,) = run(model, x=X, a=X + 1, b=10 * X)
    np.testing.assert_allclose(made, 10 * X)


def test_second_derivative():
    nodes = [
        *CUBE,
        ("Gradient", ["x"], ["slope"], {"xs": ["x"], "y": "y"}),
        ("Gradient", ["x"], ["g"], {"xs": ["x"], "y": "slope"}),
    ]
    (made,) = run(gradient_model(nodes, {"x": (3,)}, ["g"]), x=X)
    np.testing.assert_allclose(made, 6 * X)


def test_other_values_are_constants():
    """What is neither in xs nor in zs keeps its value."""
    nodes = [
        ("Mul", ["x", "w"], ["a"], {}),
        ("Mul", ["a", "z"], ["y"], {}),
        ("Gradient", ["x"], ["g"], {"xs": ["x"], "y": "y"}),
    ]
    weights = np.array([2, 3, 4], np.float32)
    model = gradient_model(nodes, {"x": (3,), "z": (3,)}, ["g"], [("w", weights)])
    (made,) = run(model, x=X, z=X + 5)
    np.testing.assert_allclose(made, weights * (X + 5))


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        (["x"], {"xs": ["x", "h"], "y": "y"}, "its attributes xs and zs name 'x', 'h'"),
        (["x", "x"], {"xs": ["x"], "zs": ["x"], "y": "y"}, "its attributes xs and zs name"),
        (["x"], {"xs": ["x"], "y": "x"}, "the value 'x' is to be computed from itself"),
        (["x"], {"xs": ["x"], "y": "q"}, "nothing makes the output 'q'"),
    ],
)
def test_ill_formed_gradients(inputs, attributes, message):
    nodes = [*CUBE, ("Gradient", inputs, ["g"], attributes)]
    with pytest.raises(UserError, match=message):
        from_onnx(gradient_model(nodes, {"x": (3,)}, ["g"]).SerializeToString())


def test_gradient_through_subgraphs():
    value = helper.make_tensor_value_info("v", TensorProto.FLOAT, (3,))
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["v"])], "b", [], [value])
    condition = numpy_helper.from_array(np.array(True), "c")
    nodes = [
        ("If", ["c"], ["y"], {"then_branch": branch, "else_branch": branch}),
        ("Gradient", ["x"], ["g"], {"xs": ["x"], "y": "y"}),
    ]
    model = gradient_model(nodes, {"x": (3,)}, ["g"])
    model.graph.initializer.append(condition)
    with pytest.raises(Unsupported, match="the node that makes 'y' has a subgraph"):
        from_onnx(model.SerializeToString())

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.broadcasting import require_alignment
from refcomp.graph.builder import GraphBuilder
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.macros import NotKnownError
from tests.frontend.onnx.converters.cases import NodeCase, check

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
CASES = [
    NodeCase("Sub", 6, [X, X[0]], {"broadcast": 1}, [X - X[0]], label="suffix"),
    NodeCase("Sub", 6, [X, X[0, 0, 0]], {"broadcast": 1, "axis": 1}, [X - X[0, 0, 0]]),
    NodeCase(
        "Sub",
        6,
        [X, X[0, :, 0]],
        {"broadcast": 1, "axis": 1},
        [X - X[0, :, :1]],
        label="middle axis",
    ),
    NodeCase(
        "Sub",
        6,
        [X, X[:, :, 0]],
        {"broadcast": 1, "axis": -3},
        [X - X[:, :, :1]],
        label="negative axis",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("second", "attributes", "message"),
    [
        (X[0], {}, "differ in rank"),
        (X[None], {"broadcast": 1}, "has more axes than its first"),
        (X[0], {"broadcast": 1, "axis": 2}, "too many axes for axis 2"),
        (X[0], {"broadcast": 1, "axis": 3}, "axis 3 is out of range"),
    ],
)
def test_what_does_not_fit_is_refused(second, attributes, message):
    case = NodeCase("Add", 6, [X, second], attributes)
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())


def test_alignment_is_unknown_if_a_symbol_may_be_one():
    builder = GraphBuilder("net")
    shapes = {"a": ("N", 3), "b": ("N", 1), "c": (4, 3), "d": ("M", 3), "e": (3,)}
    values = {name: builder.input(name, "float32", shape) for name, shape in shapes.items()}
    require_alignment([values["a"], values["b"], values["e"]])
    require_alignment([values["c"], values["e"]])
    for other in "cd":
        with pytest.raises(NotKnownError):
            require_alignment([values["a"], values[other]])


def test_symbols_that_differ_are_aligned_in_the_run():
    case = NodeCase("Add", 13, [X[0], X[0]])
    model = case.model()
    for info, name in zip(model.graph.input, "NM", strict=True):
        info.type.tensor_type.shape.dim[0].dim_param = name
    graph = from_onnx(model.SerializeToString())
    feeds = {"x0": X[0], "x1": X[0, :1]}
    np.testing.assert_array_equal(evaluate_graph(graph, feeds)[0], X[0] + X[0, :1])

"""Types of nodes: symbolic extents are kept, and every operator infers what its meaning gives."""

import numpy as np
import pytest
from hypothesis import given

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.graph.dims import Symbols
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.feeds import check_feeds
from refcomp.graph.graph import Value
from refcomp.graph.infer import infer_types, node_to_te, value_to_placeholder
from refcomp.oracle.tensors.evaluate import evaluate
from tests.strategies.graphs import make_graph, networks
from tests.strategies.operands import floats


def value(*shape) -> Value:
    return Value("x", F32, shape)


def test_symbolic_batch_passes_through() -> None:
    assert infer_types("softmax", [value("N", 10)], {}) == [(F32, ("N", 10))]
    assert infer_types("flatten", [value("N", 4, 2)], {}) == [(F32, ("N", 8))]
    pooled = infer_types(
        "max_pool2d", [value("N", 2, "H", 6)], {"kernel": (2, 2), "strides": (2, 2)}
    )
    assert pooled == [(F32, ("N", 2, ("add", ("floordiv", ("add", "H", -2), 2), 1), 3))]


def test_several_outputs() -> None:
    types = infer_types("split", [value("N", 5)], {"axis": 1, "sizes": (2, 3)})
    assert types == [(F32, ("N", 2)), (F32, ("N", 3))]


def test_symbols_of_one_name_are_one_extent() -> None:
    assert infer_types("add", [value("N", 2), value("N", 2)], {}) == [(F32, ("N", 2))]
    with pytest.raises(UserError, match="is M instead of N"):
        infer_types("add", [value("N"), value("M")], {}, where="here")


def test_errors_name_the_node() -> None:
    with pytest.raises(UserError, match="axis 5 is out of range") as info:
        infer_types("softmax", [value(2, 3)], {"axis": 5}, where="node 'q'")
    assert info.value.where == "node 'q'"


def test_placeholders_have_plain_names() -> None:
    tensor = value_to_placeholder(Value("a b\n;" + "x" * 99, F32, (2,)), Symbols())
    assert tensor.name == "a_b__" + "x" * 35


@pytest.mark.search
@given(networks())
def test_inferred_types_are_those_of_the_meaning(graph):
    x = floats(1, 2, *graph.inputs[0].shape[1:])
    symbols = check_feeds(graph, {"x": (x.dtype, x.shape)})
    (result,) = evaluate_graph(graph, {"x": x})
    (output,) = graph.outputs
    assert result.shape == tuple(evaluate_dim(dim, symbols) for dim in output.shape)


def test_te_of_a_node_with_several_outputs() -> None:
    graph = make_graph(
        lambda b, x: b.nodes("split", [x], {"axis": 1, "sizes": (1, 2)}), shape=("N", 3)
    )
    tensor = value_to_placeholder(graph.inputs[0], Symbols())
    made = node_to_te(graph.nodes[0], {graph.inputs[0]: tensor})
    x = floats(0, 4, 3)
    parts = evaluate([made[output] for output in graph.outputs], {tensor: x})
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), x)

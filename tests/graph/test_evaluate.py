"""The numpy meaning of a graph, against numpy written by hand."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.evaluate import evaluate_graph, evaluate_node
from refcomp.graph.passes.fuse_operators import fuse_operators
from tests.strategies.graphs import digits_graph, digits_images, make_graph
from tests.strategies.operands import floats, integers


def test_nodes_run_in_order_and_values_are_shared() -> None:
    def build(builder, x):
        doubled = builder.node("add", [x, x])
        product = builder.node("multiply", [doubled, builder.constant("c", integers(1, 4))])
        return [product, doubled]

    x = integers(0, 3, 4)
    product, doubled = evaluate_graph(make_graph(build, ("N", 4)), {"x": x})
    np.testing.assert_array_equal(doubled, x + x)
    np.testing.assert_array_equal(product, (x + x) * integers(1, 4))


def test_several_outputs_and_subgraphs() -> None:
    graph = make_graph(
        lambda b, x: b.nodes("split", [x], {"axis": 1, "sizes": (1, 2)}), shape=("N", 3)
    )
    x = floats(0, 4, 3)
    first, second = evaluate_node(graph.nodes[0], {graph.inputs[0]: x})
    np.testing.assert_array_equal(np.concatenate([first, second], axis=1), x)
    fused = fuse_operators(make_graph(lambda b, x: b.node("relu", [b.node("relu", [x])]), ("N",)))
    np.testing.assert_array_equal(
        evaluate_graph(fused, {"x": np.array([-1, 2], np.float32)})[0], [0, 2]
    )


@pytest.mark.search
def test_the_digit_network_knows_its_digits() -> None:
    images, labels = digits_images()
    (probability,) = evaluate_graph(digits_graph(), {"image": images})
    assert (probability.argmax(axis=1) == labels).mean() >= 0.97
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)


def test_feeds_are_checked() -> None:
    with pytest.raises(UserError, match="the graph has no input 'y'"):
        evaluate_graph(make_graph(lambda b, x: b.node("relu", [x])), {"y": floats(0, 1)})


def test_a_feed_that_is_not_an_array_is_named() -> None:
    graph = make_graph(lambda b, x: b.node("relu", [x]))
    with pytest.raises(
        UserError, match="input 'x' cannot be a list\n.*pass an NDArray or a numpy array"
    ):
        evaluate_graph(graph, {"x": [[1.0]]})  # type: ignore[dict-item]

"""Run graphs with control operators by both machines, and compare what they return."""

from typing import Any

import numpy as np

from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.parser import parse_graph
from refcomp.graph.stages.executor import StagedExecutor
from refcomp.runtime.arrays.ndarray import NDArray


def run_text(text: str, target: str = "interp", **feeds: Any) -> list[Any]:
    """The outputs of the graph that `text` describes: equal for numpy and compiled stages."""
    graph = parse_graph(text)
    expected = evaluate_graph(graph, feeds)
    actual = StagedExecutor(graph, target).run(feeds)
    for one, other in zip(expected, actual, strict=True):
        assert_same(other, one)
    return expected


def assert_same(actual: Any, expected: Any) -> None:
    """Both are nothing, equal sequences, or arrays of equal dtype, shape and bits."""
    if expected is None:
        assert actual is None
    elif isinstance(expected, tuple):
        assert isinstance(actual, tuple)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    elif expected.dtype == object:
        assert isinstance(actual, np.ndarray)
        assert actual.shape == expected.shape
        assert actual.tolist() == expected.tolist()
    else:
        assert isinstance(actual, NDArray)
        assert actual.dtype == str(expected.dtype)
        np.testing.assert_array_equal(actual.asnumpy(), expected)
        assert actual.shape == expected.shape


def f32(*elements: float) -> np.ndarray:
    """A vector of f32."""
    return np.array(elements, "float32")


def i64(value: int) -> np.ndarray:
    """A scalar of i64."""
    return np.array(value, "int64")

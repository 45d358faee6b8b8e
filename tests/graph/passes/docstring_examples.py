"""The Before and After that a graph pass's module docstring shows, for its test to run."""

from collections.abc import Callable, Mapping
from types import ModuleType

import numpy as np

from refcomp.foundation.dtype import to_numpy
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Graph
from refcomp.graph.parser import parse_graph
from refcomp.graph.pass_mutants import docstring_example
from refcomp.graph.verify import verify_graph


def assert_docstring_holds(
    module: ModuleType, function: Callable[[Graph], Graph], tolerance: float = 0.0
) -> None:
    """The pass turns its Before into its After, to the letter, and keeps After and the meaning.

    `tolerance` is relative to the greatest element of each output.
    """
    before = parse_graph(docstring_example(module, "Before"))
    after = docstring_example(module, "After")
    assert str(before) == docstring_example(module, "Before")
    made = function(before)
    verify_graph(made)
    assert str(made) == after, f"{made}\ninstead of\n{after}"
    parsed = parse_graph(after)
    assert function(parsed) is parsed
    assert_same_meaning(before, made, tolerance)


def feeds_of(graph: Graph, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random inputs: floats around 0, small integers, both bools."""
    random = np.random.default_rng(0)
    feeds = {}
    for value in graph.inputs:
        shape = [sizes.get(dim, 3) if isinstance(dim, str) else dim for dim in value.shape]
        if value.dtype.is_float:
            drawn = random.standard_normal(shape)
        else:
            drawn = random.integers(0, 2 if value.dtype.is_bool else 5, shape)
        feeds[value.name] = np.asarray(drawn).astype(to_numpy(value.dtype))
    return feeds


def assert_same_meaning(graph: Graph, changed: Graph, tolerance: float = 0.0) -> None:
    """Both graphs give the same for random inputs, by their numpy meaning."""
    feeds = feeds_of(graph, {})
    expected = evaluate_graph(graph, feeds)
    for one, other in zip(expected, evaluate_graph(changed, feeds), strict=True):
        assert one.dtype == other.dtype
        if tolerance:
            greatest = float(np.abs(one.astype("f8")).max(initial=0))
            np.testing.assert_allclose(other, one, rtol=0, atol=tolerance * greatest)
        else:
            np.testing.assert_array_equal(other, one)

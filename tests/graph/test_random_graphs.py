"""random_graph: what it covers, and that equal seeds draw the same."""

from collections import Counter

import numpy as np
import pytest

from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.optimize import OPTIONAL_STEPS, STEPS
from refcomp.graph.random_graphs import PATTERNS, random_graph
from refcomp.graph.verify import verify_graph
from refcomp.topi.operator import find_operator
from refcomp.topi.sources import OPERATOR_HOMES

SEEDS = range(300)


@pytest.fixture(scope="module")
def drawn():
    return [random_graph(seed) for seed in SEEDS]


def test_equal_seeds_draw_the_same() -> None:
    for seed in range(10):
        one, other = random_graph(seed), random_graph(seed)
        assert str(one.graph) == str(other.graph)
        assert one.planted == other.planted
        for name, array in one.feeds.items():
            np.testing.assert_array_equal(array, other.feeds[name], strict=True)
    assert len({str(random_graph(seed).graph) for seed in range(20)}) == 20


def test_graphs_are_legal_and_small(drawn) -> None:
    with np.errstate(all="ignore"):
        for one in drawn:
            verify_graph(one.graph)
            outputs = evaluate_graph(one.graph, one.feeds)
            assert outputs
            assert len(one.graph.nodes) <= 60
            assert all(array.size <= 5000 for array in outputs)


def test_all_patterns_and_most_operators_are_drawn(drawn) -> None:
    planted = Counter(name for one in drawn for name in one.planted)
    assert set(planted) == set(PATTERNS)
    operators = {node.operator for one in drawn for node in one.graph.nodes}
    sampled = [name for name in OPERATOR_HOMES if find_operator(name).sample is not None]
    # 300 graphs draw about 200 samples of 360 operators.
    assert len(operators & set(sampled)) > 140


def test_steps_are_linked(drawn) -> None:
    """Most graphs are more than unrelated steps: links are casts, cuts, repetitions, reshapes."""
    linked = sum(
        any(node.operator in ("strided_slice", "tile", "cast") for node in one.graph.nodes)
        for one in drawn
    )
    assert linked > len(drawn) // 4


def test_every_pass_fires(drawn) -> None:
    for step in (*STEPS, *OPTIONAL_STEPS):
        with np.errstate(all="ignore"):
            fired = sum(step.function(one.graph) is not one.graph for one in drawn)
        assert fired >= len(drawn) // 40, step.name


@pytest.mark.search
def test_each_operator_can_be_drawn(request) -> None:
    """No sample has operands or attributes that a graph refuses."""
    seeds = 40_000 if request.config.getoption("--nightly") else 1_500
    found: set[str] = set()
    for seed in range(seeds):
        found |= {node.operator for node in random_graph(10**6 + seed).graph.nodes}
    sampled = {name for name in OPERATOR_HOMES if find_operator(name).sample is not None}
    lacking = sampled - found
    assert len(lacking) <= (0 if request.config.getoption("--nightly") else 40), lacking

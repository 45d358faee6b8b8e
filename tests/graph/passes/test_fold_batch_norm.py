"""fold_batch_norm: when it folds, when not, and that only rounding changes."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given

from refcomp.graph.passes.choose_layout import choose_layout
from refcomp.graph.passes.fold_batch_norm import fold_batch_norm
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import (
    assert_equivalent,
    digits_graph,
    make_graph,
    networks,
    operators_of,
)
from tests.strategies.operands import floats


def norm(builder, value, axis=1):
    channels = value.shape[axis]
    statistics = [builder.constant("s", np.abs(floats(k, channels)) + 1) for k in range(4)]
    return builder.node("batch_norm", [value, *statistics], {"axis": axis})


def conv(builder, value, out=4):
    weight = builder.constant("w", floats(7, out, value.shape[1], 3, 3))
    return builder.node("conv2d", [value, weight, None])


def test_a_convolution_without_bias_gets_one() -> None:
    graph = make_graph(lambda b, x: norm(b, conv(b, x)))
    changed = fold_batch_norm(graph)
    assert operators_of(changed) == ["conv2d"]
    assert changed.nodes[0].inputs[2] is not None
    assert changed.nodes[0].name == graph.nodes[1].name
    assert_equivalent(graph, changed, tolerance=1e-5)


def test_the_digit_network_loses_its_three() -> None:
    graph = digits_graph()
    changed = fold_batch_norm(graph)
    assert operators_of(graph).count("batch_norm") == 3
    assert "batch_norm" not in operators_of(changed)
    assert_equivalent(graph, changed, tolerance=1e-5)


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: norm(b, x),
        lambda b, x: norm(b, conv(b, x), axis=3),
        lambda b, x: [(y := conv(b, x)), norm(b, y)],
        lambda b, x: b.node("add", [norm(b, y := conv(b, x)), y]),
    ],
    ids=["no convolution", "another axis", "an output", "read twice"],
)
def test_what_cannot_be_folded_stays(build) -> None:
    graph = make_graph(build)
    assert fold_batch_norm(graph) is graph


def test_statistics_that_are_computed_stay() -> None:
    def build(builder, x):
        mean = builder.input("mean", "f32", (4,))
        ones = builder.constant("ones", np.ones(4, np.float32))
        return builder.node("batch_norm", [conv(builder, x), ones, ones, mean, ones])

    graph = make_graph(build)
    assert fold_batch_norm(graph) is graph


def test_products_are_rounded_once() -> None:
    graph = make_graph(lambda b, x: norm(b, conv(b, x)))
    changed = fold_batch_norm(graph)
    weight, *parameters = graph.constants.values()
    gamma, _, _, variance = (array.astype(np.float64) for array in parameters)
    scale = (gamma / np.sqrt(variance + 1e-5)).reshape(-1, 1, 1, 1)
    folded = changed.constants[changed.nodes[0].inputs[1]]
    np.testing.assert_array_equal(folded, (weight.astype(np.float64) * scale).astype(np.float32))


def test_folded_weights_are_packed_without_a_copy() -> None:
    changed = fold_batch_norm(make_graph(lambda b, x: norm(b, conv(b, x))))
    packed = fold_constants(choose_layout(changed))
    folded = changed.constants[changed.nodes[0].inputs[1]]
    (node,) = (node for node in packed.nodes if node.operator == "conv2d_nhwc")
    kept = packed.constants[node.inputs[1]]
    assert np.shares_memory(kept, folded)
    assert kept.flags.c_contiguous


@pytest.mark.search
@given(networks())
def test_meaning_is_kept_but_for_rounding(graph):
    changed = fold_batch_norm(graph)
    verify_graph(changed)
    assert_equivalent(graph, changed, tolerance=1e-5)


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.fold_batch_norm")
    assert_docstring_holds(passing, fold_batch_norm, tolerance=1e-6)

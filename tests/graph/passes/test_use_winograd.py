"""use_winograd: only where it is possible and pays, and results differ by rounding only."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.equivalence import EQUAL, difference
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.optimize import Rounding
from refcomp.graph.passes import use_winograd as module
from refcomp.graph.passes.fold_constants import fold_constants
from refcomp.graph.passes.use_winograd import use_winograd
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import make_graph, operators_of
from tests.strategies.operands import floats

_V3 = "llvm -mcpu=x86-64-v3"
_V4 = "llvm -mcpu=x86-64-v4"
_DIRECT = ["conv2d_nchwc"]
_WINOGRAD = ["conv2d_nchwc_winograd_weight", "conv2d_nchwc_winograd"]


def convolution(shape=("N", 2, 56, 56, 16), kernel=(3, 3), outs=2, **attributes):
    """A graph of one convolution with constant weights."""
    blocks, block = shape[1] // attributes.get("groups", 1), shape[-1]

    def build(builder, x):
        weight = builder.constant("w", floats(1, outs, blocks, *kernel, block, block))
        return builder.node("conv2d_nchwc", [x, weight], attributes)

    return make_graph(build, shape)


def test_a_large_convolution_is_computed_by_winograd_s_filtering() -> None:
    graph = convolution(padding=(1, 1, 0, 1))
    changed = use_winograd(graph, _V3)
    verify_graph(changed)
    assert operators_of(changed) == _WINOGRAD
    assert changed.nodes[1].attributes["padding"] == (1, 1, 0, 1)
    assert [value.name for value in changed.outputs] == [value.name for value in graph.outputs]
    folded = fold_constants(changed)
    assert operators_of(folded) == _WINOGRAD[1:]
    assert folded.nodes[0].reads[1].shape == (4, 4, 2, 2, 16, 16)


@pytest.mark.parametrize("is_biased", [False, True])
def test_results_differ_by_rounding_within_derived_bounds(monkeypatch, is_biased) -> None:
    monkeypatch.setattr(module, "_MIN_GAIN", 0)

    def build(builder, x):
        weight = builder.constant("w", floats(1, 2, 2, 3, 3, 4, 4))
        bias = builder.constant("b", floats(2, 2, 4)) if is_biased else None
        made = builder.node("conv2d_nchwc", [x, weight, bias], {"padding": (1, 0, 1, 1)})
        return builder.node("relu", [made])

    graph = make_graph(build, (1, 2, 6, 5, 4))
    changed = fold_constants(use_winograd(graph, _V3))
    assert operators_of(changed) == ["conv2d_nchwc_winograd", "relu"]
    feeds = {"x": floats(3, 1, 2, 6, 5, 4)}
    (before,), (after,) = evaluate_graph(graph, feeds), evaluate_graph(changed, feeds)
    assert not np.array_equal(before, after)
    assert difference(graph, changed, feeds, rounding=Rounding.ROUNDS) == EQUAL


def test_a_wrong_kernel_is_beyond_the_bounds(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MIN_GAIN", 0)
    graph = convolution((1, 1, 4, 4, 2), outs=1)
    changed = fold_constants(use_winograd(graph, _V3))
    (kernel,) = changed.constants
    changed.constants[kernel].flags.writeable = True
    changed.constants[kernel][0, 0, 0, 0, 0, 0] *= 1 + 2.0**-12
    feeds = {"x": floats(3, 1, 1, 4, 4, 2)}
    assert difference(graph, changed, feeds, rounding=Rounding.ROUNDS) != EQUAL


def test_weights_are_transformed_once() -> None:
    def build(builder, x):
        weight = builder.constant("w", floats(1, 2, 2, 3, 3, 16, 16))
        once = builder.node("conv2d_nchwc", [x, weight], {"padding": (1, 1, 1, 1)})
        return builder.node("conv2d_nchwc", [once, weight])

    changed = use_winograd(make_graph(build, ("N", 2, 56, 56, 16)), _V3)
    assert operators_of(changed) == [*_WINOGRAD, _WINOGRAD[1]]


@pytest.mark.parametrize(
    "graph",
    [
        convolution(strides=(2, 2)),
        convolution(dilation=(2, 2)),
        convolution(groups=2),
        convolution(kernel=(3, 5)),
        convolution(kernel=(1, 1)),
        convolution(("N", 2, "h", 56, 16)),
        # It would not be faster.
        convolution((1, 32, 3, 3, 16), outs=32, padding=(1, 1, 1, 1)),
        convolution(("N", 1, 56, 56, 4), outs=1),
        convolution((0, 2, 56, 56, 16)),
    ],
)
def test_other_convolutions_stay(graph) -> None:
    assert operators_of(graph) == _DIRECT
    assert use_winograd(graph, _V3) is graph


def test_weights_of_a_run_stay() -> None:
    def build(builder, x):
        weight = builder.input("w", "f32", (2, 2, 3, 3, 16, 16))
        return builder.node("conv2d_nchwc", [x, weight])

    graph = make_graph(build, ("N", 2, 56, 56, 16))
    assert use_winograd(graph, _V3) is graph


def test_wide_vectors_leave_the_weights_of_small_images_to_be_read() -> None:
    graph = convolution((1, 32, 7, 7, 16), outs=32, padding=(1, 1, 1, 1))
    assert operators_of(use_winograd(graph, _V3)) == _WINOGRAD
    assert use_winograd(graph, _V4) is graph


def test_other_targets_keep_the_graph_and_unknown_ones_are_refused() -> None:
    graph = convolution()
    assert use_winograd(graph, "opencl") is graph
    with pytest.raises(UserError, match="lvm"):
        use_winograd(graph, "lvm")


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.use_winograd")
    assert_docstring_holds(passing, use_winograd, tolerance=2.0**-18)

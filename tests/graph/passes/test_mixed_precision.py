"""mixed_precision: what is narrowed, the derived bound, and what stays."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import UserError
from refcomp.graph.compile import compile_graph
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.executor import GraphExecutor
from refcomp.graph.optimize import optimize
from refcomp.graph.passes.mixed_precision import mixed_precision
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import (
    digits_graph,
    digits_images,
    make_graph,
    operators_of,
)
from tests.strategies.operands import floats

passing = import_module("refcomp.graph.passes.mixed_precision")
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def test_the_docstring_holds() -> None:
    # Its numbers are exact in f16, but for the inputs.
    assert_docstring_holds(passing, mixed_precision, tolerance=4 * UNITS["float16"])


def convolved(builder, x):
    inputs = [x, builder.constant("w", floats(1, 4, 3, 3, 3)), builder.constant("b", floats(2, 4))]
    return builder.node("conv2d", inputs)


def multiplied(builder, x):
    rows = builder.node("flatten", [x])
    return builder.node("dense", [rows, builder.constant("w", floats(1, 5, 108))])


@pytest.mark.parametrize("dtype", UNITS)
@pytest.mark.parametrize("build", [convolved, multiplied])
def test_sums_stay_within_the_derived_bound(build, dtype: str) -> None:
    graph = make_graph(build)
    changed = mixed_precision(graph, dtype)
    verify_graph(changed)
    x = floats(3, 2, 3, 6, 6)
    (expected,) = evaluate_graph(graph, {"x": x})
    (actual,) = evaluate_graph(changed, {"x": x})
    assert actual.dtype == np.float32
    # The same sums of absolute values: with the constants and the input made positive.
    positive = make_graph(lambda b, v: build(_Positive(b), v))
    (sizes,) = evaluate_graph(positive, {"x": np.abs(x)})
    unit = UNITS[dtype]
    roundings = 200 * 2.0**-24  # of at most 108 products and sums, on both sides
    bound = (2 * unit + unit**2 + roundings) * sizes
    assert (np.abs(actual - expected) <= bound).all()
    assert np.abs(actual - expected).max() > 2.0**-24  # something was rounded


class _Positive:
    """A builder that makes all constants positive."""

    def __init__(self, builder) -> None:
        self.node = builder.node
        self._constant = builder.constant

    def constant(self, name, array):
        return self._constant(name, np.abs(array))


def test_a_value_is_cast_once() -> None:
    def build(builder, x):
        return builder.node("add", [convolved(builder, x), convolved(builder, x)])

    changed = mixed_precision(make_graph(build))
    assert operators_of(changed).count("cast") == 3


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.node("softmax", [b.node("exp", [x])]),
        lambda b, x: b.node("matmul", [c := b.node("cast", [x], {"dtype": "float64"}), c]),
        lambda b, x: mixed_again(b, x),
    ],
    ids=["no products", "f64", "chosen already"],
)
def test_other_nodes_stay(build) -> None:
    graph = make_graph(build)
    assert mixed_precision(graph) is graph


def mixed_again(builder, x):
    return builder.node("matmul", [x, x], {"out_dtype": "float32"})


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(UserError, match="(?s)cannot multiply in f64.*float16 or bfloat16"):
        mixed_precision(digits_graph(), "float64")


@pytest.mark.llvm
@pytest.mark.parametrize("dtype", UNITS)
def test_the_digit_network_reads_digits(dtype: str) -> None:
    prepared = optimize(digits_graph(), ["fold_constants", "fold_batch_norm"])
    narrow = mixed_precision(prepared, dtype)
    layers = [node for node in narrow.nodes if node.operator == "conv2d"]
    assert {value.dtype for node in layers for value in node.reads[:2]} == {as_dtype(dtype)}
    executor = GraphExecutor(compile_graph(narrow, "llvm"))
    images, labels = digits_images()
    (scores,) = executor.run(image=images)
    (wide,) = evaluate_graph(digits_graph(), {"image": images})
    assert (scores.asnumpy().argmax(axis=1) == labels).mean() >= 0.97
    assert np.abs(scores.asnumpy() - wide).max() < 0.25
    assert scores.asnumpy().dtype == to_numpy(as_dtype("float32"))

"""fold_scale_axis: which products are folded, which stay, and that only rounding changes."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.passes.fold_scale_axis import fold_scale_axis
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds, assert_same_meaning
from tests.strategies.graphs import make_graph, operators_of
from tests.strategies.operands import floats

passing = import_module("refcomp.graph.passes.fold_scale_axis")


def test_the_docstring_holds() -> None:
    assert_docstring_holds(passing, fold_scale_axis, tolerance=1e-6)


def constant(builder, *shape, seed=5):
    return builder.constant("c", floats(seed, *shape))


def scaled(builder, value, *shape):
    return builder.node("multiply", [value, constant(builder, *shape)])


def conv(builder, x, groups=1, bias=True):
    weight = constant(builder, 6, 3 // groups, 3, 3)
    inputs = [x, weight, constant(builder, 6) if bias else None]
    return builder.node("conv2d", inputs, {"groups": groups, "padding": (1, 1, 1, 1)})


def flat(builder, x):
    return builder.node("flatten", [x])


CASES = {
    "conv": lambda b, x: scaled(b, conv(b, x), 6, 1, 1),
    "conv without bias": lambda b, x: scaled(b, conv(b, x, bias=False), 1, 6, 1, 1),
    "conv of groups": lambda b, x: scaled(b, conv(b, x, groups=3), 6, 1, 1),
    "scalar": lambda b, x: scaled(b, conv(b, x)),
    "before conv": lambda b, x: conv(b, scaled(b, x, 3, 1, 1)),
    "constant first": lambda b, x: b.node("multiply", [constant(b, 6, 1, 1), conv(b, x)]),
    "dense": lambda b, x: scaled(
        b, b.node("dense", [flat(b, x), constant(b, 5, 108), constant(b, 5)]), 5
    ),
    "before dense": lambda b, x: b.node(
        "dense", [scaled(b, flat(b, x), 108), constant(b, 5, 108), constant(b, 5)]
    ),
    "matmul": lambda b, x: scaled(b, b.node("matmul", [flat(b, x), constant(b, 108, 4)]), 4),
    "before matmul": lambda b, x: b.node(
        "matmul", [scaled(b, flat(b, x), 1, 108), constant(b, 4, 108)], {"trans_b": True}
    ),
    "gemm": lambda b, x: scaled(
        b,
        b.node(
            "gemm",
            [flat(b, x), constant(b, 4, 108), constant(b, 1)],
            {"trans_b": True, "alpha": 0.5, "beta": 2.0},
        ),
        4,
    ),
    "both sides and twice": lambda b, x: scaled(
        b, scaled(b, conv(b, scaled(b, scaled(b, x), 3, 1, 1)), 6, 1, 1)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_scales_are_folded(name: str) -> None:
    graph = make_graph(CASES[name])
    changed = fold_scale_axis(graph)
    verify_graph(changed)
    assert "multiply" not in operators_of(changed)
    assert [value.name for value in changed.outputs] == [value.name for value in graph.outputs]
    assert_same_meaning(graph, changed, tolerance=1e-5)


def huge(builder, x):
    big = builder.constant("big", np.full((6, 1, 1), 3e38, "float32"))
    return builder.node("multiply", [conv(builder, x), big])


def tiny(builder, x):
    small = builder.constant("small", np.full((6, 1, 1), 1e-38, "float32"))
    return builder.node("multiply", [conv(builder, x), small])


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: scaled(b, conv(b, x), 6),  # along the width
        lambda b, x: scaled(b, conv(b, x), 6, 6, 1),
        lambda b, x: [(y := conv(b, x)), scaled(b, y, 6, 1, 1)],
        lambda b, x: b.node("add", [scaled(b, y := conv(b, x), 6, 1, 1), y]),
        lambda b, x: conv(b, scaled(b, x, 3, 1, 1), groups=3),
        lambda b, x: b.node("multiply", [conv(b, x), conv(b, x)]),
        lambda b, x: scaled(b, b.node("relu", [conv(b, x)]), 6, 1, 1),
        lambda b, x: [z := scaled(b, x, 3, 1, 1), conv(b, z)],
        huge,
        tiny,
    ],
    ids=[
        *("another axis", "two axes", "output", "read twice", "input of groups", "no constant"),
        *("after relu", "product is an output", "overflow", "underflow"),
    ],
)
def test_what_cannot_be_folded_stays(build) -> None:
    graph = make_graph(build)
    assert fold_scale_axis(graph) is graph

"""cancel_layout_changes: what cancels, what moves, and what stays."""

from importlib import import_module

import numpy as np
import pytest

from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.cancel_layout_changes import cancel_layout_changes
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds, assert_same_meaning
from tests.strategies.graphs import make_graph, operators_of
from tests.strategies.operands import floats

passing = import_module("refcomp.graph.passes.cancel_layout_changes")


def transpose(builder, value, *axes):
    return builder.node("transpose", [value], {"axes": axes})


def after(build, shape=("N", 3, 4, 5)) -> list[str]:
    """The operators after the pass, which keeps the meaning to the bit."""
    graph = make_graph(build, shape)
    changed = cancel_layout_changes(graph)
    verify_graph(changed)
    assert_same_meaning(graph, changed)
    assert (changed is graph) == (str(changed) == str(graph))
    return operators_of(changed)


def test_the_docstring_holds() -> None:
    assert_docstring_holds(passing, cancel_layout_changes)


def test_transposes_that_undo_each_other_go() -> None:
    def build(b, x):
        y = transpose(b, transpose(b, b.node("relu", [x]), 0, 2, 3, 1), 0, 3, 1, 2)
        return b.node("exp", [y])

    assert after(build) == ["relu", "exp"]


def test_two_transposes_become_one() -> None:
    graph = make_graph(lambda b, x: transpose(b, transpose(b, x, 1, 0, 2, 3), 0, 2, 3, 1))
    (node,) = cancel_layout_changes(graph).nodes
    assert node.attributes == {"axes": (1, 2, 3, 0)}
    assert_same_meaning(graph, cancel_layout_changes(graph))


def test_a_transpose_that_moves_nothing_goes() -> None:
    assert after(lambda b, x: b.node("relu", [transpose(b, x, 0, 1, 2, 3)])) == ["relu"]
    assert after(lambda b, x: transpose(b, x, 0, 1, 2, 3)) == ["identity"]


def test_transposes_move_through_chains_of_several_operands() -> None:
    def build(b, x):
        one = b.constant("one", np.ones((1, 1), "float32"))
        left = transpose(b, b.node("tanh", [x]), 0, 2, 3, 1)
        right = transpose(b, b.node("exp", [x]), 0, 2, 3, 1)
        total = b.node("add", [b.node("multiply", [left, one]), right])
        return transpose(b, b.node("relu", [total]), 0, 3, 1, 2)

    assert after(build) == ["tanh", "exp", "multiply", "add", "relu", "identity"]


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.node("softmax", [transpose(b, x, 0, 2, 3, 1)]),
        lambda b, x: b.node("triu", [transpose(b, x, 0, 1, 3, 2)]),
        lambda b, x: b.node("add", [transpose(b, x, 0, 2, 3, 1), b.constant("c", floats(0, 3))]),
        lambda b, x: [(y := transpose(b, x, 0, 2, 3, 1)), b.node("relu", [y])],
        lambda b, x: b.node("add", [b.node("relu", [y := transpose(b, x, 0, 2, 3, 1)]), y]),
    ],
    ids=["softmax", "by index", "broadcast", "output", "read twice"],
)
def test_what_reads_the_layout_stays(build) -> None:
    graph = make_graph(build, ("N", 3, 4, 5))
    assert cancel_layout_changes(graph) is graph


def test_reshapes_of_reshapes_become_one() -> None:
    def build(b, x):
        y = b.node("reshape", [x], {"shape": (12, 5)})
        z = b.node("reshape", [y], {"shape": (5, 12)})
        return b.node("reshape", [z], {"shape": (60,)})

    assert after(build, (3, 4, 5)) == ["reshape"]


def test_a_reshape_that_copies_an_extent_stays() -> None:
    text = """
graph g(x: f32[6, 4]) -> (z) {
  y: f32[4, 6] = reshape(x) {shape=[4, 6]}
  z: f32[4, 3, 2] = reshape(y) {shape=[0, 3, 2]}
}"""
    graph = parse_graph(text)
    assert cancel_layout_changes(graph) is graph

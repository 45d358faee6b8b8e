"""`if`: the branch that is taken, the types of its outputs, and what it refuses."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import f32, run_text

SAME_SHAPES = """
graph g(c: bool[], x: f32[N]) -> (y) {
  y: f32[N] = if(c, x)
    graph then(x: f32[N]) -> (r) { r: f32[N] = relu(x) }
    graph otherwise(x: f32[N]) -> (r) { r: f32[N] = negative(x) }
}"""
OTHER_SHAPES = """
graph g(c: bool[1], x: f32[2]) -> (z) {
  y: f32[*] = if(c, x)
    graph then(x: f32[2]) -> (r) { r: f32[1, 2] = expand_dims(x) {axis=0} }
    graph otherwise(x: f32[2]) -> (r) { r: f32[2, 1] = expand_dims(x) {axis=1} }
  z: f32[*] = exp(y)
}"""


def test_the_condition_chooses_the_branch() -> None:
    x = f32(1, -2)
    (y,) = run_text(SAME_SHAPES, c=np.array(True), x=x)
    assert y.tolist() == [1, 0]
    (y,) = run_text(SAME_SHAPES, c=np.array(False), x=x)
    assert y.tolist() == [-1, 2]


@pytest.mark.llvm
def test_branches_may_return_tensors_of_different_rank() -> None:
    for flag, shape in ((True, (1, 2)), (False, (2, 1))):
        (z,) = run_text(OTHER_SHAPES, "llvm", c=np.array([flag]), x=f32(0, 0))
        assert z.shape == shape
        assert z.ravel().tolist() == [1, 1]


def test_a_symbol_that_a_branch_makes_stays_inside() -> None:
    text = """
graph g(c: bool[], x: f32[4]) -> (y) {
  y: i64[*] = if(c, x)
    graph then(x: f32[4]) -> (k) {
      i: i64[1, 4], n: i64[1] = nonzero(x)
      k: i64[1, kept] = narrow(i, n) {axis=1, symbol="kept"}
    }
    graph otherwise(x: f32[4]) -> (i) { i: i64[1, 4], n: i64[1] = nonzero(x) }
}"""
    (y,) = run_text(text, c=np.array(True), x=f32(0, 1, 0, 2))
    assert y.tolist() == [[1, 3]]


BRANCHES = (
    "graph a(x: f32[2]) -> (r) { r: f32[2] = relu(x) }",
    "graph b(x: f32[2]) -> (r) { r: f32[2] = relu(x) }",
)


@pytest.mark.parametrize(
    ("node", "branches", "message"),
    [
        ("if(x, x)", BRANCHES, "the input condition of if cannot be x: f32.2.*give one bool"),
        ("if(c, x)", BRANCHES[:1], "if has 1 subgraphs.*give it 2"),
        ("if(c)", BRANCHES, "if gives the graph 'a' 0 inputs, but the graph takes 1"),
        (
            "if(c, c)",
            BRANCHES,
            "if gives the input x: f32.2. of the graph 'a' bool.*declare the input as bool",
        ),
        (
            "if(c, x)",
            (BRANCHES[0], "graph b(x: f32[2]) -> (x, x) { }"),
            "the branches of if return 1 and 2 values",
        ),
        (
            "if(c, x)",
            (BRANCHES[0], "graph b(x: f32[2]) -> (r) { r: bool[2] = isnan(x) }"),
            "output 0 of the branches of if is f32.2. and bool.2.",
        ),
        (
            "if(c, x)",
            (BRANCHES[0], "graph b(x: f32[2]) -> (r) { r: seq(f32) = sequence_construct(x) }"),
            r"output 0 of the branches of if is f32.2. and seq\(f32\)",
        ),
    ],
)
def test_wrong_nodes_are_refused(node: str, branches: tuple[str, ...], message: str) -> None:
    text = f"graph g(c: bool[], x: f32[2]) -> () {{ y: f32[2] = {node} {' '.join(branches)} }}"
    with pytest.raises(UserError, match=f"(?s)node y: {message}"):
        parse_graph(text)

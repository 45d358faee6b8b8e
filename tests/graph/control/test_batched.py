"""`batched_scan`: each element of a batch has its own length, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import run_text

SUMS = """
graph g(n: i64[2], s: f32[2, 1], x: f32[2, 3, 1]) -> (last, sums) {
  last: f32[2, 1], sums: f32[2, 3, 1] = batched_scan(LENGTHS, s, x) {states=1, scanned=1 MORE}
    graph body(s: f32[1], x: f32[1]) -> (t, t) { t: f32[1] = add(s, x) }
}"""
X = np.arange(1, 7, dtype="float32").reshape(2, 3, 1)


@pytest.mark.parametrize(
    ("lengths", "more", "last", "sums"),
    [
        ("_", "", [6, 25], [[1, 3, 6], [14, 19, 25]]),
        ("n", "", [3, 10], [[1, 3, 0], [0, 0, 0]]),
        ("n", ", directions=[1]", [3, 10], [[2, 3, 0], [0, 0, 0]]),
        ("_", ", directions=[1]", [6, 25], [[3, 5, 6], [16, 21, 25]]),
    ],
)
def test_an_element_of_the_batch_has_its_own_length(lengths, more, last, sums) -> None:
    text = SUMS.replace("LENGTHS", lengths).replace(" MORE", more)
    feeds = {"n": np.array([2, 0]), "s": np.array([[0], [10]], "float32"), "x": X}
    made = run_text(text, **feeds)
    assert made[0].tolist() == [[one] for one in last]
    assert made[1].tolist() == [[[one] for one in row] for row in sums]


def test_a_batch_without_elements() -> None:
    text = """
graph g(x: f32[N, 3]) -> (sums) {
  sums: f32[N, 3] = batched_scan(_, x) {scanned=1}
    graph body(x: f32[]) -> (t) { t: f32[] = add(x, x) }
}"""
    assert run_text(text, x=np.zeros((0, 3), "float32"))[0].shape == (0, 3)
    assert run_text(text, x=np.ones((1, 3), "float32"))[0].tolist() == [[2, 2, 2]]


@pytest.mark.parametrize("lengths", [[1], [4, 1], [-1, 2]])
def test_lengths_that_do_not_fit_are_refused(lengths: list[int]) -> None:
    text = SUMS.replace("LENGTHS", "n").replace(" MORE", "").replace("i64[2]", "i64[L]")
    feeds = {"n": np.array(lengths), "s": np.zeros((2, 1), "float32"), "x": X}
    with pytest.raises(UserError, match="needs 2 lengths from 0 to 3") as caught:
        run_text(text, **feeds)
    assert caught.value.where == "node last"


def test_inputs_of_different_batches_are_refused() -> None:
    text = """
graph g(x: f32[N, 3], y: f32[M, 3]) -> (sums) {
  sums: f32[N, 3] = batched_scan(_, x, y) {scanned=2}
    graph body(x: f32[], y: f32[]) -> (t) { t: f32[] = add(x, y) }
}"""
    feeds = {"x": np.ones((1, 3), "float32"), "y": np.ones((2, 3), "float32")}
    with pytest.raises(UserError, match=r"cannot scan a batch of shapes \[1, 3\], \[2, 3\]"):
        run_text(text, **feeds)


def test_inputs_of_too_few_axes_are_refused_in_a_run() -> None:
    text = """
graph g(x: f32[*]) -> (sums) {
  sums: f32[*] = batched_scan(_, x) {scanned=1}
    graph body(x: f32[*]) -> (x) { }
}"""
    assert run_text(text, x=np.ones((1, 2), "float32"))[0].tolist() == [[1, 1]]
    for shape in ((), (2,)):
        with pytest.raises(UserError, match="cannot scan a batch of shapes"):
            run_text(text, x=np.ones(shape, "float32"))


@pytest.mark.parametrize(
    ("node", "body", "message"),
    [
        ("_, x) {scanned=0}", "x: f32[]) -> (x", "batched_scan scans no input"),
        ("x, x) {scanned=1}", "x: f32[]) -> (x", "batched_scan takes no lengths x: f32"),
        ("_, s) {scanned=1}", "x: f32[]) -> (x", "batched_scan cannot scan s: f32.2.*2 axes"),
        (
            "_, s, x) {states=1, scanned=1}",
            "s: f32[], x: f32[]) -> (",
            "the body of batched_scan returns 0 values",
        ),
    ],
)
def test_wrong_nodes_are_refused(node: str, body: str, message: str) -> None:
    text = (
        f"graph g(s: f32[2], x: f32[2, 3]) -> () {{ y: f32[2] = batched_scan({node} "
        f"graph b({body}) {{ }} }}"
    )
    with pytest.raises(UserError, match=f"(?s)node y: .*{message}"):
        parse_graph(text)

"""`loop` and `scan`: iterations, carried values, collected outputs, and what they refuse."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import f32, i64, run_text

# Doubles a vector until its first element is at least 10, and collects each result.
DOUBLING = """
graph g(n: i64[], c: bool[], x: f32[2], most: f32[]) -> (last, all) {
  last: f32[2], all: f32[*] = loop({trips}, {condition}, x, most) {carried=1}
    graph body(i: i64[], c: bool[], x: f32[2], most: f32[]) -> (goes_on, next, next) {
      next: f32[2] = add(x, x)
      largest: f32[] = max(next)
      goes_on: bool[] = less(largest, most)
    }
}"""


def doubling(trips: str = "n", condition: str = "c") -> str:
    return DOUBLING.replace("{trips}", trips).replace("{condition}", condition)


@pytest.mark.parametrize(
    ("trips", "condition", "n", "c", "results"),
    [
        ("n", "c", 2, True, [2, 4]),
        ("n", "c", 9, True, [2, 4, 8, 16]),
        ("_", "c", 0, True, [2, 4, 8, 16]),
        ("n", "_", 3, False, [2, 4, 8]),
        ("_", "_", 0, False, [2, 4, 8, 16]),
        ("n", "c", 0, True, []),
        ("n", "c", -1, True, []),
        ("n", "c", 9, False, []),
    ],
)
def test_a_loop_ends_by_trips_or_condition(
    trips: str, condition: str, n: int, c: bool, results: list[int]
) -> None:
    feeds = {"n": i64(n), "c": np.array(c), "x": f32(1, 0), "most": f32(10)[0]}
    feeds["most"] = np.array(10, "float32")
    last, collected = run_text(doubling(trips, condition), **feeds)
    assert last.tolist() == [results[-1] if results else 1, 0]
    assert collected.tolist() == [[one, 0] for one in results]
    assert collected.shape == (len(results), 2)


def test_a_carried_value_may_change_its_shape() -> None:
    text = """
graph g(n: i64[], x: f32[1]) -> (y) {
  y: f32[*] = loop(n, _, x) {carried=1}
    graph body(i: i64[], c: bool[], x: f32[*]) -> (c, twice) {
      s: seq(f32) = sequence_construct(x, x)
      twice: f32[*] = concat_from_sequence(s) {axis=0}
    }
}"""
    (y,) = run_text(text, n=i64(3), x=f32(7))
    assert y.tolist() == [7] * 8


def test_a_loop_may_carry_a_sequence_and_nest() -> None:
    text = """
graph g(n: i64[], x: f32[2]) -> (s) {
  e: seq(f32) = sequence_empty() {dtype="f32"}
  s: seq(f32) = loop(n, _, e, x) {carried=1}
    graph body(i: i64[], c: bool[], s: seq(f32), x: f32[2]) -> (c, t) {
      y: f32[2] = loop(i, _, x) {carried=1}
        graph inner(j: i64[], c: bool[], x: f32[2]) -> (c, z) { z: f32[2] = add(x, x) }
      t: seq(f32) = sequence_insert(s, y)
    }
}"""
    (s,) = run_text(text, n=i64(4), x=f32(1, 3))
    assert [one.tolist() for one in s] == [[1, 3], [2, 6], [4, 12], [8, 24]]


CUMULATIVE = """
graph g(s: f32[2], x: f32[3, 2]) -> (last, sums) {
  last: f32[2], sums: f32[TYPE] = scan(s, x) {states=1, scanned=1 MORE}
    graph body(s: f32[2], x: f32[2]) -> (t, t) { t: f32[2] = add(s, x) }
}"""


@pytest.mark.parametrize(
    ("more", "kind", "expected"),
    [
        ("", "3, 2", [[1, 2], [4, 6], [9, 12]]),
        (", input_directions=[1]", "3, 2", [[5, 6], [8, 10], [9, 12]]),
        (", output_directions=[1]", "3, 2", [[9, 12], [4, 6], [1, 2]]),
        (", output_axes=[1]", "2, 3", [[1, 4, 9], [2, 6, 12]]),
        (", output_axes=[-1]", "2, 3", [[1, 4, 9], [2, 6, 12]]),
    ],
)
def test_a_scan_goes_along_an_axis(more: str, kind: str, expected: list[list[int]]) -> None:
    x = np.arange(1, 7, dtype="float32").reshape(3, 2)
    text = CUMULATIVE.replace("TYPE", kind).replace(" MORE", more)
    last, sums = run_text(text, s=f32(0, 0), x=x)
    assert last.tolist() == [9, 12]
    assert sums.tolist() == expected


def test_a_scan_may_go_along_another_axis_of_any_length() -> None:
    text = """
graph g(x: f32[2, N], y: f32[2, N]) -> (all) {
  all: f32[N, 2] = scan(x, y) {scanned=2, input_axes=[1, -1]}
    graph body(x: f32[2], y: f32[2]) -> (t) { t: f32[2] = multiply(x, y) }
}"""
    x = np.arange(6, dtype="float32").reshape(2, 3)
    (result,) = run_text(text, x=x, y=x)
    np.testing.assert_array_equal(result, (x * x).T)
    (result,) = run_text(text, x=x[:, :0], y=x[:, :0])
    assert result.shape == (0, 2)


def test_a_scanned_output_keeps_symbols_of_the_inputs() -> None:
    text = """
graph g(x: f32[N, B]) -> (all, found) {
  all: f32[N, B], found: TYPE = scan(x) {scanned=1}
    graph body(x: f32[B]) -> (t, f) {
      t: f32[B] = add(x, x)
      places: i64[1, B], count: i64[1] = nonzero(x)
      f: i64[1, kept] = narrow(places, count) {axis=1, symbol="kept"}
    }
}"""
    x = np.array([[1, 0], [2, 0]], "float32")
    doubled, found = run_text(text.replace("TYPE", "i64[*]"), x=x)
    np.testing.assert_array_equal(doubled, x * 2)
    assert found.tolist() == [[[0]], [[0]]]
    with pytest.raises(UserError, match="found"):
        parse_graph(text.replace("TYPE", "i64[N, 1, kept]"))


def test_an_axis_that_only_a_run_finds_missing_is_refused() -> None:
    text = """
graph g(x: f32[*]) -> (all) {
  all: f32[*] = scan(x) {scanned=1, input_axes=[1]}
    graph body(x: f32[*]) -> (x) { }
}"""
    assert run_text(text, x=np.ones((2, 3), "float32"))[0].shape == (3, 2)
    with pytest.raises(UserError, match=r"cannot scan axis 1 of a tensor of shape \[2\]"):
        run_text(text, x=f32(1, 2))


def test_a_scan_of_inputs_of_different_lengths_is_refused() -> None:
    text = """
graph g(x: f32[N], y: f32[M]) -> (all) {
  all: f32[N] = scan(x, y) {scanned=2}
    graph body(x: f32[], y: f32[]) -> (t) { t: f32[] = multiply(x, y) }
}"""
    with pytest.raises(UserError, match="scan cannot scan inputs of 1 and 2 elements") as caught:
        run_text(text, x=f32(1), y=f32(1, 2))
    assert caught.value.where == "node all"


BODY = "graph body(i: i64[], c: bool[], x: f32[2]) -> (c, x) { }"


@pytest.mark.parametrize(
    ("node", "body", "message"),
    [
        ("loop(x, c, x) {carried=1}", BODY, "the input trips of loop cannot be x: f32.2.*integer"),
        ("loop(n, n, x) {carried=1}", BODY, "the input condition of loop cannot be n: i64"),
        ("loop(n, c, x) {carried=2}", BODY, "attribute carried of loop is 2, but 1 inputs"),
        ("loop(n, c, x) {carried=-1}", BODY, "attribute carried of loop is -1, but 1 inputs"),
        ("loop(n, c) {carried=0}", BODY, "loop gives the graph 'body' 2 inputs, .* takes 3"),
        (
            "loop(n, c, x) {carried=1}",
            "graph b(i: i64[], c: bool[], x: f32[2]) -> (c) { }",
            "the body of loop returns 1 values.*return the next condition, then 1 carried",
        ),
        (
            "loop(n, c, x) {carried=1}",
            "graph b(i: i64[], c: bool[], x: f32[2]) -> (x, x) { }",
            "the input next condition of loop cannot be x: f32",
        ),
        (
            "loop(n, c, x) {carried=1}",
            "graph b(i: i64[], c: bool[], x: f32[2]) -> (c, y) { y: f32[] = max(x) }",
            "the body of loop takes x: f32.2., but returns f32.. for the next iteration"
            ".*declare the input as f32...",
        ),
        (
            "loop(n, c, x) {carried=0}",
            "graph b(i: i64[], c: bool[], x: f32[2]) -> (c, s)"
            " { s: seq(f32) = sequence_construct(x) }",
            "the input output of the body of loop cannot be s: seq",
        ),
        ("scan(x) {scanned=0}", BODY, "scan scans no input"),
        ("scan(x)", BODY, "scan lacks the attribute scanned"),
        ("scan(x) {scanned=2}", BODY, "attribute scanned of scan is 2, but 1 inputs"),
        ("scan(x) {scanned=1, input_axes=[1]}", BODY, "scan cannot scan axis 1 of x: f32.2."),
        ("scan(x) {scanned=1, input_axes=[0, 0]}", BODY, "input_axes has 2 elements for 1 values"),
        (
            "scan(x, x) {states=1, scanned=1}",
            "graph b(s: f32[2], x: f32[]) -> () { }",
            "the body of scan returns 0 values",
        ),
        (
            "scan(x) {scanned=1, output_axes=[2]}",
            "graph b(x: f32[]) -> (x) { }",
            "scan cannot put x: f32.. along axis 2",
        ),
    ],
)
def test_wrong_nodes_are_refused(node: str, body: str, message: str) -> None:
    text = f"graph g(n: i64[], c: bool[], x: f32[2]) -> () {{ y: f32[2] = {node} {body} }}"
    with pytest.raises(UserError, match=f"(?s)node y: .*{message}"):
        parse_graph(text)

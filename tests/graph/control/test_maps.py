"""Maps of a run: their elements in tensors, tensors as maps, and what is refused."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.parser import parse_graph
from refcomp.graph.stages.executor import StagedExecutor
from refcomp.graph.tracing import trace_graph
from tests.graph.control.runs import run_text

LOOKUP = """
graph g(m: map(string, f32)) -> (y) {
  y: f32[1, 2] = map_lookup(m) {dtype="f32", keys="[\\"a\\", \\"b\\"]"}
}"""
VALUES = """
graph g(m: map(i64, i32)) -> (y, z) {
  y: i32[*] = map_values(m) {dtype="i32"}
  z: i32[*] = map_values(m) {dtype="i32", length=4}
}"""
ZIPPED = """
graph g(x: f32[N, 2], s: seq(map(i64, f32))) -> (y, z, s) {
  y: seq(map(string, f32)) = zip_map(x) {keys="[\\"a\\", \\"b\\"]"}
  z: seq(map(i64, f32)) = zip_map(x) {keys="[1, 2]"}
}"""


def test_elements_are_found_by_keys() -> None:
    (made,) = run_text(LOOKUP, m={"b": 2.5, "c": 1.0})
    assert made.tolist() == [[0, 2.5]]


def test_elements_come_in_the_order_of_keys_or_at_their_places() -> None:
    dense, sparse = run_text(VALUES, m={3: 7, np.int32(0): np.int64(5)})
    assert dense.tolist() == [[5, 7]]
    assert sparse.tolist() == [[5, 0, 0, 7]]


def test_rows_become_maps() -> None:
    graph = parse_graph(ZIPPED)
    feeds = {"x": np.array([[1, 2], [3, 4]], np.float32), "s": [{7: 1.5}]}
    wanted = [
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}),
        ({1: 1.0, 2: 2.0}, {1: 3.0, 2: 4.0}),
        ({7: 1.5},),
    ]
    assert evaluate_graph(graph, feeds) == wanted
    assert StagedExecutor(graph, "interp").run(feeds) == wanted
    assert str(parse_graph(str(graph))) == str(graph)


def test_a_map_is_traced_as_what_it_holds() -> None:
    traced = trace_graph(parse_graph(LOOKUP), {"m": {"a": 1.0}})
    assert not traced.inputs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], "m: map.string, f32. cannot be a list"),
        (np.zeros(2), "cannot be a ndarray"),
        ({1: 1.0}, "cannot have the key 1"),
        ({"a": "x"}, "cannot have the element 'x'"),
        ({"a": True}, "cannot have the element True"),
    ],
)
def test_other_values_are_refused(given, message) -> None:
    with pytest.raises(UserError, match=message):
        run_text(LOOKUP, m=given)


@pytest.mark.parametrize("element", [1.5, 2**31, "x"])
def test_integers_are_whole_and_in_range(element) -> None:
    with pytest.raises(UserError, match="(?s)cannot have the element.*its elements are i32"):
        run_text(VALUES, m={0: element})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LOOKUP.replace("string, f32", "i64, f32"), "map_lookup cannot find 'a' in m"),
        (LOOKUP.replace("string, f32", "i8, f32"), "keys of a map are i64 or string"),
        (LOOKUP.replace('dtype="f32"', 'dtype="i8"'), "map_lookup cannot read i8 from m"),
        (LOOKUP.replace('[\\"a\\", \\"b\\"]', "[1.5]"), "keys cannot be read from"),
        (LOOKUP.replace('[\\"a\\", \\"b\\"]', "a, b"), "keys cannot be read from"),
        (VALUES.replace("i64, i32", "string, i32"), "the input map of map_values cannot be"),
        (VALUES.replace("length=4", "length=99999999"), "tensor of 99999999 elements"),
        (ZIPPED.replace("[N, 2]", "[]"), "zip_map cannot take x"),
    ],
)
def test_wrong_nodes_are_refused(text, message) -> None:
    with pytest.raises(UserError, match=message):
        parse_graph(text)

"""Places of texts in lists, texts at places, and checked values."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.control.labels import LABEL_OPERATORS
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import run_text

ROUND_TRIP = """
graph g(x: i64[N]) -> (y) {
  s: string[*] = label_at(x) {labels="[\\"a\\", \\"b\\", \\"a\\"]"}
  y: i64[*] = label_index(s) {labels="[\\"b\\", \\"a\\", \\"b\\"]"}
}"""
CHECKED = """
graph g(x: i64[N], c: bool[N]) -> (y) {
  y: i64[N] = checked(x, c) {fault="an element is odd"}
}"""


def test_the_last_of_equal_labels_counts_and_unknown_ones_are_behind_all() -> None:
    (made,) = run_text(ROUND_TRIP, x=np.array([0, 1, 2]))
    assert made.tolist() == [1, 2, 1]
    (made,) = run_text(
        ROUND_TRIP.replace('\\"b\\", \\"a\\", \\"b\\"', '\\"a\\"'), x=np.array([1, 0])
    )
    assert made.tolist() == [1, 0]


def test_places_out_of_range_are_moved_into_range() -> None:
    (made,) = run_text(ROUND_TRIP, x=np.array([-4, 9]))
    assert made.tolist() == [1, 1]


def test_a_value_is_checked_in_a_run() -> None:
    x = np.array([4, 6])
    (made,) = run_text(CHECKED, x=x, c=np.array([True, True]))
    assert made.tolist() == [4, 6]
    with pytest.raises(UserError, match="an element is odd") as caught:
        run_text(CHECKED, x=x, c=np.array([True, False]))
    assert caught.value.where == "node y"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROUND_TRIP.replace("x: i64", "x: f32"), "label_at cannot take x: f32"),
        (ROUND_TRIP.replace("label_index(s)", "label_index(x)"), "label_index cannot take x: i64"),
        (ROUND_TRIP.replace('[\\"a\\", \\"b\\", \\"a\\"]', "[]"), "label_at has no labels"),
        (ROUND_TRIP.replace('[\\"b\\", \\"a\\", \\"b\\"]', "[1]"), "labels cannot be read from"),
        (ROUND_TRIP.replace('[\\"b\\", \\"a\\", \\"b\\"]', "a, b"), "labels cannot be read from"),
        (CHECKED.replace("c: bool", "c: i8"), "checked cannot be decided by c: i8"),
    ],
)
def test_wrong_nodes_are_refused(text, message) -> None:
    with pytest.raises(UserError, match=message):
        parse_graph(text)


def test_all_operators_are_listed() -> None:
    names = [operator.name for operator in LABEL_OPERATORS]
    assert names == ["label_index", "label_at", "checked"]

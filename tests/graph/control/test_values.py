"""Values that a caller gives a graph with sequences and optionals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.control.values import as_run_value, check_run_values, late_attribute
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import f32

GRAPH = parse_graph(
    "graph g(x: f32[N], s: seq(f32), o: optional(f32), u: f32[*]) -> (x) { require N < 3 }"
)


def given(**changed: object) -> dict[str, object]:
    return {"x": f32(1), "s": [f32(1)], "o": None, "u": f32(1)[None], **changed}


def test_symbols_are_solved_from_tensors() -> None:
    assert check_run_values(GRAPH, given(x=f32(1, 2))) == {"N": 2}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": f32(1)}, "the graph has no input 'y'"),
        ({"x": [f32(1)]}, "input 'x' cannot be a list"),
        ({"x": f32(1, 2, 3)}, "the graph g requires N < 3.*N = 3"),
        ({"s": f32(1)}, r"input s: seq\(f32\) cannot be a ndarray.*pass a list of arrays"),
        ({"s": None}, r"input s: seq\(f32\) cannot be a NoneType"),
        ({"s": [1.0]}, "input 's' cannot be a float"),
        ({"s": [np.zeros(1)]}, r"input s: seq\(f32\) is given an array of f64.*to f32"),
        ({"o": [f32(1)]}, r"input o: optional\(f32\) cannot be a list.*pass an array"),
        ({"u": None}, r"input u: f32\[\*\] cannot be a NoneType"),
    ],
)
def test_values_that_do_not_fit_are_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=f"(?s){message}"):
        check_run_values(GRAPH, given(**changed))


def test_missing_values_are_named() -> None:
    feeds = given()
    del feeds["s"], feeds["o"]
    with pytest.raises(UserError, match=r"for input s: seq\(f32\), o: optional\(f32\)"):
        check_run_values(GRAPH, feeds)


def test_a_list_becomes_a_tuple() -> None:
    assert as_run_value([1]) == (1,)
    assert as_run_value(None) is None


def test_attributes_are_python_numbers() -> None:
    assert late_attribute(np.array(3)) == 3
    assert type(late_attribute(np.array(3))) is int
    assert late_attribute(np.array([1.5, 2])) == (1.5, 2.0)

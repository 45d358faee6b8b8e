"""What a caller may give a graph."""

import numpy as np
import pytest

from refcomp.foundation.dtype import F32, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.feeds import check_feeds
from refcomp.graph.graph import Graph, Value
from refcomp.graph.parser import parse_graph

A = Value("a", F32, ("N", 3))
B = Value("b", as_dtype("bf16"), (("mul", "N", 2), "M"))
GRAPH = Graph("g", (A, B), (), ())
F = np.dtype(np.float32)


def feeds(a=(F, (2, 3)), b=("bf16", (4, 5))):
    return {"a": a, "b": b}


def test_symbols_are_read_off() -> None:
    assert check_feeds(GRAPH, feeds()) == {"N": 2, "M": 5}
    assert check_feeds(GRAPH, feeds((F, (0, 3)), ("bf16", (0, 0)))) == {"N": 0, "M": 0}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": (F, (2, 3))}, "no value is given for input 'b'"),
        ({**feeds(), "c": (F, (1,))}, "the graph has no input 'c'"),
        (feeds(a=("f64", (2, 3))), "input 'a' is f32, but the array is f64"),
        (feeds(a=(F, (2, 3, 1))), r"input a: f32.N, 3. has 2 dimensions, but the array has 3"),
        (feeds(a=(F, (2, 4))), "extent 1 of input 'a' is 4 instead of 3"),
        (feeds(b=("bf16", (5, 5))), "extent 0 of input 'b' is 5 instead of 4"),
    ],
)
def test_what_does_not_fit_is_refused(given, message) -> None:
    with pytest.raises(UserError, match=message) as info:
        check_feeds(GRAPH, given)
    if "no input" in message:
        assert "a: f32[N, 3], b: bf16[(N * 2), M]" in info.value.remedy


def test_a_symbol_is_solved_from_a_linear_extent() -> None:
    graph = Graph("g", (Value("a", F32, (("add", "N", -2), ("mul", "N", "M"))),), (), ())
    assert check_feeds(graph, {"a": (F, (3, 20))}) == {"N": 5, "M": 4}
    with pytest.raises(UserError, match="extent 1 of input 'a' is 21 instead of 20"):
        check_feeds(graph, {"a": (F, (3, 21))})


def test_a_symbol_that_nothing_tells_is_refused() -> None:
    graph = Graph("g", (Value("a", F32, (("floordiv", "N", 2),)),), (), ())
    with pytest.raises(UserError, match=r"the extent \(N // 2\) of input a: .* has no value"):
        check_feeds(graph, {"a": (F, (3,))})


def test_conditions_on_symbols_are_checked() -> None:
    graph = parse_graph("graph g(x: f32[N, M]) -> (x) { require N % 4 == 0 require N < M }")
    assert check_feeds(graph, {"x": ("float32", (4, 5))}) == {"N": 4, "M": 5}
    with pytest.raises(UserError, match=r"(?s)graph g requires N % 4 == 0.*but N = 5"):
        check_feeds(graph, {"x": ("float32", (5, 9))})
    with pytest.raises(UserError, match=r"(?s)graph g requires N < M.*but M = 4, N = 4"):
        check_feeds(graph, {"x": ("float32", (4, 4))})

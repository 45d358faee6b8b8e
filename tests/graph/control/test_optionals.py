"""Operators on optionals: with an element, without one, and what they refuse."""

import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import f32, run_text

TAKEN = """
graph g(o: optional(f32)) -> (r, has) {
  has: bool[] = optional_has_element(o)
  r: f32[*] = if(has, o)
    graph then(o: optional(f32)) -> (e) { e: f32[*] = optional_get_element(o) }
    graph otherwise(o: optional(f32)) -> (z) { const z: f32[1] = [-1] }
}"""


def test_an_optional_may_be_absent() -> None:
    r, has = run_text(TAKEN, o=f32(7, 8))
    assert (r.tolist(), has.tolist()) == ([7, 8], True)
    r, has = run_text(TAKEN, o=None)
    assert (r.tolist(), has.tolist()) == ([-1], False)


def test_a_tensor_or_a_sequence_is_wrapped() -> None:
    text = """
graph g(x: f32[N], s: seq(f32)) -> (o, t, a, b, n) {
  o: optional(f32) = optional(x)
  t: optional(seq(f32)) = optional(s)
  a: optional(i8) = optional() {dtype="i8"}
  b: optional(seq(f32)) = optional() {dtype="f32", sequence=True}
  n: bool[] = optional_has_element()
}"""
    o, t, a, b, n = run_text(text, x=f32(1), s=[f32(2)])
    assert o.tolist() == [1]
    assert [one.tolist() for one in t] == [[2]]
    assert (a, b, n.tolist()) == (None, None, False)


def test_a_value_that_is_no_optional_has_itself() -> None:
    text = """
graph g(x: f32[N], s: optional(seq(f32))) -> (y, h, t) {
  y: f32[N] = optional_get_element(x)
  h: bool[] = optional_has_element(x)
  t: seq(f32) = optional_get_element(s)
}"""
    y, h, t = run_text(text, x=f32(1), s=[f32(2)])
    assert (y.tolist(), h.tolist(), [one.tolist() for one in t]) == ([1], True, [[2]])


def test_the_element_of_nothing_is_refused() -> None:
    text = "graph g(o: optional(f32)) -> (e) { e: f32[*] = optional_get_element(o) }"
    with pytest.raises(
        UserError, match="(?s)an optional without one.*optional_has_element"
    ) as caught:
        run_text(text, o=None)
    assert caught.value.where == "node e"


def test_wrong_nodes_are_refused() -> None:
    with pytest.raises(UserError, match="(?s)without an element has no dtype.*sequence=True"):
        parse_graph("graph g() -> () { o: optional(f32) = optional() }")
    with pytest.raises(UserError, match="the input value of optional cannot be o"):
        parse_graph("graph g(o: optional(f32)) -> () { p: optional(f32) = optional(o) }")

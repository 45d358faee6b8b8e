"""equivalence: equal bits, legal rounding, and what is neither."""

import numpy as np
import pytest

from refcomp.graph.equivalence import EQUAL, UNKNOWN, difference
from refcomp.graph.graph import Graph
from refcomp.graph.optimize import Rounding
from refcomp.graph.parser import parse_graph

X = np.array([0.1, -0.0, 3.7], "float32")


def graph(body: str, dtype: str = "f32", constants: str = "") -> Graph:
    return parse_graph(f"graph g(x: f32[3]) -> (y) {{\n{constants}\n  y: {dtype}[3] = {body}\n}}")


def found(one: Graph, other: Graph, rounding: Rounding = Rounding.NONE, x=X) -> str:
    return difference(one, other, {"x": x}, rounding=rounding)


def test_equal_bits_are_equal() -> None:
    same = graph("negative(x)")
    assert found(same, graph("negative(x)")) == EQUAL
    nan = np.array([np.nan, np.inf, 0], "float32")
    assert found(same, graph("negative(x)"), x=nan) == EQUAL


def test_a_zero_of_another_sign_is_another_one() -> None:
    assert found(graph("add(x, x)"), graph("relu(x)")).startswith("output y has other bits")
    zeros = np.array([-0.0, -0.0, -0.0], "float32")
    assert found(graph("identity(x)"), graph("abs(x)"), x=zeros) != EQUAL


def test_another_dtype_or_count_is_no_result_of_the_graph() -> None:
    wide = graph('cast(x) {dtype="float64"}', "f64")
    assert found(graph("identity(x)"), wide) == "output y is float64(3,), not float32(3,)"
    two = parse_graph("graph g(x: f32[3]) -> (y, x) { y: f32[3] = identity(x) }")
    assert found(graph("identity(x)"), two) == "2 outputs for 1"


# x * 0.1 * 3.0, and x times the product, rounded to f32.
PRODUCTS = parse_graph("""
graph g(x: f32[3]) -> (y) {
  const a: f32[1] = [0.1]
  const b: f32[1] = [3.0]
  t: f32[3] = multiply(x, a)
  y: f32[3] = multiply(t, b)
}""")


def product(factor: float) -> Graph:
    text = f"  const c: f32[1] = [{np.float32(factor)!s}]"
    return graph("multiply(x, c)", constants=text)


def test_roundings_are_legal_only_if_a_pass_rounds() -> None:
    x = np.float32([0.7, 0.9, 1.1])
    near = product(0.1 * 3)
    assert found(PRODUCTS, near, Rounding.ROUNDS, x=x) == EQUAL
    assert found(PRODUCTS, near, Rounding.NONE, x=x).startswith("output y has other bits")


@pytest.mark.parametrize("ulps", [8, 100, 10**6])
def test_more_than_roundings_is_wrong(ulps: int) -> None:
    far = product(0.3 * (1 + ulps * 2.0**-23))
    assert "wrong" in found(PRODUCTS, far, Rounding.ROUNDS)


def test_a_constant_that_was_rounded_may_be_off_where_sums_cancel() -> None:
    """b * s rounds, and cancels with x * s; the graph itself adds first."""
    before = parse_graph("""
graph g(x: f32[3]) -> (y) {
  const b: f32[1] = [-1.1]
  const s: f32[1] = [0.3]
  t: f32[3] = add(x, b)
  y: f32[3] = multiply(t, s)
}""")
    rounded = np.float32(np.float32(-1.1).astype("f8") * np.float32(0.3))
    after = parse_graph(f"""
graph g(x: f32[3]) -> (y) {{
  const s: f32[1] = [0.3]
  const b: f32[1] = [{rounded!s}]
  t: f32[3] = multiply(x, s)
  y: f32[3] = add(t, b)
}}""")
    x = np.array([1.2, 1.3, 1.7], "float32")
    assert found(before, after, Rounding.ROUNDS, x=x) == EQUAL
    assert found(before, after, Rounding.NONE, x=x) != EQUAL


def test_overflow_is_legal_only_for_narrow_dtypes() -> None:
    wide = graph("multiply(x, x)")
    narrow = parse_graph("""
graph g(x: f32[3]) -> (y) {
  h: f16[3] = cast(x) {dtype="float16"}
  t: f16[3] = multiply(h, h)
  y: f32[3] = cast(t) {dtype="float32"}
}""")
    x = np.array([1, 2, 1e5], "float32")
    assert found(wide, narrow, Rounding.NARROWS, x=x) == UNKNOWN
    assert "wrong" in found(wide, narrow, Rounding.ROUNDS, x=x)


def test_outputs_that_became_constants_are_exact() -> None:
    text = "graph g(x: f32[3]) -> (y) {{\n  const c: f32[3] = [1.0, 2.0, 3.0]\n{}\n}}"
    before = parse_graph(text.format("  y: f32[3] = add(c, c)"))
    after = parse_graph("graph g(x: f32[3]) -> (y) {\n  const y: f32[3] = [2.0, 4.0, 6.0]\n}")
    wrong = parse_graph("graph g(x: f32[3]) -> (y) {\n  const y: f32[3] = [2.0, 4.0, 6.5]\n}")
    assert found(before, after) == EQUAL
    assert "6.5 for 6.0" in found(before, wrong)
    assert "wrong" in found(before, wrong, Rounding.ROUNDS)

"""Which nodes work in any layout."""

import pytest

from refcomp.graph.parser import parse_graph
from refcomp.graph.passes.pointwise import is_plain, is_pointwise, pattern_of
from tests.strategies.graphs import make_graph
from tests.strategies.operands import floats


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda b, x: b.node("relu", [x]), True),
        (lambda b, x: b.node("add", [x, x]), True),
        (lambda b, x: b.node("triu", [x]), False),
        (lambda b, x: b.node("softmax", [x]), False),
        (lambda b, x: b.node("transpose", [x], {"axes": (1, 0, 2, 3)}), False),
        (lambda b, x: b.node("quantize", [x, b.constant("s", floats(0, 3))], {"axis": 1}), False),
        (lambda b, x: b.node("zeros", [], {"shape": (2,)}), False),
    ],
)
def test_nodes(build, expected) -> None:
    assert is_pointwise(make_graph(build).nodes[-1]) == expected


KINDS = """
graph g(s: seq(f32), axis: i64[], x: f32[4]) -> (n, f, e, k, m, r) {
  n: i64[] = sequence_length(s)
  f: f32[4] = fused(x)
    graph relu(x: f32[4]) -> (r) { r: f32[4] = relu(x) }
  e: f32[*] = expand_dims(x) {axis=@axis}
  i: i64[1, 4], c: i64[1] = nonzero(x)
  k: i64[1, kept] = narrow(i, c) {axis=1, symbol="kept"}
  m: f32[*] = exp(e)
  r: f32[4] = relu(x)
}"""


def test_only_operators_on_tensors_of_known_rank_are_plain() -> None:
    nodes = parse_graph(KINDS).nodes
    assert [node.name for node in nodes if is_plain(node)] == ["i", "r"]
    assert [pattern_of(node) for node in nodes if node.name in "fir"] == [
        "opaque", "opaque", "elementwise"
    ]  # fmt: skip

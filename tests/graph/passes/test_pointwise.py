"""Which nodes work in any layout."""

import pytest

from refcomp.graph.passes.pointwise import is_pointwise
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

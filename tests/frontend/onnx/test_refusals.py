"""The features that a model needs and refcomp lacks, in one error."""

import pytest

from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx.refusals import Refusals


def test_no_refusal_raises_nothing() -> None:
    refusals = Refusals()
    refusals.raise_any()
    assert refusals.count == 0


def test_refusals_are_counted_and_the_most_frequent_comes_first() -> None:
    refusals = Refusals()
    rows = [("A", "one", "a"), ("B", "two", "b"), ("B", "two", "c"), ("B", "three", "d")]
    for operator, reason, node in rows:
        refusals.add(operator, reason, node)
    assert refusals.count == 4
    with pytest.raises(Unsupported, match="cannot run 4 nodes") as info:
        refusals.raise_any()
    lines = [
        line.strip() for line in str(info.value).splitlines() if "node:" in line or ": two" in line
    ]
    assert lines == [
        "'B' (2 nodes: 'b', 'c'): two",
        "'A' (1 node: 'a'): one",
        "'B' (1 node: 'd'): three",
    ]


def test_only_some_nodes_are_named() -> None:
    refusals = Refusals()
    for number in range(5):
        refusals.add("A", "one", f"n{number}")
    with pytest.raises(Unsupported, match="'A' .5 nodes: 'n0', 'n1', 'n2', ....: one"):
        refusals.raise_any()


def test_names_cannot_forge_lines() -> None:
    refusals = Refusals()
    refusals.add("A\nB", "unknown", "n\n'C' (9 nodes)")
    with pytest.raises(Unsupported) as info:
        refusals.raise_any()
    assert r"'A\nB' (1 node: " in str(info.value)
    assert "\n'C'" not in str(info.value)

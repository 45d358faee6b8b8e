"""Reasons are counted, and told together."""

import pytest

from refcomp.foundation.errors import Unsupported
from refcomp.frontend.onnx_unsupported import Reasons


def test_no_reason_raises_nothing() -> None:
    Reasons().raise_any()


def test_reasons_are_counted_and_the_most_frequent_comes_first() -> None:
    reasons = Reasons()
    for operator, reason in (("A", "one"), ("B", "two"), ("B", "two"), ("B", "three")):
        reasons.add(operator, reason)
    with pytest.raises(Unsupported, match="cannot run 4 nodes") as info:
        reasons.raise_any()
    lines = [line.strip() for line in str(info.value).splitlines() if "node" in line][1:]
    assert lines == ["'B' (2 nodes): two", "'A' (1 node): one", "'B' (1 node): three"]


def test_names_cannot_forge_lines() -> None:
    reasons = Reasons()
    reasons.add("A\nB", "unknown")
    with pytest.raises(Unsupported) as info:
        reasons.raise_any()
    assert "'A\\nB' (1 node): unknown" in str(info.value)

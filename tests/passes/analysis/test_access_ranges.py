"""Which indices are proved to be in range, and which half of the proof is missing."""

import pytest

from refcomp.foundation.dtype import F32, I64
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.parser import parse_func
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import BufferStore, For
from refcomp.passes.analysis.access_ranges import is_in_range, open_index, reads_memory
from refcomp.passes.analysis.scope_facts import facts_of


def _innermost(loops, value, shape="n"):
    """The store in `loops`, and what holds there."""
    body = f"B[0] = {value}"
    for loop in reversed(loops):
        body = f"for {loop} {{ {body} }}"
    text = f"func f(A: f32[{shape}], I: i64[n], B: f32[1] out) {{ {body} }}"
    func = parse_func(text)
    facts, stmt = facts_of(func), func.body
    while isinstance(stmt, For):
        facts, stmt = facts.bind(stmt.var, stmt.minimum, stmt.extent), stmt.body
    assert isinstance(stmt, BufferStore)
    return stmt, facts


@pytest.mark.parametrize(
    ("loops", "index", "shape", "missing"),
    [
        (["i in range(n)"], "i", "n", ""),
        (["i in range(n)"], "i + 1", "n", "high"),
        (["i in range(n)"], "i - 1", "n", "low"),
        (["i in range(n)"], "n - 1 - i", "n", ""),
        (["i in range(65)"], "i", "64", "high"),
        (["i in range(65)"], "i", "n", "high"),
        (["i: i32 in range(4i32)"], "i", "4", ""),
        (["i: i32 in range(5i32)"], "i", "4", "high"),
        (["i in range(n)", "j in range(4)"], "i * 4 + j", "n * 4", ""),
        ([], "I[0]", "n", "low high"),
        ([], "I[0] % 4", "4", ""),
        ([], "max(I[0], 0)", "4", "high"),
        ([], "0", "n", "high"),  # it may have no element
    ],
)
def test_an_index_is_open_where_a_comparison_is_not_proved(loops, index, shape, missing):
    stmt, facts = _innermost(loops, f"A[{index}]", shape)
    load = stmt.value
    assert isinstance(load, BufferLoad)
    found = open_index(load.indices[0], load.buffer.shape[0], facts)
    told = "" if found is None else " ".join(["low"] * found.has_low + ["high"] * found.has_high)
    assert told == missing
    if found is not None:
        assert found.position.dtype == found.extent.dtype == I64
        assert len(found.holds) == len(found.fails) == len(missing.split())


def test_the_comparisons_of_an_open_index_are_opposites():
    stmt, facts = _innermost([], "A[I[0]]")
    found = open_index(stmt.value.indices[0], stmt.value.buffer.shape[0], facts)
    assert [repr(part) for part in found.holds] == ["0 <= I[0]", "I[0] < n"]
    assert [repr(part) for part in found.fails] == ["I[0] < 0", "n <= I[0]"]


@pytest.mark.parametrize(
    ("value", "is_safe"),
    [
        ("A[i]", True),
        ("A[i] + A[n - 1 - i]", True),
        ("A[i] + A[i + 1]", False),
        ("A[I[i]]", False),
        ("if_then_else(i < 4, A[i + 1], 0.0f32)", False),  # whichever way it chooses
        ("f32(i)", True),
    ],
)
def test_an_expression_is_safe_where_all_its_reads_are(value, is_safe):
    stmt, facts = _innermost(["i in range(n)"], value)
    assert is_in_range(stmt.value, facts) is is_safe


def test_expressions_that_read_memory():
    stmt, _ = _innermost(["i in range(n)"], "A[i] * 2.0f32")
    assert reads_memory(stmt.value) and stmt.value.dtype == F32
    assert not any(reads_memory(node) for node in walk(stmt.value) if node.dtype == I64)

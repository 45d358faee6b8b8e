"""Reads inside `and` and `or` are found, whatever stands between."""

import pytest

from refcomp.ir.buffer import BufferLoad
from refcomp.ir.logic_operands import logic_operands
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import walk


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("A[0] < A[1]", []),
        ("0 < n and A[0] < A[1]", ["A[0]", "A[1]"]),
        ("not (n < 1 or not A[A[2]] < 3)", ["A[2]", "A[A[2]]"]),
        ("if_then_else(0 < n and n < 9, A[0], A[1]) < 3", []),
        ("if_then_else(A[0] < 3, 0 < n and A[0] < A[1], n < 2)", ["A[0]", "A[1]"]),
    ],
)
def test_reads_inside_logic(condition, found):
    body = parse_func(f"func f(A: i64[n] out) {{ if ({condition}) {{ A[0] = 1 }} }}").body
    loads = [node for node in walk(body) if isinstance(node, BufferLoad)]
    below = logic_operands([body])
    assert sorted({print_expr(load) for load in loads if id(load) in below}) == found

import pytest

from refcomp.codegen import line_map
from refcomp.codegen.line_map import LineMap
from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func_with_lines
from refcomp.ir.rewrite import with_fields
from refcomp.ir.stmt import Block, Origin

FUNC = parse_func("func f(A: i64[2] out) { for i in range(2) { A[i] = i } }")


def test_lines_tell_their_statement_or_text():
    told = LineMap([FUNC], ["", FUNC.body, FUNC.body.body, "func f"])
    assert list(told) == ["", "for i in range(2) {", "A[i] = i", "func f"]
    assert list(told[1:3]) == ["for i in range(2) {", "A[i] = i"]
    assert len(told) == 4
    with pytest.raises(IndexError):
        told[4]


def test_the_origin_is_told_behind_the_line():
    stmt = with_fields(FUNC.body, origin=Origin("C", "i"))
    assert LineMap([FUNC.with_body(stmt)], [stmt])[0] == f"for i in range(2) {{  # {stmt.origin}"


def test_a_statement_of_no_function_has_nothing_to_tell():
    assert LineMap([FUNC], [Block(())])[0] == ""


def test_nothing_is_printed_before_somebody_asks(monkeypatch):
    printed = []

    def count(func):
        printed.append(func)
        return print_func_with_lines(func)

    monkeypatch.setattr(line_map, "print_func_with_lines", count)
    told = LineMap([FUNC], ["func f", FUNC.body])
    assert (len(told), told[0], printed) == (2, "func f", [])
    assert told[1] and told[1] and printed == [FUNC]

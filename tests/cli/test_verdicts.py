"""The table of `refcomp judge`: a row for each array, in columns or on a terminal."""

import sys
from typing import Any

import pytest

from refcomp.cli.verdicts import COLUMNS, columns_to_text, remarks, row_of, write_report


def element(**changes: Any) -> dict[str, Any]:
    plain = {"index": [1, 2], "found": 2.5, "expected": 2.0, "bound": 1e-7, "error_over_bound": 5e6}
    return plain | changes


def result(**changes: Any) -> dict[str, Any]:
    plain = {
        "name": "C",
        "verdict": "exact",
        "elements": 6,
        "exact": 6,
        "within_bound": 0,
        "wrong": 0,
        "undecidable": 0,
        "worst": None,
        "first_wrong": None,
        "why": "",
    }
    return plain | changes


WRONG = result(verdict="wrong", wrong=2, worst=element(), first_wrong=element(), why="why so")
REPORT = {
    "verdict": "wrong",
    "sizes": {"n": 3, "m": 2},
    "results": [result(name="A long name"), WRONG],
    "suspects": ["stage C, at a.py:3"],
}


def test_an_exact_array_has_nothing_wrong() -> None:
    assert row_of(result()) == ("C", "6", "0", "-", "0", "-", "-", "-", "-")


def test_a_wrong_array_has_its_first_wrong_element() -> None:
    assert row_of(WRONG) == ("C", "6", "2", "5e+06", "0", "[1, 2]", "2.5", "2", "1e-07")


def test_numbers_that_look_the_same_are_told_apart() -> None:
    near = element(found=1.0000001, expected=1.0, error_over_bound="inf")
    cells = row_of(result(first_wrong=near, worst=near, wrong=1))
    assert cells[3:] == ("inf", "0", "[1, 2]", "1.0000001", "1.0", "1e-07")
    infinite = element(found="nan", expected=1.0, bound="inf")
    assert row_of(result(first_wrong=infinite, worst=near))[6:] == ("nan", "1", "inf")


def test_names_cannot_obey_a_terminal() -> None:
    assert row_of(result(name="C\x1b[31m"))[0] == "C?[31m"


def test_remarks_name_sizes_reasons_and_suspects() -> None:
    assert remarks(REPORT) == ["sizes: n = 3, m = 2", "C: why so", "suspect: stage C, at a.py:3"]
    assert remarks(REPORT | {"sizes": {}, "results": [], "suspects": []}) == []


def test_columns_are_aligned() -> None:
    assert columns_to_text([("ab", "c"), ("d", "efg")]) == "ab    c\nd   efg"


def test_the_report_is_plain_text_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(REPORT)
    assert capsys.readouterr().out == (
        "verdict: wrong\n"
        "array        elements  wrong  error / bound  undecidable  first wrong  found  expected"
        "  allowed\n"
        "A long name         6      0              -            0            -      -         -"
        "        -\n"
        "C                   6      2          5e+06            0       [1, 2]    2.5         2"
        "    1e-07\n"
        "sizes: n = 3, m = 2\n"
        "C: why so\n"
        "suspect: stage C, at a.py:3\n"
    )


def test_the_report_is_a_table_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    write_report(REPORT)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "verdict: wrong"
    assert any("───" in line for line in lines)
    assert all(name in line for line in lines if "array" in line for name in COLUMNS)
    assert "suspect: stage C, at a.py:3" in lines

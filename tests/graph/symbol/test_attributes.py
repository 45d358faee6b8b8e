"""Kinds of attributes: Python values, texts of the classic JSON form, and refusals."""

from typing import Literal

import numpy as np
import pytest

from refcomp.foundation.errors import CompilerBug
from refcomp.graph.symbol.attributes import MAX_TEXT, attribute_to_text, kind_of_hint

PAIR = tuple[int, int]
INTS = tuple[int, ...]
WIDTHS = tuple[tuple[int, int], ...]


@pytest.mark.parametrize(
    ("hint", "given", "expected"),
    [
        (int, 3, 3),
        (int, "3", 3),
        (int, " -3 ", -3),
        (int, np.int64(3), 3),
        (float, 1, 1.0),
        (float, "1e-05", 1e-5),
        (float, np.float32(0.5), 0.5),
        (bool, True, True),
        (bool, "False", False),
        (bool, "1", True),
        (bool, 0, False),
        (str, "int8", "int8"),
        (str, np.float32, "float32"),
        (Literal["NCHW", "NHWC"], "NHWC", "NHWC"),
        (PAIR, (3, 3), (3, 3)),
        (PAIR, [3, 3], (3, 3)),
        (PAIR, "(3, 3)", (3, 3)),
        (PAIR, "[3,3]", (3, 3)),
        (INTS, "()", ()),
        (INTS, "(3,)", (3,)),
        (INTS, np.array([1, 2]), (1, 2)),
        (tuple[float, ...], "(0.1, 2)", (0.1, 2.0)),
        (WIDTHS, "((0, 0), (1, 2))", ((0, 0), (1, 2))),
        (WIDTHS, [[0, 0], (1, 2)], ((0, 0), (1, 2))),
        (int | None, None, None),
        (int | None, "None", None),
        (INTS | int | None, "2", 2),
        (INTS | int | None, "(2, 3)", (2, 3)),
    ],
)
def test_values_and_texts_are_read(hint: object, given: object, expected: object) -> None:
    read = kind_of_hint(hint).read(given)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("hint", "given"),
    [
        (int, "x"),
        (int, "1_0"),
        (int, ""),
        (int, "9" * 10_000),
        (int, 2**63),
        (int, True),
        (int, 1.0),
        (int, None),
        (float, "1_0"),
        (float, "x"),
        (float, 10**400),
        (float, True),
        (float, None),
        (bool, "yes"),
        (bool, 2),
        (bool, None),
        (str, 3),
        (str, "x" * (MAX_TEXT + 1)),
        (str, int),
        (Literal["NCHW"], "NCWH"),
        (Literal["NCHW"], 3),
        (PAIR, (3,)),
        (PAIR, "(3, 3, 3)"),
        (PAIR, "3, 3"),
        (PAIR, 3),
        (INTS, "(3"),
        (INTS, "3)"),
        (INTS, "(3))"),
        (INTS, "(3)(4)"),
        (INTS, "(3 4)"),
        (INTS, "(,)"),
        (INTS, "(3,,4)"),
        (INTS, "((3))"),
        (INTS, "(" * 10**5 + ")" * 10**5),
        (INTS, "x"),
        (INTS, {1: 2}),
        (INTS, b"ab"),
        (INTS, range(10**9)),
        (WIDTHS, "((1, 2), 3)"),
        (type(None), "x"),
        (int | None, "x"),
    ],
)
def test_other_values_are_refused(hint: object, given: object) -> None:
    with pytest.raises(ValueError):
        kind_of_hint(hint).read(given)


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "an integer"),
        (PAIR, "a tuple of two integers"),
        (WIDTHS, "a tuple of tuples of two integers"),
        (INTS | int | None, "a tuple of integers or an integer or None"),
        (Literal["clip", "wrap"], "one of clip, wrap"),
        (tuple[float, ...], "a tuple of numbers"),
        (tuple[int, int, int], "a tuple of 3 integers"),
    ],
)
def test_kinds_are_described_in_words(hint: object, text: str) -> None:
    assert kind_of_hint(hint).text == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (True, "True"), ((3,), "(3,)"), ((3, 3), "(3, 3)"), ((), "()"), (None, "None")],
)
def test_text_of_a_value_is_read_back(value: object, text: str) -> None:
    assert attribute_to_text(value) == text


def test_nested_tuples_have_a_text() -> None:
    assert attribute_to_text(((0, 0), (1, 2))) == "((0, 0), (1, 2))"


def test_hint_without_a_kind_is_a_bug() -> None:
    with pytest.raises(CompilerBug, match="no attribute has the type <class 'bytes'>"):
        kind_of_hint(bytes)

"""Numbers as texts, and texts as numbers."""

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import run_text


def to_texts(numbers: np.ndarray, dtype: str) -> list[str]:
    text = f"graph g(x: {dtype}[N]) -> (y) {{ y: string[*] = cast_to_string(x) }}"
    (y,) = run_text(text, x=numbers)
    return y.tolist()


def to_numbers(dtype: str, *texts: str) -> np.ndarray:
    text = f"""
graph g(x: string[*]) -> (y) {{ y: {dtype}[*] = cast_from_string(x) {{to="{dtype}"}} }}"""
    (y,) = run_text(text, x=np.array(texts, dtype=object))
    return y


@pytest.mark.parametrize(
    ("dtype", "numbers", "expected"),
    [
        (np.float32, [314.15926, 0.1, 1, -2.5], ["314.15927", "0.1", "1", "-2.5"]),
        (np.float64, [314.15926, 1e-5, 1e20], ["314.15926", "0.00001", "1" + "0" * 20]),
        (np.float16, [0.1, np.nan, np.inf, -np.inf], ["0.1", "NaN", "INF", "-INF"]),
        (ml_dtypes.bfloat16, [1.5, np.nan, -np.inf], ["1.5", "NaN", "-INF"]),
        (np.int8, [-128, 0], ["-128", "0"]),
        (np.uint64, [2**64 - 1], [str(2**64 - 1)]),
        (bool, [True, False], ["1", "0"]),
    ],
)
def test_numbers_become_plain_digits(dtype, numbers, expected) -> None:
    array = np.array(numbers, dtype)
    assert (
        to_texts(
            array,
            {"bool": "bool", "bfloat16": "bf16"}.get(array.dtype.name)
            or f"{array.dtype.kind}{array.dtype.itemsize * 8}",
        )
        == expected
    )


def test_texts_become_floats() -> None:
    made = to_numbers("f32", "3.14", "1000", "1e-5", "1E8", "+INF", "inf", "-Inf", "nAn", " 7 ")
    right = np.array([3.14, 1000, 1e-5, 1e8, np.inf, np.inf, -np.inf, np.nan, 7], np.float32)
    np.testing.assert_array_equal(made, right)
    assert to_numbers("bf16", "1.5").dtype == ml_dtypes.bfloat16


def test_texts_become_integers_with_all_their_digits() -> None:
    assert to_numbers("i64", str(2**63 - 1), "-5", "+5", "1e3", "2.7").tolist() == [
        2**63 - 1,
        -5,
        5,
        1000,
        2,
    ]
    assert to_numbers("u64", str(2**64 - 1)).tolist() == [2**64 - 1]
    assert to_numbers("i8", "300", "-1").tolist() == [44, -1]
    assert to_numbers("bool", "0", "1", "0.5").tolist() == [False, True, True]


@pytest.mark.parametrize("text", ["Hello", "", "1_000", "--1", "0x10", "9" * 5000])
def test_texts_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="cast_from_string cannot read '") as caught:
        to_numbers("i32", text)
    assert caught.value.where == "node y"
    assert len(str(caught.value)) < 300


def test_infinity_is_no_integer() -> None:
    for text in ("INF", "NaN"):
        with pytest.raises(UserError, match=f"cannot read '{text}' as a number"):
            to_numbers("i64", text)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("cast_to_string(s)", "cast_to_string cannot convert s: string"),
        ('cast_from_string(x) {to="f32"}', "input texts of cast_from_string cannot be x: f32"),
        ('cast_from_string(s) {to="f7"}', "unknown dtype 'f7'"),
    ],
)
def test_wrong_nodes_are_refused(node: str, message: str) -> None:
    text = f"graph g(x: f32[2], s: string[*]) -> () {{ y: string[*] = {node} }}"
    with pytest.raises(UserError, match=f"(?s)node y: .*{message}"):
        parse_graph(text)

"""Strings: numbers in their place, and what is computed from their characters."""

import builtins
from typing import Any

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.graph.control import strings
from refcomp.graph.parser import parse_graph
from tests.graph.control.runs import run_text


def texts(*elements: Any) -> np.ndarray:
    return np.array(elements, dtype=object)


WORDS = texts("b", "", "é", "a")


def apply(node: str, result: str = "y", **feeds: np.ndarray) -> list[Any]:
    """The outputs of a node that reads strings."""
    inputs = ", ".join(f"{name}: string[*]" for name in feeds)
    names = ", ".join(one.split(":")[0] for one in result.split(", "))
    typed = ", ".join(one if ":" in one else f"{one}: string[*]" for one in result.split(", "))
    return run_text(f"graph g({inputs}) -> ({names}) {{ {typed} = {node} }}", **feeds)


def test_strings_pass_through_graphs_sequences_and_branches() -> None:
    text = """
graph g(c: bool[], x: string[*], s: seq(string), o: optional(string)) -> (y, joined, x, h) {
  k: string[*] = string_constant() {elements="[\\"q\\", \\"r\\"]", shape=[2, 1]}
  y: string[*] = if(c, x, k)
    graph a(x: string[*], k: string[*]) -> (x) { }
    graph b(x: string[*], k: string[*]) -> (k) { }
  t: seq(string) = sequence_insert(s, x)
  joined: string[*] = concat_from_sequence(t) {axis=0}
  h: bool[] = optional_has_element(o)
}"""
    feeds: dict[str, Any] = {"x": WORDS, "s": [WORDS[:1]], "o": WORDS}
    for flag in (True, False):
        y, joined, x, has = run_text(text, c=np.array(flag), **feeds)
        assert y.tolist() == (WORDS.tolist() if flag else [["q"], ["r"]])
        assert (joined.tolist(), x.tolist()) == (["b", "b", "", "é", "a"], WORDS.tolist())
        assert has.item()


def test_arrays_of_unicode_become_objects() -> None:
    (y,) = apply("string_concat(x, x)", x=np.array(["ab", "c"]))
    assert y.dtype == object
    assert y.tolist() == ["abab", "cc"]


def test_numbers_of_strings_keep_their_order_and_lead_back() -> None:
    text = """
graph g(x: string[*], y: string[*]) -> (a, b, table, back) {
  a: i64[*], b: i64[*], table: string[*] = string_codes(x, y)
  back: string[*] = string_lookup(a, table)
}"""
    a, b, table, back = run_text(text, x=WORDS, y=texts(["z"], ["a"]))
    assert table.tolist() == ["", "a", "b", "z", "é"]
    assert (a.tolist(), b.tolist()) == ([2, 0, 4, 1], [[3], [1]])
    assert back.tolist() == WORDS.tolist()


def test_no_text_has_the_number_0_still() -> None:
    codes, table = apply("string_codes(x)", "a: i64[*], t", x=texts())
    assert (codes.shape, table.tolist()) == ((0,), [""])


def test_a_number_without_a_text_is_refused() -> None:
    text = """
graph g(c: i64[2], t: string[*]) -> (y) { y: string[*] = string_lookup(c, t) }"""
    for codes in ([0, 1], [-1, 0]):
        with pytest.raises(UserError, match="no text with the number") as caught:
            run_text(text, c=np.array(codes), t=texts("a"))
        assert caught.value.where == "node y"


def test_concat_broadcasts() -> None:
    (y,) = apply("string_concat(x, z)", x=texts(["a"], ["b"]), z=texts("c", "d"))
    assert y.tolist() == [["ac", "ad"], ["bc", "bd"]]
    with pytest.raises(UserError, match=r"texts of shape \[2\] and \[3\]"):
        apply("string_concat(x, z)", x=texts("a", "b"), z=texts("c", "d", "e"))


@pytest.mark.parametrize(
    ("attributes", "parts", "counts"),
    [
        ("", [["a,b,,c", ""], ["d", "e"], ["", ""]], [1, 2, 0]),
        ('{separator=","}', [["a", "b", "", "c"], [" d  e ", *[""] * 3], [""] * 4], [4, 1, 1]),
        ('{separator=",", most=1}', [["a", "b,,c"], [" d  e ", ""], ["", ""]], [2, 1, 1]),
        ("{most=0}", [["a,b,,c"], ["d  e"], [""]], [1, 1, 0]),
    ],
)
def test_split_pads_to_the_most_parts(attributes, parts, counts) -> None:
    words = texts("a,b,,c", " d  e ", "")
    made, number = apply(f"string_split(x) {attributes}", "y, n: i64[*]", x=words)
    assert (made.tolist(), number.tolist()) == (parts, counts)


def test_split_keeps_the_shape_of_texts() -> None:
    made, number = apply("string_split(x)", "y, n: i64[*]", x=texts(["a b"], ["c"]))
    assert (made.shape, number.shape) == ((2, 1, 2), (2, 1))
    made, number = apply("string_split(x)", "y, n: i64[*]", x=texts())
    assert (made.shape, number.shape) == ((0, 0), (0,))


def test_split_into_too_many_parts_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(strings, "MAX_PARTS", 7)
    with pytest.raises(UserError, match="makes 8 texts, but 7 at most.*") as caught:
        apply("string_split(x)", "y, n: i64[*]", x=texts("a b c d", "e"))
    assert "each of 2 texts is padded to 4 parts" in str(caught.value)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", ["B", "a", "É"]),
        ('{case="lower"}', ["b", "a", "é"]),
        ('{case="upper", stopwords="[\\"b\\"]"}', ["A", "É"]),
        ('{stopwords="[\\"b\\"]", is_case_sensitive=True}', ["B", "a", "É"]),
        ('{stopwords="[\\"b\\", \\"A\\", \\"é\\"]"}', [""]),
    ],
)
def test_normalize_drops_words_and_changes_case(attributes, expected) -> None:
    words = texts("B", "a", "É")
    for given, right in ((words, expected), (words.reshape(1, 3), [expected])):
        (y,) = apply(f"string_normalize(x) {attributes}", x=given)
        assert y.tolist() == right


def test_normalize_takes_one_row_only() -> None:
    with pytest.raises(UserError, match=r"takes no texts of shape \[2, 1\]"):
        apply("string_normalize(x)", x=texts(["a"], ["b"]))


def test_a_pattern_matches_whole_texts() -> None:
    (y,) = apply('regex_full_match(x) {pattern="[a-z]+"}', "y: bool[*]", x=texts("ab", "a1", ""))
    assert y.tolist() == [True, False, False]


def test_re2_is_optional(monkeypatch) -> None:
    original = builtins.__import__

    def without_re2(name, *rest):
        if name == "re2":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_re2)
    with pytest.raises(UserError, match="needs the package google-re2") as caught:
        apply('regex_full_match(x) {pattern="a"}', "y: bool[*]", x=WORDS)
    assert 'pip install "refcomp[strings]"' in str(caught.value)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("string_codes(x)", "input texts 0 of string_codes cannot be x: f32.*give strings"),
        ("string_lookup(x, x)", "input table of string_lookup cannot be x"),
        ("string_concat(s, x)", "input second of string_concat cannot be x"),
        ("string_split(x)", "input texts of string_split cannot be x"),
        ("string_normalize(x)", "input texts of string_normalize cannot be x"),
        (
            'string_normalize(s) {case="title"}',
            "cannot change texts to 'title'.*choose none, lower",
        ),
        ('regex_full_match(x) {pattern="a"}', "input texts of regex_full_match cannot be x"),
        ('regex_full_match(s) {pattern="("}', "'.' is not a regular expression of RE2.*missing"),
        (r'regex_full_match(s) {pattern="(a)\\1"}', "not a regular expression.*invalid escape"),
    ],
)
def test_wrong_nodes_are_refused(node: str, message: str) -> None:
    text = f"graph g(x: f32[2], s: string[*]) -> () {{ y: string[*] = {node} }}"
    with pytest.raises(UserError, match=f"(?s)node y: .*{message}"):
        parse_graph(text)

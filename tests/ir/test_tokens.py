"""The words of the text, and errors that show a place in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refcomp.foundation.errors import UserError
from refcomp.ir.tokens import TokenStream


def words(text: str) -> list[tuple[str, str]]:
    stream = TokenStream(text, "t")
    found = []
    while stream.peek().kind != "end":
        token = stream.take()
        found.append((token.kind, token.text))
    return found


def test_names_numbers_and_symbols():
    assert words("i.outer+3i32 // 1.5e-3f32<<=x@[") == [
        ("name", "i.outer"),
        ("symbol", "+"),
        ("number", "3i32"),
        ("symbol", "//"),
        ("number", "1.5e-3f32"),
        ("symbol", "<<"),
        ("symbol", "="),
        ("name", "x"),
        ("symbol", "@"),
        ("symbol", "["),
    ]


def test_comments_and_space_are_nothing():
    assert words("a # b c\n\t d\r\n#e") == [("name", "a"), ("name", "d")]


def test_the_end_stays_at_the_end():
    stream = TokenStream("a", "t")
    assert stream.peek(7).kind == "end"
    assert [stream.take().kind for _ in range(3)] == ["name", "end", "end"]


@pytest.mark.parametrize("stray", ["$", "!", "'", "ä", "\0", ".5", "\u2028"])
def test_a_character_that_begins_nothing_is_refused_with_its_place(stray):
    with pytest.raises(UserError, match=r"^the character .* begins nothing.*\n  --> t:2:3\n"):
        TokenStream("ab\nc " + stray, "t")


def failure(text: str, word: str) -> str:
    stream = TokenStream(text, "file.txt")
    while stream.peek().text != word:
        stream.take()
    with pytest.raises(UserError) as caught:
        stream.fail(stream.peek(), "is wrong", "write it otherwise")
    return str(caught.value)


def test_a_failure_shows_file_line_column_and_a_caret():
    assert failure("one\n  two bad\nthree", "bad") == (
        "is wrong\n"
        "  --> file.txt:2:7\n"
        "   |     two bad\n"
        "   |         ^^^\n"
        "  what to do: write it otherwise"
    )


def test_the_caret_stands_right_below_tabs_and_in_long_lines():
    lines = failure("\t\tbad", "bad").splitlines()
    assert lines[2].index("bad") == lines[3].index("^")
    lines = failure("x " * 4000 + "bad " + "y " * 4000, "bad").splitlines()
    assert lines[2].index("bad") == lines[3].index("^")
    assert max(map(len, lines)) < 150


def test_a_failure_at_the_end_stands_behind_the_last_character():
    assert failure("ab", "").splitlines()[1:4] == [
        "  --> file.txt:1:3",
        "   |     ab",
        "   |       ^",
    ]


def test_expect_tells_what_was_expected_where():
    stream = TokenStream("a", "t")
    with pytest.raises(UserError, match=r"^expected `\)` after the list, found `a`\n  --> t:1:1\n"):
        stream.expect(")", "after the list")
    stream.take()
    with pytest.raises(UserError, match="expected a name, found the end of the text"):
        stream.expect_name("a name")


def test_numbers_are_never_taken_for_words():
    assert not TokenStream("1", "t").is_next("1")


def test_whether_a_token_stands_on_the_line_of_the_last_one():
    stream = TokenStream("a b # c\n d", "t")
    stream.take()
    assert stream.is_on_same_line()
    stream.take()
    assert not stream.is_on_same_line()


@given(st.text())
def test_any_text_is_read_or_refused_with_its_place(text: str):
    try:
        words(text)
    except UserError as error:
        assert error.at.place.startswith("t:")

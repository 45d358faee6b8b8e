"""Tokens of PTX: what they are, where they stand, and texts that have none."""

import pytest

from refcomp.emulator.ptx.text import tokens as module
from refcomp.emulator.ptx.text.tokens import DamagedPtx, Tokens
from refcomp.foundation.errors import Unsupported


def _all(text):
    tokens = Tokens(text)
    found = []
    while tokens.kind != "end":
        found.append((tokens.kind, tokens.advance()))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ld.global.u32 %r1", [("word", "ld.global.u32"), ("word", "%r1")]),
        (".reg.b32", [("directive", ".reg"), ("directive", ".b32")]),
        ("st.shared::cta.b8", [("word", "st.shared::cta.b8")]),
        ("%tid.x _ $L1:", [("word", "%tid.x"), ("word", "_"), ("word", "$L1"), ("mark", ":")]),
        ("0f3F800000 0x1e+5", [("number", "0f3F800000"), ("number", "0x1e"), ("mark", "+"),
                               ("number", "5")]),
        ("1.5e-3 7.8", [("number", "1.5e-3"), ("number", "7.8")]),
        ("%p1|%p2", [("word", "%p1"), ("mark", "|"), ("word", "%p2")]),
        ("7 % 3", [("number", "7"), ("mark", "%"), ("number", "3")]),
        ('a/*{\n*/b//}\n"//"', [("word", "a"), ("word", "b"), ("string", '"//"')]),
    ],
)  # fmt: skip
def test_texts_are_cut(text, expected):
    assert _all(text) == expected


def test_lines_are_counted_from_one():
    tokens = Tokens("a\n/*\n*/ b\n\nc")
    lines = []
    while tokens.kind != "end":
        lines.append((tokens.line, tokens.advance()))
    assert lines == [(1, "a"), (3, "b"), (5, "c")]


def test_text_of_a_statement_is_in_one_line_without_comments():
    tokens = Tokens("a // no\n\t b /* no */ c ; d")
    while tokens.text != ";":
        tokens.advance()
    assert tokens.since(0) == "a b c"


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("a\n\0", "it holds a NUL character", r"line 2: \\x00"),
        ("a\n/* b", "a comment does not end", "line 2: /* b"),
        ("/*/", "a comment does not end", "line 1: /*/"),
        ('a "b\nc"', "a string does not end in its line", 'line 1: a "b'),
        ("é", r"'\xe9' does not begin anything in PTX", r"line 1: \xe9"),
        ("a" * 70_000, "a name has more than 65536 characters", "line 1: " + "a" * 100),
    ],
)
def test_damage_is_told_with_its_line(text, what, where):
    with pytest.raises(DamagedPtx) as caught:
        _all(text)
    assert caught.value.what == f"the PTX is damaged: {what}"
    assert caught.value.where in (where, where.replace(r"\\", "\\"))
    assert caught.value.remedy


def test_large_texts_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_CHARACTERS", 10)
    with pytest.raises(Unsupported, match="11 characters, and 10 are read"):
        Tokens(" " * 11)


def test_too_many_pieces_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_PIECES", 2)
    tokens = Tokens("a")
    tokens.count_piece()
    tokens.count_piece()
    with pytest.raises(Unsupported, match="more than 2 statements"):
        tokens.count_piece()

"""The words of the loop IR's text, where each stands, and errors that show the place.

`tokenize` refuses characters that begin no token. `TokenStream` hands tokens out and raises what
the parser finds wrong as a `UserError` of the form `file:line:column: what`, with the line and a
caret below it, and with what would be right there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from refcomp.foundation.errors import UserError

TokenKind = Literal["name", "number", "text", "symbol", "end"]

_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|(?P<number>(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+)[A-Za-z0-9_]*)"
    r'|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<symbol><<|>>|<=|>=|==|!=|//|[-+*/%&|^<>()\[\]{},:=@])"
    r"|(?P<space>[ \t\r\n]+|#[^\n]*)"
)
_MOST_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Token:
    """One word of the text; `start` is its offset. The last token is the end, of no length."""

    kind: TokenKind
    text: str
    start: int

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f"`{self.text}`"


class TokenStream:
    """The tokens of `text` from first to last; `filename` is for messages only."""

    def __init__(self, text: str, filename: str) -> None:
        if not isinstance(text, str):
            raise UserError(
                f"a {type(text).__name__} is not loop-IR text",
                remedy="pass a text, as refcomp.print_func writes it",
            )
        self._text = text
        self._filename = str(filename)
        self._tokens = self._tokenize()
        self._next = 0

    def _tokenize(self) -> list[Token]:
        tokens, place = [], 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None:
                stray = Token("symbol", self._text[place], place)
                self.fail(
                    stray,
                    f"the character {stray.text!r} begins nothing that is known here",
                )
            kind = match.lastgroup
            if kind in ("name", "number", "text", "symbol"):
                tokens.append(Token(kind, match[0], place))  # type: ignore[arg-type]
            place = match.end()
        return [*tokens, Token("end", "", len(self._text))]

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one further ahead; at the end, the end."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token, which is passed over."""
        token = self.peek()
        self._next += 1
        return token

    def is_next(self, *texts: str) -> bool:
        """Whether the next token is one of `texts`."""
        token = self.peek()
        return token.kind in ("name", "symbol") and token.text in texts

    def is_on_same_line(self) -> bool:
        """Whether the next token stands on the line where the last one taken ends."""
        last = self._tokens[self._next - 1]
        return "\n" not in self._text[last.start : self.peek().start]

    def take_if(self, text: str) -> bool:
        """Passes over the next token if it is `text`, and says whether it was."""
        found = self.is_next(text)
        self._next += found
        return found

    def expect(self, text: str, place: str) -> Token:
        """Passes over `text`; UserError when something else stands there. `place` is for people."""
        if not self.is_next(text):
            self.fail(self.peek(), f"expected `{text}` {place}, found {self.peek()}")
        return self.take()

    def expect_name(self, what: str) -> Token:
        """Passes over an identifier; `what` it names is for people."""
        if self.peek().kind != "name":
            self.fail(self.peek(), f"expected {what}, found {self.peek()}")
        return self.take()

    def line_of(self, token: Token) -> str:
        """The line on which `token` begins, as file:line."""
        line = self._text.count("\n", 0, token.start) + 1
        return f"{self._filename}:{line}"

    def fail(self, token: Token, what: str, remedy: str | None = None) -> NoReturn:
        """Raises a UserError that shows where `token` stands."""
        begin = self._text.rfind("\n", 0, token.start) + 1
        column = token.start - begin
        end = self._text.find("\n", begin)
        shown = self._text[begin : len(self._text) if end < 0 else end]
        raise UserError(
            f"{self.line_of(token)}:{column + 1}: {what}",
            where=_with_caret(shown, column),
            remedy=remedy,
        )


def _with_caret(line: str, column: int) -> str:
    first = max(0, column - _MOST_SHOWN // 2)
    shown = line[first : first + _MOST_SHOWN]
    clean = "".join(c if c.isprintable() else " " for c in shown)
    return f"\n    {clean}\n    {' ' * (column - first)}^"

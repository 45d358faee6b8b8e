"""The tokens of the loop IR's text, and errors that show the place of one.

`TokenStream` splits a text into tokens and returns them one by one. It refuses characters that
begin no token. Its errors have the form `file:line:column: what`, with the line, a caret below it,
and the correct syntax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.foundation.snippets import Snippet

TokenKind = Literal["name", "number", "text", "symbol", "end"]

_TOKEN = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|(?P<number>(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+)[A-Za-z0-9_]*)"
    r'|(?P<text>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<symbol><<|>>|<=|>=|==|!=|//|[-+*/%&|^<>()\[\]{},:=@])"
    r"|(?P<space>[ \t\r\n]+|#[^\n]*)"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token. The last one of a text has the kind `end` and no characters."""

    kind: TokenKind
    text: str
    start: int  # offset of its first character

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f"`{self.text}`"


class TokenStream:
    """The tokens of `text`, in order. `filename` is used in messages only."""

    def __init__(self, text: str, filename: str) -> None:
        if not isinstance(text, str):
            raise UserError(
                f"a {type(text).__name__} is not a text to parse",
                remedy="pass a text, as the printer writes it",
            )
        self._text = text
        self._filename = str(filename)
        self._tokens = self._tokenize()
        self._next = 0

    def _tokenize(self) -> list[Token]:
        tokens: list[Token] = []
        place = 0
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
        """Return the token `ahead` tokens after the next one; at most the end."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and advance."""
        token = self.peek()
        self._next += 1
        return token

    def is_next(self, *texts: str) -> bool:
        """Return True if the next token is one of `texts`."""
        token = self.peek()
        return token.kind in ("name", "symbol") and token.text in texts

    def is_on_same_line(self) -> bool:
        """Return True if the next token stands on the line where the last taken token begins."""
        last = self._tokens[self._next - 1]
        return "\n" not in self._text[last.start : self.peek().start]

    def take_if(self, text: str) -> bool:
        """Advance and return True if the next token is `text`; otherwise return False."""
        found = self.is_next(text)
        self._next += found
        return found

    def expect(self, text: str, place: str) -> Token:
        """Return the next token, which must be `text`, and advance.

        Raises UserError for another token; the message names `place`.
        """
        if not self.is_next(text):
            self.fail(self.peek(), f"expected `{text}` {place}, found {self.peek()}")
        return self.take()

    def expect_name(self, what: str) -> Token:
        """Return the next token, which must be an identifier, and advance.

        Raises UserError for another token; the message says that it should name `what`.
        """
        if self.peek().kind != "name":
            self.fail(self.peek(), f"expected {what}, found {self.peek()}")
        return self.take()

    def line_of(self, token: Token) -> str:
        """Return the line on which `token` begins, as file:line."""
        line = self._text.count("\n", 0, token.start) + 1
        return f"{self._filename}:{line}"

    def earlier(self, token: Token, label: str) -> list[Snippet]:
        """Return the place where the name in `token` was first used since the last `func`."""
        found = None
        for other in self._tokens:
            if other is token:
                break
            if other.kind == "name" and other.text == "func":
                found = None
            elif other.text == token.text and found is None:
                found = other
        return [] if found is None else [self._snippet(found, label)]

    def fail(
        self,
        token: Token,
        what: str,
        remedy: str | None = None,
        *,
        earlier: Sequence[Snippet] = (),
    ) -> NoReturn:
        """Raise a UserError that shows the line and column of `token`."""
        raise UserError(what, remedy=remedy, at=self._snippet(token), earlier=earlier)

    def _snippet(self, token: Token, label: str = "") -> Snippet:
        begin = self._text.rfind("\n", 0, token.start) + 1
        column = token.start - begin
        end = self._text.find("\n", begin)
        shown = self._text[begin : len(self._text) if end < 0 else end]
        place = f"{self.line_of(token)}:{column + 1}"
        columns = column, column + max(1, len(token.text))
        return Snippet(place, label, shown, columns)

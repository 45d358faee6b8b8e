"""PTX cut into tokens: names, directives, numbers, strings and marks.

Source: "Parallel Thread Execution ISA", section "Syntax".
"""

from __future__ import annotations

import re
from typing import NoReturn

from refcomp.foundation.errors import Unsupported, UserError

MAX_CHARACTERS = 32 << 20
# Limit of statements, declared names and addresses in initializers together. It bounds memory,
# since each takes about 0.5 KiB.
MAX_PIECES = 2_000_000
MAX_NAME = 1 << 16
_SHOWN_CHARACTERS = 100

_REMEDY = "give the text that a compiler printed, whole and unchanged"

# A name may have dots in it: `ld.global.u32`, `%tid.x`.
_TOKEN = re.compile(
    r"""
      (?P<blank>\s+|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))
    | (?P<word>(?:[A-Za-z_$]|%(?=[\w$]))[\w$]*(?:(?:\.|::)[\w$]+)*+)
    | (?P<directive>\.[A-Za-z_][\w$]*(?:::[\w$]+)*+)
    | (?P<number>0[xXfFdDbB]\w*|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*)
    | (?P<string>"[^"\n]*")
    | (?P<mark><<|>>|<=|>=|==|!=|&&|\|\||[{}()\[\]<>,;:+\-*/%&|^!~?=@])
    | (?P<end>\Z)
    | (?P<other>[\s\S])
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/")


class DamagedPtx(UserError):
    """The text is not PTX, or not all of it."""


def damaged(what: str, where: str) -> DamagedPtx:
    """Return the error for a place, which `Tokens.quote` returns."""
    return DamagedPtx(f"the PTX is damaged: {what}", where=where, remedy=_REMEDY)


class Tokens:
    """The tokens of a text, with a current token.

    Attributes:
        kind: the kind of the current token: "word", "directive", "number", "string", "mark" or
            "end".
        text: the characters of the current token. Empty at the end.
        start: the position of the current token in the text.
    """

    __slots__ = (
        "_counted",
        "_line",
        "_matches",
        "_pieces",
        "_source",
        "kind",
        "start",
        "text",
    )

    def __init__(self, source: str) -> None:
        if len(source) > MAX_CHARACTERS:
            raise Unsupported(
                f"the PTX has {len(source)} characters, and {MAX_CHARACTERS} are read",
                remedy="compile fewer kernels at once",
            )
        self._source = source
        self._matches = _TOKEN.finditer(source)
        self._line = 1
        self._counted = 0  # newlines before this place are in `_line`
        self._pieces = 0
        self.kind = ""
        self.text = ""
        self.start = 0
        self.advance()

    def advance(self) -> str:
        """Advance to the next token. Return the text of the token before."""
        before = self.text
        for match in self._matches:
            kind = match.lastgroup
            if kind == "blank":
                if match[0][:2] == "/*" and (
                    len(match[0]) < 4 or match[0][-2:] != "*/"
                ):
                    self.start = match.start()
                    self.fail("a comment does not end", remedy="close it by */")
                continue
            self.text = match[0]
            self.start = match.start()
            if kind == "other":
                self._refuse_character()
            if kind == "word" and len(match[0]) > MAX_NAME:
                self.fail(f"a name has more than {MAX_NAME} characters")
            self.kind = kind or ""
            return before
        return before

    @property
    def line(self) -> int:
        """The line of the current token, from 1 on."""
        self._line += self._source.count("\n", self._counted, self.start)
        self._counted = self.start
        return self._line

    def since(self, start: int) -> str:
        """Return the text from a position up to the current token, as a line without comments."""
        text = self._source[start : self.start]
        if "/" in text:
            text = _COMMENT.sub(" ", text)
        return " ".join(text.split())

    def count_piece(self) -> None:
        """Count a statement, a name or an address.

        Raises:
            Unsupported: the file has too many of these.
        """
        self._pieces += 1
        if self._pieces > MAX_PIECES:
            raise Unsupported(
                f"the PTX has more than {MAX_PIECES} statements and names",
                where=f"line {self.line}",
                remedy="compile fewer kernels at once",
            )

    # Expected tokens.

    def accept(self, text: str) -> bool:
        """Advance and return True if the current token is `text`; else return False."""
        if self.text != text or self.kind == "string":
            return False
        self.advance()
        return True

    def expect(self, text: str, reason: str) -> None:
        """Advance past `text`, which must come. Messages give the reason, such as "in an array"."""
        if not self.accept(text):
            self.fail(f"expected {text} {reason}, not {self.shown}")

    def name(self, of: str) -> str:
        """Advance past a name, which must come, and return it."""
        if self.kind != "word":
            self.fail(f"expected the name of {of}, not {self.shown}")
        return self.advance()

    def string(self, of: str) -> str:
        """Advance past a text in quotation marks, which must come, and return it."""
        if self.kind != "string":
            self.fail(f"expected {of} in quotation marks, not {self.shown}")
        return self.advance()[1:-1]

    # Errors.

    @property
    def shown(self) -> str:
        """The current token as a message quotes it."""
        if self.kind == "end":
            return "the end of the file"
        cut = self.text[:_SHOWN_CHARACTERS]
        return cut if self.kind == "string" else f"{cut!r}"

    def quote(self) -> str:
        """Return the line of the current token and its number, for a message."""
        first = max(0, self.start - _SHOWN_CHARACTERS)
        begin = max(first, self._source.rfind("\n", first, self.start) + 1)
        content = self._source[begin : begin + 2 * _SHOWN_CHARACTERS].partition("\n")[0]
        shown = ascii(content.strip()[:_SHOWN_CHARACTERS])[1:-1]
        return f"line {self.line}: {shown}" if shown else f"line {self.line}"

    def fail(
        self,
        what: str,
        *,
        why: str | None = None,
        remedy: str = _REMEDY,
    ) -> NoReturn:
        """Raise `DamagedPtx` at the current token."""
        raise DamagedPtx(
            f"the PTX is damaged: {what}", where=self.quote(), why=why, remedy=remedy
        )

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise `Unsupported` at the current token, for PTX that is not read."""
        raise Unsupported(
            f"the reader of PTX does not support {what}",
            where=self.quote(),
            remedy=remedy,
        )

    def _refuse_character(self) -> NoReturn:
        if self.text == '"':
            self.fail("a string does not end in its line", remedy='close it by "')
        if self.text == "\0":
            self.fail(
                "it holds a NUL character",
                remedy="give the text without its end mark, and no cubin or fatbin",
            )
        self.fail(f"{self.text!a} does not begin anything in PTX")

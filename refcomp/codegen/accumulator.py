"""Collects printed text: chunks of lines, each with the statement it came from, in sections.

What belongs elsewhere in a file than where it is discovered (declarations, the entry block's
stack arrays, outlined functions) goes to a section of its own; the printer puts them together.
A chunk is whole lines and ends with a newline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from refcomp.ir.stmt import Stmt

# Stands in the place of a body in a macro's text; no printed text can hold it.
BODY = "\0"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of printed text."""

    text: str
    # The statement that they were printed for, or a name for what they came from.
    came_from: Stmt | str = ""


class Chunks:
    """Text in the order of printing. `source` is the statement that is being printed."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.source: Stmt | str = ""

    def emit(self, text: str) -> None:
        """Adds whole lines."""
        self.chunks.append(Chunk(text, self.source))

    def capture(self, print_body: Callable[[], None]) -> list[Chunk]:
        """What `print_body` emits, kept apart."""
        outer, source, self.chunks = self.chunks, self.source, []
        print_body()
        captured, self.chunks, self.source = self.chunks, outer, source
        return captured

    def emit_around(self, text: str, *bodies: list[Chunk]) -> None:
        """Adds `text`, in which a line that is BODY stands for each of `bodies`, in order."""
        pieces = text.split(BODY + "\n")
        for piece, body in zip(pieces, [*bodies, []], strict=True):
            if piece:
                self.emit(piece)
            self.chunks.extend(body)


class Declarations:
    """Lines that a file needs once, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._by_key: dict[object, str] = {}

    def add(self, key: object, write: Callable[[], str]) -> None:
        """Makes sure that what `write()` gives is declared; `key` says what it is."""
        if key not in self._by_key:
            self._by_key[key] = write()

    @property
    def text(self) -> str:
        """All declarations."""
        return "".join(self._by_key.values())


def join_chunks(chunks: Iterable[Chunk]) -> tuple[str, tuple[Stmt | str, ...]]:
    """The whole text, and for each of its lines the statement it came from."""
    texts: list[str] = []
    sources: list[Stmt | str] = []
    for chunk in chunks:
        texts.append(chunk.text)
        sources.extend([chunk.came_from] * chunk.text.count("\n"))
    return "".join(texts), tuple(sources)

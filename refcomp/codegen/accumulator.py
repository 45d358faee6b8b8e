"""Collect printed text as chunks: whole lines, and the statement they were printed for.

Some text is discovered in one place of a file and belongs to another: declarations, the stack
arrays of the entry block, outlined functions. It is collected apart, and the printer puts the
parts together.
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

    text: str  # ends with a newline
    came_from: Stmt | str = ""  # the statement, or a description of another source


class Chunks:
    """Text in the order of printing."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.source: Stmt | str = ""  # the statement that is being printed

    def emit(self, text: str) -> None:
        """Add whole lines."""
        self.chunks.append(Chunk(text, self.source))

    def capture(self, print_body: Callable[[], object]) -> list[Chunk]:
        """Return the chunks that `print_body` emits, without adding them."""
        outer = self.chunks
        source = self.source
        self.chunks = []
        print_body()
        captured = self.chunks
        self.chunks = outer
        self.source = source
        return captured

    def emit_around(self, text: str, *bodies: list[Chunk]) -> None:
        """Add `text`, with each line that is BODY replaced by the next one of `bodies`."""
        pieces = text.split(BODY + "\n")
        for piece, body in zip(pieces, [*bodies, []], strict=True):
            if piece:
                self.emit(piece)
            self.chunks.extend(body)


class Declarations:
    """Lines that a file needs once, in the order in which they were first added."""

    def __init__(self) -> None:
        self._by_key: dict[object, str] = {}

    def add(self, key: object, write: Callable[..., str], /, **holes: object) -> None:
        """Add the text `write(**holes)`, unless a text has been added under `key`."""
        if key not in self._by_key:
            self._by_key[key] = write(**holes)

    def update(self, other: Declarations) -> None:
        """Add the texts of `other` whose keys are not there yet."""
        for key, text in other._by_key.items():
            self._by_key.setdefault(key, text)

    @property
    def text(self) -> str:
        """Return all declarations."""
        return "".join(self._by_key.values())


def join_chunks(chunks: Iterable[Chunk]) -> tuple[str, tuple[Stmt | str, ...]]:
    """Return the whole text, and for each of its lines what it came from."""
    texts: list[str] = []
    sources: list[Stmt | str] = []
    for chunk in chunks:
        texts.append(chunk.text)
        sources.extend([chunk.came_from] * chunk.text.count("\n"))
    return "".join(texts), tuple(sources)

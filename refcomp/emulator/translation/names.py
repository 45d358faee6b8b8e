"""Lines of text with names of values that are each used once."""

from __future__ import annotations

from collections.abc import Mapping


class Lines:
    """Lines of LLVM IR, filled from the texts of a table."""

    def __init__(self, frame: Mapping[str, Mapping[str, str]], prefix: str) -> None:
        self._frame = frame
        self._prefix = prefix
        self._count = 0
        self.parts: list[str] = []

    def fresh(self) -> str:
        """Return a name that no other value has, without the sign before it."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def put(self, table: str, name: str, t: object = "", **holes: object) -> str:
        """Add a text, and return `%t`. A name that is not given is made."""
        t = t or self.fresh()
        self.parts.append(self._frame[table][name].format(t=t, **holes))
        return f"%{t}"

    def text(self) -> str:
        """Return all lines."""
        return "".join(self.parts)

"""Map each line of a printed text to the statement that it came from.

The statements' own texts are printed when the map is first read. That takes as long as printing the
source, and only a tool that fails makes anybody read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func_with_lines
from refcomp.ir.stmt import Stmt


class LineMap(Sequence[str]):
    """For each line of a printed text, a text that describes where it came from."""

    def __init__(
        self, funcs: Sequence[PrimFunc], came_from: Sequence[Stmt | str]
    ) -> None:
        self._funcs = tuple(funcs)
        self._came_from = came_from  # for each line its statement, or a text

    @property
    def came_from(self) -> Sequence[Stmt | str]:
        """Return for each line its statement in `funcs`, or the text of a line that has none."""
        return self._came_from

    @cached_property
    def _descriptions(self) -> dict[int, str]:
        """For each statement, by its id: its own line in the loop IR's text, and its origin."""
        descriptions: dict[int, str] = {}
        for func in self._funcs:
            text, begins = print_func_with_lines(func)
            lines = text.splitlines()
            for number, stmt in begins.items():
                origin = f"  # {stmt.origin}" if stmt.origin else ""
                descriptions[id(stmt)] = lines[number - 1].strip() + origin
        return descriptions

    def __len__(self) -> int:
        return len(self._came_from)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return LineMap(self._funcs, self._came_from[index])
        source = self._came_from[index]
        if isinstance(source, str):
            return source
        return self._descriptions.get(id(source), "")

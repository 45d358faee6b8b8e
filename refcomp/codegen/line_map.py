"""Which statement each line of a printed text came from, told when somebody asks.

Only a failing tool makes anybody ask, and telling takes as long as all the printing: the loop IR
is printed then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func_with_lines
from refcomp.ir.stmt import Stmt


class LineMap(Sequence[str]):
    """For each line a text about its statement in `funcs`; `came_from` has the statements, or
    texts where a line came from none."""

    def __init__(
        self, funcs: Sequence[PrimFunc], came_from: Sequence[Stmt | str]
    ) -> None:
        self._funcs, self._came_from = tuple(funcs), came_from

    @property
    def came_from(self) -> Sequence[Stmt | str]:
        """The statements themselves."""
        return self._came_from

    @cached_property
    def _told(self) -> dict[int, str]:
        """For each statement, by its id: its own line in the loop IR's text, and its origin."""
        told: dict[int, str] = {}
        for func in self._funcs:
            text, begins = print_func_with_lines(func)
            lines = text.splitlines()
            for number, stmt in begins.items():
                origin = f"  # {stmt.origin}" if stmt.origin else ""
                told[id(stmt)] = lines[number - 1].strip() + origin
        return told

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
        return source if isinstance(source, str) else self._told.get(id(source), "")

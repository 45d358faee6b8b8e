"""The source of a hybrid function: its syntax tree, its outer names, and the place of errors."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from refcomp.foundation.errors import UserError
from refcomp.foundation.snippets import Snippet


@dataclass(frozen=True, slots=True)
class PythonSource:
    """The source of one function."""

    name: str
    filename: str
    first_line: int  # in the file
    lines: tuple[str, ...]  # of the function, without common indentation
    definition: ast.FunctionDef
    outer: dict[str, object]  # the values of names from outside of the function

    def place(self, node: ast.AST) -> str:
        """Return `file:line` of a part of the function."""
        return f"{self.filename}:{self.first_line + getattr(node, 'lineno', 1) - 1}"

    def refuse(self, node: ast.AST, what: str, remedy: str | None = None) -> NoReturn:
        """Raise the UserError that `node` is illegal in a hybrid function."""
        raise UserError(
            f"hybrid function {self.name}: {what}",
            remedy=remedy,
            at=self._snippet(node),
        )

    def _snippet(self, node: ast.AST) -> Snippet:
        """Return the first line of a part of the function, with the columns of the part."""
        number = getattr(node, "lineno", 1) - 1
        text = self.lines[number] if number < len(self.lines) else ""
        if not isinstance(node, ast.expr | ast.stmt):
            return Snippet(self.place(node), "", text)
        bytes_of_text = text.encode()  # Python counts columns in bytes of UTF-8
        end = node.end_col_offset if node.end_lineno == node.lineno else None
        start = len(bytes_of_text[: node.col_offset].decode())
        marked = len(bytes_of_text[node.col_offset : end].decode())
        return Snippet(self.place(node), "", text, (start, start + marked))


def read_source(function: Callable[..., object]) -> PythonSource:
    """Return the source of a plain function. Raises UserError if there is none."""
    name = getattr(function, "__name__", repr(function))
    try:
        lines, first_line = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise UserError(
            f"hybrid function {name} has no source that could be read",
            why=str(error),
            remedy="write it in a file, as a function of its own: def ...",
        ) from error
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text)
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, ast.FunctionDef):
        raise UserError(
            f"hybrid function {name} is not a function definition",
            remedy="decorate a def",
        )
    outer: dict[str, object] = dict(vars(builtins)) | dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for variable, cell in cells:
        try:
            outer[variable] = cell.cell_contents
        except ValueError:  # it is bound later, or never
            outer.pop(variable, None)
    return PythonSource(
        name=name,
        filename=inspect.getsourcefile(function) or "<unknown>",
        first_line=first_line,
        lines=tuple(text.splitlines()),
        definition=definition,
        outer=outer,
    )

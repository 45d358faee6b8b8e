"""The source of a hybrid function: its syntax tree, its outer names, and where errors lie."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from refcomp.foundation.errors import UserError


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What is known of the function `name`: its definition, and the lines of the file it is in."""

    name: str
    filename: str
    first_line: int
    lines: tuple[str, ...]
    definition: ast.FunctionDef
    outer: dict[str, Any]

    def place(self, node: ast.AST) -> str:
        """`file:line` of a part of the function."""
        return f"{self.filename}:{self.first_line + getattr(node, 'lineno', 1) - 1}"

    def refuse(self, node: ast.AST, what: str, remedy: str | None = None) -> NoReturn:
        """Raises the UserError that `node` is not legal in a hybrid function."""
        number = getattr(node, "lineno", 1) - 1
        text = self.lines[number].strip() if number < len(self.lines) else ""
        raise UserError(
            f"hybrid function {self.name}: {what}",
            where=f"{self.place(node)}\n    {text}",
            remedy=remedy,
        )


def read_source(function: Callable[..., Any]) -> PythonSource:
    """The source of a plain function; UserError for anything else, and where there is none."""
    name = getattr(function, "__name__", repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
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
            f"hybrid function {name} is no function definition", remedy="decorate a def"
        )
    filename = inspect.getsourcefile(function) or "<unknown>"
    return PythonSource(
        name, filename, first, tuple(text.splitlines()), definition, _outer(function)
    )


def _outer(function: Callable[..., Any]) -> dict[str, Any]:
    """What the names mean that the function takes from around it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    outer = dict(vars(builtins)) | dict(function.__globals__)
    for name, cell in cells:
        try:
            outer[name] = cell.cell_contents
        except ValueError:  # it is bound later, or never
            outer.pop(name, None)
    return outer

"""The error that the interpreter raises, and the text that says where."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from refcomp.foundation.errors import RefcompError
from refcomp.ir.expr import Var
from refcomp.ir.printer import print_stmt
from refcomp.ir.stmt import Origin, Stmt


class InterpretError(RefcompError):
    """A rule of the loop IR that a program breaks.

    `where` holds the statement and its variables.
    """


def describe(
    stmt: Stmt,
    values: Mapping[Var, object],
    origins: Mapping[Var, Origin] = MappingProxyType({}),
) -> str:
    """Return the first line of `stmt`, its origin, and the variables that are bound.

    A loop variable with an origin is followed by the primitive that made the loop, and by the
    user's line that called the primitive.
    """
    text = print_stmt(stmt).partition("\n")[0]
    if stmt.origin:
        text += f" ({stmt.origin})"
    bound = [
        f"{var.name} = {value}{_primitive(origins.get(var))}"
        for var, value in values.items()
    ]
    return f"{text} with {', '.join(bound)}" if bound else text


def _primitive(origin: Origin | None) -> str:
    if origin is None or not origin.primitive:
        return ""
    line = f", at {origin.line}" if origin.line else ""
    return f" (by {origin.primitive}{line})"

"""What the interpreter raises, and how it tells where."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from refcomp.foundation.errors import RefcompError
from refcomp.ir.expr import Var
from refcomp.ir.printer import print_stmt
from refcomp.ir.stmt import Origin, Stmt


class InterpretError(RefcompError):
    """The program breaks a rule of the IR; `where` holds the statement and the variables."""


def describe(
    stmt: Stmt,
    values: Mapping[Var, Any],
    origins: Mapping[Var, Origin] = MappingProxyType({}),
) -> str:
    """The first line of `stmt`, its origin, and the variables that are bound; with the loops'
    `origins`, also which primitive has made each loop, and at which line of the user."""
    line = print_stmt(stmt).partition("\n")[0]
    bound = ", ".join(
        f"{v.name} = {x}{_made(origins.get(v))}" for v, x in values.items()
    )
    origin = f" ({stmt.origin})" if stmt.origin else ""
    return f"{line}{origin}" + (f" with {bound}" if bound else "")


def _made(origin: Origin | None) -> str:
    if origin is None or not origin.primitive:
        return ""
    return f" (by {origin.primitive}" + (f", at {origin.line})" if origin.line else ")")

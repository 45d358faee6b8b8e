"""What the interpreter raises, and how it tells where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refcomp.errors import RefcompError
from refcomp.ir.expr import Var
from refcomp.ir.printer import print_stmt
from refcomp.ir.stmt import Stmt


class InterpretError(RefcompError):
    """The program breaks a rule of the IR; `where` holds the statement and the variables."""


def describe(stmt: Stmt, values: Mapping[Var, Any]) -> str:
    """The first line of `stmt`, its origin, and the variables that are bound."""
    line = print_stmt(stmt).partition("\n")[0]
    bound = ", ".join(f"{var.name} = {value}" for var, value in values.items())
    origin = f" ({stmt.origin})" if stmt.origin else ""
    return f"{line}{origin}" + (f" with {bound}" if bound else "")

"""The error that the interpreter raises, and the text that says where."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from refcomp.foundation.errors import RefcompError
from refcomp.ir.expr import Var
from refcomp.ir.printer import print_stmt
from refcomp.ir.stmt import Origin, Stmt


class InterpretError(RefcompError):
    """The error of a program that breaks a rule of the loop IR, such as a store out of range.

    `interpret` and `interpret_whole` raise it. Its attribute `where` holds the statement and the
    values of its variables.

    Example::

        >>> A = rc.placeholder((3,), name="A")
        >>> i = rc.placeholder((3,), "int64", name="i")
        >>> B = rc.compute((3,), lambda k: A[i[k]], name="B")
        >>> func = rc.lower(rc.create_schedule(B), [A, i, B])
        >>> arrays = [np.ones(3, "float32"), np.array([0, 1, 7]), np.zeros(3, "float32")]
        >>> rc.oracle.interpret(func, arrays)
        Traceback (most recent call last):
            ...
        refcomp.oracle.interpreter.failure.InterpretError: index 7 in dimension 0 of A...
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

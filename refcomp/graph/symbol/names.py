"""Names of nodes that a program leaves unnamed: `conv2d0`, `conv2d1`, and so on."""

from __future__ import annotations

from contextvars import ContextVar, Token

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import checked_name


class NameScope:
    """A scope in which automatic names begin at 0 again.

    It is used by `with`, belongs to the thread or the asyncio task that opened it, and nests.

    Source: NNVM, nnvm.name.NameManager.

    Example::

        >>> with rc.sym.NameScope() as scope:
        ...     first = rc.sym.relu(rc.sym.Variable("x"))
        ...     second = rc.sym.relu(first)
        >>> first.name, second.name, scope.name_for(None, "tanh"), scope.name_for("t", "tanh")
        ('relu0', 'relu1', 'tanh0', 't')
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._tokens: list[Token[NameScope | None]] = []

    def name_for(self, name: str | None, operator: str) -> str:
        """Return the name of a node: `name`, or the next number after the operator's name.

        Args:
            name: the name that the program gives; None for none.
            operator: the name of the operator.

        Raises:
            UserError: `name` is not a text, or empty.
        """
        if name is not None:
            if not checked_name(name, "a symbol"):
                raise UserError("a symbol cannot be called ''", remedy="give it a name")
            return name
        number = self._counts.get(operator, 0)
        self._counts[operator] = number + 1
        return f"{operator}{number}"

    def __enter__(self) -> NameScope:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._tokens.pop())


class Prefix(NameScope):
    """A scope in which all names of nodes begin with a prefix, given names too.

    Args:
        prefix: the beginning of each name.

    Raises:
        UserError: the prefix is not a text.

    Source: NNVM, nnvm.name.Prefix.

    Example::

        >>> with rc.sym.Prefix("stage1_") as scope:
        ...     y = rc.sym.relu(rc.sym.Variable("x"), name="first")
        >>> y.name, scope.name_for(None, "relu")
        ('stage1_first', 'stage1_relu0')
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = checked_name(prefix, "a prefix")

    def name_for(self, name: str | None, operator: str) -> str:
        return self._prefix + super().name_for(name, operator)


_OUTERMOST = NameScope()
_CURRENT: ContextVar[NameScope | None] = ContextVar("names", default=None)


def current_names() -> NameScope:
    """Return the innermost scope; without one, that of the whole program."""
    return _CURRENT.get() or _OUTERMOST

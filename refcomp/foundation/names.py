"""Names in generated text: sanitized and unique.

Names come from users and from model files, so they are not trusted. Before a name is printed, it
passes one of two functions. `mangle` makes symbols of machine code (letters, digits and `_`).
`to_identifier` makes names of the loop IR (dots too). Both return a valid name unchanged. Any other
name gets a suffix from its hash, so that different names stay different.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from refcomp.foundation.errors import UserError
from refcomp.foundation.hashing import sha256

_MAX_LENGTH = 120
# Python compiles a pattern when it is first used, and keeps it.
_NOT_IN_SYMBOL = r"[^A-Za-z0-9_]"
_NOT_IN_IDENTIFIER = r"[^A-Za-z0-9_.]"
_CALLEE = r"[A-Za-z_][A-Za-z0-9_.]*"


def checked_name(name: object, of_what: str) -> str:
    """Return `name`. UserError if it is not a text; any text is accepted."""
    if not isinstance(name, str):
        raise UserError(
            f"{name!r} is not a name for {of_what}",
            remedy='a name is a text, such as "x"',
        )
    return name


def is_callee(name: str) -> bool:
    """Return True if loop IR may call an outside function by `name`."""
    return len(name) <= _MAX_LENGTH and re.fullmatch(_CALLEE, name) is not None


def checked_callee(name: object) -> str:
    """Return `name`. UserError if loop IR cannot call an outside function by it."""
    text = checked_name(name, "a function")
    if is_callee(text):
        return text
    raise UserError(
        f"{name!r} is not a name for a function that compiled code calls",
        why=f"such a name has at most {_MAX_LENGTH} letters, digits, `_` and dots, "
        "and does not begin with a digit or a dot",
        remedy='choose a name such as "my.function"',
    )


def mangle(name: str) -> str:
    """Return a symbol for `name`, [A-Za-z_][A-Za-z0-9_]*: the same name if it is one."""
    return _sanitized(name, _NOT_IN_SYMBOL)


def to_identifier(name: str) -> str:
    """Return a loop-IR identifier for `name`, [A-Za-z_][A-Za-z0-9_.]*."""
    return _sanitized(name, _NOT_IN_IDENTIFIER)


def _sanitized(name: str, unwanted: str) -> str:
    clean = re.sub(unwanted, "_", name)[:_MAX_LENGTH]
    if not re.match("[A-Za-z_]", clean):
        clean = f"_{clean}"
    if clean == name:
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{clean}_{digest[:8]}"


class UniqueNames:
    """A set of names in use, which makes each new name unique by a number at its end.

    The set begins with the `reserved` names. Numbers follow `separator`, beginning with `first`.
    """

    def __init__(
        self, reserved: Iterable[str] = (), separator: str = "_", first: int = 1
    ) -> None:
        self._taken = set(reserved)
        self._separator = separator
        self._first = first
        # Wish -> the lowest number that may be free. Without it, a thousand equal wishes would
        # try half a million numbers.
        self._untried: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def take(self, wish: str) -> str:
        """Return the first free name of `wish`, `wish_1`, `wish_2`, ..., and take it."""
        name = wish
        number = self._untried.get(wish, self._first)
        while name in self._taken:
            name = f"{wish}{self._separator}{number}"
            number += 1
            self._untried[wish] = number
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """Make `name` free again."""
        self._taken.discard(name)
        self._untried.clear()

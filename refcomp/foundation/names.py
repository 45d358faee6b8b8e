"""Names in generated text: made harmless, and made unique.

Names come from users and from model files, so they are hostile until they have passed `mangle`
(symbols of machine code: letters, digits, `_`) or `to_identifier` (the loop IR's text, which has
dots too). Both leave harmless names as they are; any other gets a suffix from its hash, so that
different names stay different.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from refcomp.foundation.errors import UserError

_LONGEST = 120
_NOT_IN_SYMBOL = re.compile(r"[^A-Za-z0-9_]")
_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9_.]")
_CALLEE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def checked_name(name: Any, of_what: str) -> str:
    """`name`, which may be any text; UserError for what is none."""
    if not isinstance(name, str):
        raise UserError(
            f"{name!r} is no name for {of_what}", remedy='a name is a text, such as "x"'
        )
    return name


def is_callee(name: str) -> bool:
    """Whether a function outside the loop IR may be called by `name`: an identifier, with dots."""
    return len(name) <= _LONGEST and _CALLEE.match(name) is not None


def checked_callee(name: Any) -> str:
    """`name`, by which a function outside the loop IR is called; UserError when it cannot be."""
    if is_callee(checked_name(name, "a function")):
        return str(name)
    raise UserError(
        f"{name!r} is no name for a function that is called",
        why=f"it is at most {_LONGEST} letters, digits, `_` and dots, and begins with no digit",
        remedy='a name such as "my.function"',
    )


def mangle(name: str) -> str:
    """`name` as a symbol of [A-Za-z0-9_] that starts with no digit; itself where it is one."""
    return _harmless(name, _NOT_IN_SYMBOL)


def to_identifier(name: str) -> str:
    """`name` as an identifier of the loop IR's text, [A-Za-z_][A-Za-z0-9_.]*."""
    return _harmless(name, _NOT_IN_IDENTIFIER)


def _harmless(name: str, unwanted: re.Pattern[str]) -> str:
    clean = unwanted.sub("_", name)[:_LONGEST]
    if not re.match("[A-Za-z_]", clean):
        clean = f"_{clean}"
    if clean == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{clean}_{digest[:8]}"


class UniqueNames:
    """Gives each asker a name that nobody else holds: the wish itself, or with a number behind.

    `reserved` are names that nobody may hold. A number follows `separator`, from `first` on.
    """

    def __init__(
        self, reserved: Iterable[str] = (), separator: str = "_", first: int = 1
    ) -> None:
        self._taken = set(reserved)
        self._separator, self._first = separator, first
        # Lower numbers of a wish are taken: a thousand equal wishes shall not try half a million.
        self._untried: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def take(self, wish: str) -> str:
        """`wish`, or `wish_1`, `wish_2`, ...: the first that is not taken; it is taken now."""
        name, number = wish, self._untried.get(wish, self._first)
        while name in self._taken:
            name = f"{wish}{self._separator}{number}"
            number += 1
            self._untried[wish] = number
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """Lets others take `name` again."""
        self._taken.discard(name)
        self._untried.clear()

"""Attributes of symbols: values of known kinds, which arrive as Python values or as texts.

The classic JSON form holds every attribute as a text: `"(3, 3)"`, `"True"`, `"1e-05"`. So each kind
reads both forms, and `attribute_to_text` writes the text.

Refuses values of another kind, integers beyond 64 bits, texts longer than `MAX_TEXT`, and tuples
nested deeper than `MAX_NESTING`.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin

from refcomp.foundation.errors import CompilerBug

# A tuple holds values of one kind; tuples of tuples are the widths of `pad`.
SymbolAttribute = bool | int | float | str | None | tuple[Any, ...]

MAX_TEXT = 100_000  # characters
MAX_NESTING = 8  # of tuples
_MAX_INTEGER = 2**63 - 1
_TOKEN = re.compile(r"\s*([()\[\],]|[^()\[\],\s][^()\[\],]*)")


@dataclass(frozen=True, slots=True)
class AttributeKind:
    """The values that an attribute may have.

    Attributes:
        text: the kind in words, for messages and manual pages.
        read: returns the value that a Python value or a text means; ValueError if it is of another
            kind.
    """

    text: str
    read: Callable[[object], SymbolAttribute]


def kind_of_hint(hint: Any) -> AttributeKind:
    """Return the kind that a type hint of an operator's parameter means.

    Args:
        hint: bool, int, float, str, a Literal of texts, a tuple of one of these, or a union.

    Raises:
        CompilerBug: no kind is known for the hint.
    """
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin is Literal:
        return _choice(parts)
    if origin in (Union, types.UnionType):
        return _union([kind_of_hint(part) for part in parts])
    if origin is tuple and parts[-1] is Ellipsis:
        return _tuple(kind_of_hint(parts[0]), None)
    if origin is tuple:
        return _tuple(kind_of_hint(parts[0]), len(parts))
    raise CompilerBug(f"no attribute has the type {hint}")


def attribute_to_text(value: SymbolAttribute) -> str:
    """Return the text of an attribute, as the classic JSON form holds it."""
    if isinstance(value, tuple):
        items = ", ".join(map(attribute_to_text, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    return str(value)


def _read_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "false": False, "0": False}
    word = str(value).lower() if isinstance(value, str | Integral) else ""
    if word not in words:
        raise ValueError
    return words[word]


def _read_int(value: object) -> int:
    if isinstance(value, str):
        # Python reads digits with `_` between them; the classic form has no such numbers.
        number = (
            int(value[:30]) if re.fullmatch(r"\s*[+-]?\d{1,20}L?\s*", value) else None
        )
        if number is None:
            raise ValueError
    elif isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    else:
        raise ValueError
    if abs(number) > _MAX_INTEGER:
        raise ValueError
    return number


def _read_float(value: object) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and "_" not in value):
        try:
            return float(value)  # type: ignore[arg-type]  # a Real or a text
        except OverflowError as error:
            raise ValueError from error
    raise ValueError


def _read_str(value: object) -> str:
    # A dtype is given as numpy's type, too: `dtype=np.float32`.
    if isinstance(value, type) and value.__module__ == "numpy":
        return value.__name__
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError
    return value


def _read_none(value: object) -> None:
    if value is not None and value != "None":
        raise ValueError


_PLAIN: dict[Any, AttributeKind] = {
    bool: AttributeKind("True or False", _read_bool),
    int: AttributeKind("an integer", _read_int),
    float: AttributeKind("a number", _read_float),
    str: AttributeKind("a text", _read_str),
    type(None): AttributeKind("None", _read_none),
}


def _choice(words: tuple[str, ...]) -> AttributeKind:
    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    return AttributeKind(f"one of {', '.join(words)}", read)


def _union(kinds: list[AttributeKind]) -> AttributeKind:
    def read(value: object) -> SymbolAttribute:
        for kind in kinds:
            try:
                return kind.read(value)
            except ValueError:
                continue
        raise ValueError

    return AttributeKind(" or ".join(kind.text for kind in kinds), read)


def _tuple(item: AttributeKind, size: int | None) -> AttributeKind:
    def read(value: object) -> tuple[SymbolAttribute, ...]:
        items = _parsed(value) if isinstance(value, str) else value
        is_list = isinstance(items, Iterable) and not isinstance(
            items, str | bytes | dict
        )
        if not is_list:
            raise ValueError
        made: list[SymbolAttribute] = []
        for each in items:  # type: ignore[attr-defined]  # an Iterable
            if len(made) > MAX_TEXT:
                raise ValueError
            made.append(item.read(each))
        if size is not None and len(made) != size:
            raise ValueError
        return tuple(made)

    plural = _plural(item.text)
    count = {None: "", 1: "one ", 2: "two ", 4: "four "}.get(size, f"{size} ")
    return AttributeKind(f"a tuple of {count}{plural}", read)


def _plural(text: str) -> str:
    words = {"an integer": "integers", "a number": "numbers", "a text": "texts"}
    if text.startswith("a tuple"):
        return text.replace("a tuple", "tuples", 1)
    return words.get(text, text)


def _parsed(text: str) -> list[object]:
    """Return the items of a text such as `(3, 3)`: texts, and lists for inner tuples."""
    if len(text) > MAX_TEXT:
        raise ValueError
    open_lists: list[list[object]] = [[]]
    is_item_next = True
    place = 0
    stripped = text.rstrip()
    while place < len(stripped):
        found = _TOKEN.match(stripped, place)
        if found is None:
            raise ValueError
        place = found.end()
        token = found[1].strip()
        if token in "([":
            if not is_item_next or len(open_lists) > MAX_NESTING:
                raise ValueError
            open_lists.append([])
        elif token in ")]":
            if len(open_lists) == 1:
                raise ValueError
            inner = open_lists.pop()
            open_lists[-1].append(inner)
            is_item_next = False
        elif token == ",":
            if is_item_next:
                raise ValueError
            is_item_next = True
        else:
            if not is_item_next:
                raise ValueError
            open_lists[-1].append(token)
            is_item_next = False
    outer = open_lists[0]
    if len(open_lists) > 1 or len(outer) != 1 or not isinstance(outer[0], list):
        raise ValueError
    return outer[0]

"""Namespaces of aliases: `classic.nd`, `classic.topi.nn` and the others, made from the table."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from refcomp.classic.table import ClassicName, by_place, resolve

ROOT = "refcomp.classic"


class Namespace(ModuleType):
    """A module of aliases, which resolves each of them on first use."""

    def __getattr__(self, name: str) -> Any:
        value = look_up(self.__name__, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return public_names(self.__name__)


def make_namespaces() -> dict[str, Namespace]:
    """Enter a module for each prefix of a classic name, and return those at the top, by name.

    Python then imports them, too: `from refcomp.classic.contrib import graph_runtime`.
    """
    prefixes = {
        prefix
        for place in by_place()
        for prefix in _prefixes(place)
        if prefix not in by_place()
    }
    for prefix in sorted(prefixes):
        module = Namespace(f"{ROOT}.{prefix}", f"Classic names of `{prefix}`.")
        module.__path__ = []  # so that Python imports names below it
        sys.modules[module.__name__] = module
        parent, _, name = prefix.rpartition(".")
        if parent:
            setattr(sys.modules[f"{ROOT}.{parent}"], name, module)
    return {
        prefix: sys.modules[f"{ROOT}.{prefix}"]  # type: ignore[misc]
        for prefix in prefixes
        if "." not in prefix
    }


def _prefixes(place: str) -> list[str]:
    """Return the namespaces of a place: for `a.b.c` they are `a` and `a.b`."""
    parts = place.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def look_up(module: str, name: str) -> Any:
    """Return what a name of a namespace means.

    Raises:
        AttributeError: there is no such alias. The message says what to write instead.
    """
    place = f"{module}.{name}".removeprefix(f"{ROOT}.")
    entry = by_place().get(place)
    if entry is None or not entry.is_alias:
        raise AttributeError(
            f"module {module!r} has no attribute {name!r}{_advice(entry)}",
            name=name,
            obj=sys.modules[module],
        )
    return resolve(entry.target)


def _advice(entry: ClassicName | None) -> str:
    if entry is None:
        return ""
    return (
        f": see refcomp.{entry.target}. {entry.note}"
        if entry.target
        else f": {entry.note}"
    )


def public_names(module: str) -> list[str]:
    """Return the sorted names of aliases and namespaces directly below a namespace."""
    prefix = f"{module}.".removeprefix(f"{ROOT}.")
    places = [place for place, entry in by_place().items() if entry.is_alias]
    below = [place.removeprefix(prefix) for place in places if place.startswith(prefix)]
    return sorted({place.partition(".")[0] for place in below})

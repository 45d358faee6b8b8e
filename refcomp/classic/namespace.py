"""Namespaces of aliases, such as `classic.nd` and `classic.topi.nn`, made from the table.

An absent name raises an error that says what to write instead, both as an attribute and where it is
imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

from refcomp.classic.table import (
    SAME_NAMESPACES,
    ClassicName,
    by_place,
    entry_at,
    resolve,
)

ROOT = "refcomp.classic"


class Namespace(ModuleType):
    """A module of aliases, which resolves each of them on first use."""

    def __getattr__(self, name: str) -> Any:
        value = look_up(self.__name__, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return public_names(self.__name__)


class AbsentNames(MetaPathFinder):
    """A finder of modules that refuses absent names, such as `from refcomp.classic import div`.

    Without it, Python would say only that it cannot import the name. Python asks this finder last,
    and thus only about names that no module has.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> None:
        """Raise ImportError for an absent name, which says what to write instead."""
        if not fullname.startswith(f"{ROOT}."):
            return
        entry = entry_at(fullname.removeprefix(f"{ROOT}."))
        if entry is not None and not entry.is_alias:
            module, _, name = fullname.rpartition(".")
            raise ImportError(
                f"cannot import name {name!r} from {module!r}{_advice(entry)}",
                name=fullname,
            )


def make_namespaces() -> dict[str, Namespace]:
    """Register a module for each prefix of a classic name. Return the modules at the top, by name.

    Python then imports them, too: `from refcomp.classic.contrib import graph_runtime`.
    """
    prefixes = {
        prefix
        for place in by_place()
        for prefix in _prefixes(place)
        if prefix not in by_place()
    }
    for prefix in sorted(prefixes):
        full_name = f"{ROOT}.{prefix}"
        if full_name in sys.modules:
            continue
        module = Namespace(full_name, f"Classic names of `{prefix}`.")
        module.__path__ = []  # so that Python imports names below it
        _enter(prefix, module)
    for place, meant in SAME_NAMESPACES.items():
        _enter(place, sys.modules[f"{ROOT}.{meant}"])
    if not any(isinstance(finder, AbsentNames) for finder in sys.meta_path):
        sys.meta_path.append(AbsentNames())
    return {
        place: sys.modules[f"{ROOT}.{place}"]  # type: ignore[misc]
        for place in prefixes | SAME_NAMESPACES.keys()
        if "." not in place
    }


def _enter(place: str, module: ModuleType) -> None:
    """Make a module importable at a place below `refcomp.classic`."""
    sys.modules[f"{ROOT}.{place}"] = module
    parent, _, name = place.rpartition(".")
    if parent:
        setattr(sys.modules[f"{ROOT}.{parent}"], name, module)


def _prefixes(place: str) -> list[str]:
    """Return the namespaces of a place: for `a.b.c` they are `a` and `a.b`."""
    parts = place.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def look_up(module: str, name: str) -> Any:
    """Return the object of a name in a namespace.

    Raises:
        AttributeError: there is no such alias. The message says what to write instead.
    """
    place = f"{module}.{name}".removeprefix(f"{ROOT}.")
    entry = entry_at(place)
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
    places += SAME_NAMESPACES
    below = [place.removeprefix(prefix) for place in places if place.startswith(prefix)]
    return sorted({place.partition(".")[0] for place in below})

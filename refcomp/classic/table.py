"""The table of classic names: the name of the same thing in refcomp, or what to write instead.

The files in `names/` hold the table. Each file is an area, such as schedules:

    title = "Schedules"         # the heading on the page
    text = "..."                # paragraphs below the heading
    classic = "tvm"             # prefix of the classic names
    refcomp = ""                # prefix of refcomp's names
    same = "var const ..."      # names with the same name and meaning in refcomp
    translations = "classic.operators"  # module of functions that take classic arguments
    positional = "transpose"    # names in that module. refcomp has the same name, but takes some
                                # arguments by keyword only
    [other]                     # classic name = another name of refcomp, with the same meaning
    [translated]                # classic name in the module of translations = what refcomp has; or
                                # classic name = [name below `refcomp.classic`, what refcomp has]
    [differs]                   # classic name = refcomp's nearest name, and how it differs
    [absent]                    # classic name = what to write instead, and why

`refcomp.classic` has all these names, except for those that differ or are absent. An absent name
such as `"relay.*"` stands for all names of a namespace that the table does not list. In a file with
`methods = true` the names are methods and attributes. methods.py adds them to refcomp's classes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from refcomp.foundation.records import record

FOLDER = Path(__file__).parent / "names"
# The files in the order of the page.
AREAS = (
    "expressions",
    "ir_passes",
    "schedules",
    "schedule_methods",
    "build",
    "runtime",
    "runtime_methods",
    "targets",
    "builders",
    "builder_methods",
    "contrib",
    "topi",
    "topi_sparse",
    "topi_schedules",
    "topi_targets",
    "symbols",
    "networks",
    "relay",
    "autotvm",
)


# Namespaces that have the names of another one, below `refcomp.classic`.
SAME_NAMESPACES = {
    "nnvm.symbol": "nnvm.sym",
    "ndarray": "nd",
    "contrib.rpc": "rpc",
}


@record
class ClassicName:
    """A classic name, with what refcomp has for it.

    Attributes:
        name: the full classic name, such as `tvm.nd.array` or `topi.nn.relu`.
        target: the name below `refcomp`, such as `nd.array`; empty if refcomp has no such thing.
        note: the difference of `target`, or what to write instead; empty if both mean the same.
        is_method: True for a method or attribute of a class, which needs no alias.
        is_translated: True if `target` is a function that takes the classic arguments. `note` then
            says what to write in refcomp, unless refcomp has the same name.
    """

    name: str
    target: str
    note: str
    is_method: bool
    is_translated: bool = False

    @property
    def is_alias(self) -> bool:
        """Return True if `refcomp.classic` has the name."""
        return self.is_translated or not (self.is_method or self.note)


@record
class Area:
    """Classic names of one kind.

    Attributes:
        title: the heading of the area.
        text: paragraphs about all its names; may be empty.
        names: its names, in the order of the page.
    """

    title: str
    text: str
    names: tuple[ClassicName, ...]


@cache
def read_areas() -> tuple[Area, ...]:
    """Return the table of classic names."""
    return tuple(_read(name) for name in AREAS)


def _read(name: str) -> Area:
    document = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return Area(
        title=document["title"],
        text=document.get("text", "").strip(),
        names=tuple(_names(document)),
    )


def _names(document: Mapping[str, Any]) -> Iterator[ClassicName]:
    is_method = document.get("methods", False)

    def named(name: str, target: str, note: str = "") -> ClassicName:
        return ClassicName(
            name=_joined(document["classic"], name),
            target=_joined(document["refcomp"], target) if target else "",
            note=note,
            is_method=is_method,
        )

    for name in document.get("same", "").split():
        yield named(name, name)
    for name, target in document.get("other", {}).items():
        yield named(name, target)
    positional = dict.fromkeys(document.get("positional", "").split(), "")
    for name, meaning in (positional | document.get("translated", {})).items():
        if isinstance(meaning, str):
            target = f"{document['translations']}.{name.rpartition('.')[2]}"
            note = meaning
        else:
            place, note = meaning
            target = f"classic.{place}"
        yield replace(named(name, "", note), target=target, is_translated=True)
    for name, (target, note) in document.get("differs", {}).items():
        yield named(name, target, note)
    for name, note in document.get("absent", {}).items():
        yield named(name, "", note)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


@cache
def by_place() -> dict[str, ClassicName]:
    """Return all names that are not methods, by their place below `refcomp.classic`."""
    return {
        entry.name.removeprefix("tvm."): entry
        for area in read_areas()
        for entry in area.names
        if not entry.is_method
    }


def entry_at(place: str) -> ClassicName | None:
    """Return what the table says about a place below `refcomp.classic`.

    A place that is not listed has the entry of the nearest namespace whose names are all absent,
    such as `relay.*`. None if the table has neither.
    """
    places = by_place()
    parts = place.split(".")
    around = [".".join([*parts[:count], "*"]) for count in range(len(parts) - 1, 0, -1)]
    return next((places[name] for name in [place, *around] if name in places), None)


def resolve(target: str) -> Any:
    """Return the object of a name below `refcomp`, such as `nd.array` or `ir.expr.Var`."""
    found: Any = import_module("refcomp")
    for part in target.split("."):
        if not hasattr(found, part):
            import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found

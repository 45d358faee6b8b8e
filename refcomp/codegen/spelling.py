"""How an output language is spelled: the macros and the tables of its folders in templates/.

Ensures: every macro of the folders' .j2 files is an attribute of `Spelling.macros`, a callable
that returns text, and every table of their .toml files an entry of `Spelling.tables`. A language
may be the dialect of another: its own folder then holds only what differs, and what it holds
replaces what the folders before it say, whole macros and whole tables. Refuses two macros or two
tables of one name in one folder. Jinja is imported when the first language is loaded.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from refcomp.errors import CompilerBug
from refcomp.resources import templates_dir


@dataclass(frozen=True, slots=True)
class Spelling:
    """The macros by name, and the tables by name, of one output language."""

    language: str
    macros: Any
    tables: dict[str, Any]


@cache
def load_spelling(*folders: str) -> Spelling:
    """The spelling of a language, loaded once: the names of its folders in templates/.

    The last one is the language's own; those before it are what it is a dialect of.
    """
    macros: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for folder in folders:
        own_macros, own_tables = _load_folder(templates_dir() / folder)
        macros |= own_macros
        tables |= own_tables
    return Spelling(folders[-1], SimpleNamespace(**macros), tables)


def _load_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    macros: dict[str, Any] = {}
    for path in sorted(folder.glob("*.j2")):
        _add_all(macros, _macros_of(path), path)
    tables: dict[str, Any] = {}
    for path in sorted(folder.glob("*.toml")):
        _add_all(tables, tomllib.loads(path.read_text(encoding="utf-8")), path)
    return macros, tables


def _macros_of(path: Path) -> dict[str, Any]:
    import jinja2  # noqa: PLC0415  (20 ms that a program which prints nothing does not pay)

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(path.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    module = environment.get_template(path.name).module
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _add_all(known: dict[str, Any], more: dict[str, Any], path: Path) -> None:
    twice = sorted(known.keys() & more.keys())
    if twice:
        raise CompilerBug(f"{', '.join(twice)} is spelled twice", where=str(path))
    known.update(more)

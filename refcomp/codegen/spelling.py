"""How an output language is spelled: the macros and the tables of its folder in templates/.

Ensures: every macro of the folder's .j2 files is an attribute of `Spelling.macros`, a callable
that returns text, and every table of its .toml files an entry of `Spelling.tables`. Refuses two
macros or two tables of one name. Jinja is imported when the first language is loaded.
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
def load_spelling(language: str) -> Spelling:
    """The spelling of `language`, the name of a folder of templates/; loaded once."""
    folder = templates_dir() / language
    macros: dict[str, Any] = {}
    for path in sorted(folder.glob("*.j2")):
        _add_all(macros, _macros_of(path), path)
    tables: dict[str, Any] = {}
    for path in sorted(folder.glob("*.toml")):
        _add_all(tables, tomllib.loads(path.read_text(encoding="utf-8")), path)
    return Spelling(language, SimpleNamespace(**macros), tables)


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

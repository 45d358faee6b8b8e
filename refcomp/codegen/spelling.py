"""How an output language is spelled: the macros and the tables of its folders in templates/.

Ensures: every macro of the folders' .j2 files is an attribute of `Spelling.macros`, a callable
that returns text, and every table of their .toml files an entry of `Spelling.tables`. A language
may be the dialect of another: its own folder then holds only what differs, and what it holds
replaces what the folders before it say, whole macros and whole tables. Refuses two macros or two
tables of one name in one folder. Jinja is imported when the first macro is asked for, and compiles
that one and those of its file that it calls: a program uses few of a language's macros, and
compiling all of them would take longer than the rest of a small build.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.resources import templates_dir

_MACRO = re.compile(
    r"{%-?\s*macro\s+(?P<name>\w+)\b.*?{%-?\s*endmacro\s*-?%}\n?", re.DOTALL
)
_CALL = re.compile(r"(\w+)\s*\(")


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
    return Spelling(folders[-1], Macros(macros), tables)


def _load_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    macros: dict[str, Any] = {}
    for path in sorted(folder.glob("*.j2")):
        _add_all(macros, macros_of(path.read_text(encoding="utf-8")), path)
    tables: dict[str, Any] = {}
    for path in sorted(folder.glob("*.toml")):
        _add_all(tables, tomllib.loads(path.read_text(encoding="utf-8")), path)
    return macros, tables


def macros_of(text: str) -> dict[str, Any]:
    """What compiles each macro of a file's text, by name; those with _ before are its own."""
    texts = {m["name"]: m[0] for m in _MACRO.finditer(text)}
    return {
        name: partial(_compile, name, texts)
        for name in texts
        if not name.startswith("_")
    }


def _compile(name: str, texts: Mapping[str, str]) -> Callable[..., str]:
    """The macro `name` of a file whose macros have these texts."""
    needed, rest = {name: texts[name]}, [name]
    while rest:
        called = {other for other in _CALL.findall(texts[rest.pop()]) if other in texts}
        rest += called - needed.keys()
        needed |= {other: texts[other] for other in called}
    template = _environment().from_string("".join(needed.values()))
    macro: Callable[..., str] = getattr(template.module, name)
    return macro


@cache
def _environment() -> Any:
    import jinja2  # noqa: PLC0415  (20 ms that a program which prints nothing does not pay)

    return jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


class Macros:
    """The macros of a language as attributes, each compiled when it is first asked for."""

    def __init__(
        self, compilers: Mapping[str, Callable[[], Callable[..., str]]]
    ) -> None:
        self._compilers = compilers

    def __getattr__(self, name: str) -> Callable[..., str]:
        compiler = self._compilers.get(name)
        if compiler is None:
            raise AttributeError(f"no template has a macro {name!r}")
        macro = self.__dict__[name] = compiler()
        return macro


def _add_all(known: dict[str, Any], more: dict[str, Any], path: Path) -> None:
    twice = sorted(known.keys() & more.keys())
    if twice:
        raise CompilerBug(f"{', '.join(twice)} is spelled twice", where=str(path))
    known.update(more)

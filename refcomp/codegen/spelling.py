"""Load the spelling of an output language: macros and tables of its folders in templates/.

Ensures: every macro of the folders' .j2 files is an attribute of `Spelling.macros`, a callable
that returns text. Every table of their .toml files is an entry of `Spelling.tables`. Refuses two
macros or two tables of one name in one folder.

A language may be a dialect of another. Then its own folder holds only what differs; a macro or a
table replaces the one of the same name in an earlier folder.

Jinja is imported when the first macro is used. It compiles this macro, and the macros of its file
that it calls. Compiling all macros would take longer than the rest of a small build.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from refcomp.foundation.errors import CompilerBug
from refcomp.foundation.resources import templates_dir

if TYPE_CHECKING:
    import jinja2

_MACRO = re.compile(
    r"{%-?\s*macro\s+(?P<name>\w+)\b.*?{%-?\s*endmacro\s*-?%}\n?", re.DOTALL
)
_CALL = re.compile(r"(\w+)\s*\(")
_Entry = TypeVar("_Entry")


# A table of TOML. Its values are texts, numbers, lists, and tables.
Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spelling:
    """The macros and the tables of one output language."""

    language: str
    macros: Macros
    tables: Table  # by name


@cache
def load_spelling(*folders: str) -> Spelling:
    """Return the spelling of a language, loaded once.

    Args:
        folders: names in templates/. The last one is the language's own folder; the folders
            before it are those of the languages that it is a dialect of.
    """
    macros: dict[str, Callable[[], Callable[..., str]]] = {}
    tables: Table = {}
    for name in folders:
        folder = templates_dir() / name
        macros |= _load_files(folder, "*.j2", macros_of)
        tables |= _load_files(folder, "*.toml", tomllib.loads)
    return Spelling(folders[-1], Macros(macros), tables)


def _load_files(
    folder: Path, pattern: str, load: Callable[[str], dict[str, _Entry]]
) -> dict[str, _Entry]:
    """Return the entries of all files of `folder` that match `pattern`."""
    entries: dict[str, _Entry] = {}
    for path in sorted(folder.glob(pattern)):
        more = load(path.read_text(encoding="utf-8"))
        if twice := sorted(entries.keys() & more.keys()):
            raise CompilerBug(f"{', '.join(twice)} is spelled twice", where=str(path))
        entries |= more
    return entries


def macros_of(text: str) -> dict[str, Callable[[], Callable[..., str]]]:
    """Return a compiler of each macro in the text of a file, by the macro's name.

    Macros whose names begin with _ are private to the file, and left out.
    """
    texts = {m["name"]: m[0] for m in _MACRO.finditer(text)}
    names = [name for name in texts if not name.startswith("_")]
    return {name: partial(_compile, name, texts) for name in names}


def _compile(name: str, texts: Mapping[str, str]) -> Callable[..., str]:
    """Compile the macro `name` of a file whose macros have the texts `texts`."""
    needed = {name: texts[name]}
    rest = [name]
    while rest:
        called = {other for other in _CALL.findall(texts[rest.pop()]) if other in texts}
        rest += called - needed.keys()
        needed |= {other: texts[other] for other in called}
    template = _environment().from_string("".join(needed.values()))
    macro: Callable[..., str] = getattr(template.module, name)
    return macro


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # noqa: PLC0415  (takes 20 ms, which a program that prints nothing saves)

    return jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


class Macros:
    """The macros of a language as attributes. Each is compiled when it is first used."""

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

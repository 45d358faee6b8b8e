"""A TOML table that is read key by key, so that a wrong file is refused by file and key.

Ensures: after `close`, every key of the table was read. Refuses with UserError: a missing key, a
value of another type, an unknown key.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from refcomp.foundation.errors import UserError
from refcomp.foundation.snippets import Snippet


class TomlTable:
    """The table at `prefix` (dotted, '' at the top) of the file `path`."""

    def __init__(
        self, path: Path, content: Mapping[str, object], prefix: str = ""
    ) -> None:
        self.path = path
        self.prefix = prefix
        self._content = content
        self._unread = dict.fromkeys(content)  # a dict, to keep the file's order

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string, or the default if the key is absent.

        Without a default the key is required.
        """
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.refuse(key, f"must be a string, not {value!r}")
        return value

    def texts(
        self, key: str, default: tuple[str, ...] | None = None
    ) -> tuple[str, ...]:
        """Return an array of strings."""
        value = self._take(key, default)
        # TOML has no tuples, so this is the default.
        if isinstance(value, tuple):
            return value
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self.refuse(key, f"must be an array of strings, not {value!r}")

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.refuse(key, f"must be true or false, not {value!r}")
        return value

    def lists(self, key: str) -> dict[str, tuple[str, ...]]:
        """Return the sub-table at `key`, whose values are all arrays of strings."""
        group = self.table(key)
        return {name: group.texts(name) for name in group}

    def table(self, key: str) -> "TomlTable":
        """Return a sub-table, which is empty if the key is absent."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise self.refuse(key, f"must be a table, not {value!r}")
        return TomlTable(self.path, value, f"{self.prefix}{key}.")

    def tables(self, key: str) -> Iterator[tuple[str, "TomlTable"]]:
        """Return the sub-tables of the table at `key`, by name."""
        group = self.table(key)
        for name in group:
            yield name, group.table(name)

    def mapping(self, key: str) -> dict[str, str]:
        """Return the sub-table at `key`, whose values are all strings."""
        group = self.table(key)
        return {name: group.text(name) for name in group}

    def close(self) -> None:
        """Raise UserError for keys that were not read."""
        for key in self._unread:
            raise self.refuse(key, "is not a key that a toolchain file has here")

    def refuse(self, key: str, what: str) -> UserError:
        """Return the error that explains what is wrong with `key`."""
        at = _line_of(self.path, f"{self.prefix}{key}")
        where = None if at else str(self.path)
        return UserError(f"{self.prefix}{key} {what}", where=where, at=at)

    def _take(self, key: str, default: object) -> object:
        self._unread.pop(key, None)
        value = self._content.get(key, default)
        if value is None:
            raise self.refuse(key, "is missing")
        return value


def _line_of(path: Path, name: str) -> Snippet | None:
    """Return the line of a dotted name, or of the innermost table around it."""
    lines: dict[str, int] = {}
    header = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        table = re.match(r"\s*\[+([^\]]+)\]", line)
        if table:
            header = f"{table[1].strip()}."
            lines.setdefault(table[1].strip(), number)
        key = re.match(r"\s*([\w.-]+)\s*=", line)
        if key:
            lines.setdefault(header + key[1], number)
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return Snippet(f"{path}:{lines[name]}") if name else None


def read_table(path: Path) -> TomlTable:
    """Return the top table of a TOML file. Raise UserError if it cannot be read or parsed."""
    try:
        return TomlTable(path, tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = str(error)
        place = re.search(r" \(at line (\d+), column (\d+)\)$", why)
        at = None
        if place:
            column = int(place[2])
            at = Snippet(f"{path}:{place[1]}", columns=(column - 1, column))
            why = why.removesuffix(place[0])
        raise UserError(
            f"{path.name} is not a toolchain file", where=str(path), why=why, at=at
        ) from error

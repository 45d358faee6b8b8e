"""The texts of translated instructions, for vectors of the host that hold `width` lanes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from refcomp.foundation.resources import templates_dir

_FOLDER = "emulated_lanes"
_CONSTANT = re.compile(r"\$\[(\w+) ([^\]]+)\]")
_LETTERS = {
    "I": "i32",
    "L": "i64",
    "S": "i16",
    "B": "i1",
    "F": "float",
    "D": "double",
    "H": "half",
}
# Type of a value -> the letter of its text.
LETTER_OF = {
    **dict.fromkeys(("b32", "u32", "i32"), "I"),
    **dict.fromkeys(("b64", "u64", "i64"), "L"),
    **dict.fromkeys(("u16", "i16"), "S"),
    "f32": "F",
    "f64": "D",
    "f16": "H",
    "mask32": "B",
    "mask64": "B",
}
_COMPARISON = re.compile(r"(?:v_cmp|s_cmp|s_cmpk)_(\w+?)_([iuf])(16|32|64)$")
_SCALAR_NAMES = {"lg": "ne"}  # of integers


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of instructions, either for vectors or for single values.

    Attributes:
        width: lanes of a vector; 1 for single values.
        instructions: text by mnemonic.
        compared: predicates of comparisons, and their texts.
        frame: tables of other texts.
    """

    width: int
    instructions: Mapping[str, str]
    compared: Mapping[str, str | Mapping[str, str]]
    frame: Mapping[str, Mapping[str, str]]

    def type_of(self, kind: str) -> str:
        """Return the type of values of a kind, such as `f32`."""
        return self.expand(f"${LETTER_OF[kind]}")

    def expand(self, text: str) -> str:
        """Replace the abbreviations of types and constants."""
        return _expand(text, self.width)

    def instruction(self, mnemonic: str) -> str | None:
        """Return the text of an instruction; None if there is none."""
        found = self.instructions.get(mnemonic)
        if found is not None:
            return found
        match = _COMPARISON.match(mnemonic)
        return None if match is None else self._comparison(*match.groups())

    def _comparison(self, name: str, letter: str, bits: str) -> str | None:
        kind = letter + bits
        if letter == "f":
            predicates: Mapping[str, str] = {
                **self._table("ordered"),
                **self._table("negated"),
            }
            text = self.compared["floats"]
        else:
            predicates = self._table("signed" if letter == "i" else "unsigned")
            name = _SCALAR_NAMES.get(name, name)
            text = self.compared["integers"]
        assert isinstance(text, str)
        if name not in predicates:
            return None
        own = text.replace("{predicate}", predicates[name])
        return own.replace("{type}", self.type_of(kind))

    def _table(self, name: str) -> Mapping[str, str]:
        table = self.compared[name]
        assert not isinstance(table, str)
        return table


def _expand(text: str, width: int) -> str:
    def constant(match: re.Match[str]) -> str:
        if width == 1:
            return match[2]
        return f"<{', '.join([f'{match[1]} {match[2]}'] * width)}>"

    text = _CONSTANT.sub(constant, text)
    for letter, name in _LETTERS.items():
        whole = name if width == 1 else f"<{width} x {name}>"
        text = text.replace(f"${letter}", whole)
    return text.replace("$v", f"v{width}").replace("$w", str(width))


@cache
def load_texts(width: int) -> Texts:
    """Return the texts of vector instructions for `width` lanes; for 1 of scalar ones."""
    folder = templates_dir() / _FOLDER
    rows = _tables(folder / "instructions.toml")
    frame = {
        table: texts
        for name in ("frame", "matrices")
        for table, texts in _tables(folder / f"{name}.toml").items()
    }
    kind = "scalar" if width == 1 else "vector"
    return Texts(
        width,
        {name: _expand(text, width).strip() for name, text in rows[kind].items()},
        rows["compared"],
        {
            table: {name: _expand(text, width) for name, text in texts.items()}
            for table, texts in frame.items()
        },
    )


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))

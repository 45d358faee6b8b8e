"""Small wrong edits of an output language's templates and tables, one place each.

Instructions and operators are flipped, operands and branches exchanged, conditions and lines
dropped, numbers shifted in the macros; entries of a table exchanged with their neighbours, flipped
and shifted. The files are read, never written: an edit changes the Spelling that this process has
loaded, for good, and belongs into a child.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from refcomp.codegen.spelling import Spelling, load_spelling, macros_of
from refcomp.foundation.resources import templates_dir

_MACRO = re.compile(
    r"{%-?\s*macro\s+(?P<name>\w+)\b.*?%}(?P<body>.*?){%-?\s*endmacro", re.DOTALL
)
_TAG = r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}"
_Place = tuple[
    str, int, int, str
]  # kind, from where to where of a text, and what stands there


@dataclass(frozen=True, slots=True)
class SpellingEdit:
    """One place of a file of the folder `folder`: a macro's text, or the entry of a table at
    `keys`; `value` is the file's whole text with the edit, or the entry's other value."""

    kind: str
    folder: str
    file: str
    where: str
    change: str
    keys: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return f"{self.folder}/{self.file}, {self.where}: {self.change}"

    def apply(self, folders: tuple[str, ...]) -> None:
        """Edits the loaded spelling of `folders`, for as long as this process lives."""
        spelling = load_spelling(*folders)
        if self.keys:
            *way, last = self.keys
            table = spelling.tables
            for key in way:
                table = table[key]
            table[last] = self.value
            return
        for name, compile_macro in macros_of(self.value).items():
            if _is_of(spelling, folders, self.folder, name):
                setattr(spelling.macros, name, _compiled_when_called(compile_macro))


def _compiled_when_called(
    compile_macro: Callable[[], Callable[..., str]],
) -> Callable[..., str]:
    compiled = cache(compile_macro)
    return lambda *args, **options: compiled()(*args, **options)


def _is_of(
    spelling: Spelling, folders: tuple[str, ...], folder: str, name: str
) -> bool:
    """Whether the macro of that name is the folder's, not one of its dialect's own."""
    after = folders[folders.index(folder) + 1 :]
    return not any(
        name in macros_of(text) for one in after for _, text in _files(one, "j2")
    )


def spelling_edits(*folders: str) -> Iterator[SpellingEdit]:
    """All edits of the files of these folders, in the order of the texts."""
    for folder in folders:
        for file, text in _files(folder, "j2"):
            yield from _macro_edits(folder, file, text)
        for file, text in _files(folder, "toml"):
            tables = tomllib.loads(text)
            yield from _table_edits(folder, file, tables, ())


def _files(folder: str, ending: str) -> list[tuple[str, str]]:
    paths = sorted((templates_dir() / folder).glob(f"*.{ending}"))
    return [(path.name, path.read_text(encoding="utf-8")) for path in paths]


def _macro_edits(folder: str, file: str, text: str) -> Iterator[SpellingEdit]:
    for macro in _MACRO.finditer(text):
        start = macro.start("body")
        for line in re.finditer(r".+", macro["body"]):
            for kind, begin, end, other in _places(line[0]):
                changed = line[0][:begin] + other + line[0][end:]
                at = start + line.start()
                whole = text[:at] + changed + text[at + len(line[0]) :]
                change = f"{line[0].strip()}  ->  {changed.strip() or 'nothing'}"
                yield SpellingEdit(kind, folder, file, macro["name"], change, (), whole)


# Places of one line of a macro.


def _places(line: str) -> Iterator[_Place]:
    holes = [match.span() for match in re.finditer(_TAG, line)]
    for kind, pattern, other in _PATTERNS:
        for match in pattern.finditer(line):
            if not any(
                begin < match.end() and match.start() < end for begin, end in holes
            ):
                yield kind, *match.span(), other(match)
    yield from _exchanged_operands(line)
    yield from _exchanged_branches(line)
    if _stands_alone(line):
        yield "line dropped", 0, len(line), ""


_FLIPPED = {
    **{
        "add": "sub",
        "sub": "add",
        "mul": "add",
        "fadd": "fsub",
        "fsub": "fadd",
        "fmul": "fadd",
    },
    **{"sdiv": "srem", "srem": "sdiv", "udiv": "urem", "urem": "udiv", "fdiv": "fmul"},
    **{
        "and": "or",
        "or": "and",
        "xor": "or",
        "shl": "lshr",
        "lshr": "ashr",
        "ashr": "lshr",
    },
    **{"eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt"},
    **{"ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt", "uno": "ord"},
    **{
        "oeq": "une",
        "une": "oeq",
        "olt": "oge",
        "oge": "olt",
        "ogt": "ole",
        "ole": "ogt",
    },
    **{"sext": "zext", "zext": "sext", "sitofp": "uitofp", "uitofp": "sitofp"},
    **{"true": "false", "false": "true", "min": "max", "max": "min", "smax": "smin"},
    **{"==": "!=", "!=": "==", "<": ">=", ">": "<=", "<=": ">", ">=": "<", "&&": "||"},
    **{
        "||": "&&",
        "+": "-",
        "-": "+",
        "*": "+",
        "/": "%",
        "%": "/",
        "&": "|",
        "|": "&",
    },
    **{"^": "|", "<<": ">>", ">>": "<<", "!": "", "~": ""},
}
_EDGES = {
    **{
        "slt": "sle",
        "sle": "slt",
        "sgt": "sge",
        "sge": "sgt",
        "ult": "ule",
        "ule": "ult",
    },
    **{
        "ugt": "uge",
        "uge": "ugt",
        "olt": "ole",
        "ole": "olt",
        "ogt": "oge",
        "oge": "ogt",
    },
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">"},
}


def _words(table: Mapping[str, str]) -> re.Pattern[str]:
    words = sorted(
        (re.escape(word) for word in table if word.isalpha()), key=len, reverse=True
    )
    signs = sorted(
        (re.escape(sign) for sign in table if not sign.isalpha()), key=len, reverse=True
    )
    alone = rf"(?<![\w.%@])(?:{'|'.join(words)})(?![\w.:])"
    return re.compile(rf"{alone}|(?<=[ )])(?:{'|'.join(signs)})(?= )|[!~](?=\()")


_PATTERNS: tuple[tuple[str, re.Pattern[str], Any], ...] = (
    ("operator flipped", _words(_FLIPPED), lambda match: _FLIPPED[match[0]]),
    ("comparison off by one", _words(_EDGES), lambda match: _EDGES[match[0]]),
    (
        "number shifted",
        re.compile(r"(?<![\w.%@}\"])\d+(?![\w.\"])"),
        lambda m: str(int(m[0]) + 1),
    ),
    ("condition dropped", re.compile(r"(?<=if )\((?=\{\{)"), lambda _: "(true || "),
)
_OPERAND = re.compile(r"(?:\{\{.*?\}\}|[\w.%@-])+")
_CONDITION = re.compile(r"br i1 (?P<c>(?:\{\{.*?\}\}|[\w.%-])+),")
_LABELS = re.compile(
    r"label (?P<a>\S*(?:\{\{.*?\}\}\S*)*), label (?P<b>\S*(?:\{\{.*?\}\}\S*)*)$"
)
_CHOICE = re.compile(r"\? (?P<a>[^?:]+) : (?P<b>[^?:;]+)")


def _exchanged_operands(line: str) -> Iterator[_Place]:
    """The last words before a comma, and before the next comma or the end."""
    if "{%" in line or "label" in line:
        return
    ends = [match.end() for match in re.finditer(r"[^,]+", line)]
    last = [_last_operand(line, end) for end in ends]
    for a, b in pairwise(last):
        if a and b and a[0] < a[1] <= b[0] and line[slice(*a)] != line[slice(*b)]:
            between = line[a[1] : b[0]]
            yield (
                "operands exchanged",
                a[0],
                b[1],
                line[slice(*b)] + between + line[slice(*a)],
            )


def _last_operand(line: str, end: int) -> tuple[int, int] | None:
    found = [match.span() for match in _OPERAND.finditer(line[:end])]
    return found[-1] if found else None


def _exchanged_branches(line: str) -> Iterator[_Place]:
    for pattern in (_LABELS, _CHOICE):
        for match in pattern.finditer(line):
            (a, b), text = (match.span("a"), match.span("b")), match.string
            other = text[b[0] : b[1]] + text[a[1] : b[0]] + text[a[0] : a[1]]
            yield "branches exchanged", a[0], b[1], other
    for match in _CONDITION.finditer(line):
        for constant in ("true", "false"):
            yield "condition dropped", *match.span("c"), constant


def _stands_alone(line: str) -> bool:
    """Whether it is a whole statement, whose value nothing after it needs."""
    text = re.sub(r"\{\{.*?\}\}", "x", line).strip()
    if "{%" in text or text.startswith(("br ", "ret ", "declare", "define", "@", "#")):
        return False
    return text.startswith(("store ", "call ")) or (
        text.endswith(";") and " = " not in text
    )


# Entries of tables.


def _table_edits(
    folder: str, file: str, table: Mapping[str, Any], way: tuple[str, ...]
) -> Iterator[SpellingEdit]:
    entries = list(table.items())
    for number, (key, value) in enumerate(entries):
        if isinstance(value, dict):
            yield from _table_edits(folder, file, value, (*way, key))
            continue
        for kind, other in _other_values(
            value, [v for _, v in entries[number + 1 :] + entries]
        ):
            change = f"{value!r}  ->  {other!r}"
            where = ".".join((*way, key))
            yield SpellingEdit(kind, folder, file, where, change, (*way, key), other)


def _other_values(value: Any, siblings: list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, int):
        yield "number shifted", value + 1
    if not isinstance(value, str) or "\n" in value:
        return
    different = [one for one in siblings if isinstance(one, str) and one != value]
    if different:
        yield "entry exchanged", different[0]
    for kind, table in (
        ("operator flipped", _FLIPPED),
        ("comparison off by one", _EDGES),
    ):
        *before, word = value.split(" ") if " " in value else ["", value]
        if table.get(word):
            yield kind, " ".join(filter(None, (*before, table[word])))

"""Mutation operators on an output language's templates and tables, one place each.

In macros, they change instructions, operators, operands, branches, conditions, lines and numbers.
In tables, they exchange, change and shift entries. Files are read, never written: an edit changes
the Spelling that this process has loaded, for good, so it must be applied in a child.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from refcomp.codegen.spelling import load_spelling, macros_of
from refcomp.foundation.resources import templates_dir

_MACRO = re.compile(
    r"{%-?\s*macro\s+(?P<name>\w+)\b.*?%}(?P<body>.*?){%-?\s*endmacro", re.DOTALL
)
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}")
_HOLE = re.compile(r"\{\{.*?\}\}")


class LineReplacement(NamedTuple):
    """A mutation operator at one place of a line."""

    operator: str
    begin: int  # of the replaced text
    end: int
    text: str  # that takes its place


@dataclass(frozen=True, slots=True)
class SpellingEdit:
    """A mutation operator at one place of a template or of a table."""

    operator: str
    folder: str  # in templates/
    file: str
    where: str  # the macro's name, or the path of keys of the table's entry
    change: str  # the text before and after
    keys: tuple[str, ...]  # of the table's entry; empty for a template
    value: str | int  # the whole text of the template, or the entry's other value

    def __str__(self) -> str:
        return f"{self.folder}/{self.file}, {self.where}: {self.change}"

    def apply(self, folders: tuple[str, ...]) -> None:
        """Change the loaded spelling of `folders`, for as long as this process lives."""
        spelling = load_spelling(*folders)
        if self.keys:
            *path, last = self.keys
            table = spelling.tables
            for key in path:
                table = table[key]
            table[last] = self.value
            return
        # Macros that a dialect's folder defines again replace those of this folder.
        overridden: set[str] = set()
        for folder in folders[folders.index(self.folder) + 1 :]:
            for _, text in _files(folder, "j2"):
                overridden |= macros_of(text).keys()
        for name, compile_macro in macros_of(str(self.value)).items():
            if name not in overridden:
                setattr(spelling.macros, name, _compiled_when_called(compile_macro))


def _compiled_when_called(
    compile_macro: Callable[[], Callable[..., str]],
) -> Callable[..., str]:
    compiled = cache(compile_macro)
    return lambda *args, **options: compiled()(*args, **options)


def spelling_edits(*folders: str) -> Iterator[SpellingEdit]:
    """Yield all edits of the files of these folders, in the order of the texts."""
    for folder in folders:
        for file, text in _files(folder, "j2"):
            yield from _macro_edits(folder, file, text)
        for file, text in _files(folder, "toml"):
            yield from table_edits(folder, file, tomllib.loads(text))


def _files(folder: str, ending: str) -> list[tuple[str, str]]:
    """Return the names and texts of the files with this ending."""
    paths = sorted((templates_dir() / folder).glob(f"*.{ending}"))
    return [(path.name, path.read_text(encoding="utf-8")) for path in paths]


def _macro_edits(folder: str, file: str, text: str) -> Iterator[SpellingEdit]:
    for macro in _MACRO.finditer(text):
        for match in re.finditer(r".+", macro["body"]):
            line = match[0]
            start = macro.start("body") + match.start()
            for found in replacements(line):
                changed = line[: found.begin] + found.text + line[found.end :]
                yield SpellingEdit(
                    operator=found.operator,
                    folder=folder,
                    file=file,
                    where=macro["name"],
                    change=f"{line.strip()}  ->  {changed.strip() or 'nothing'}",
                    keys=(),
                    value=text[:start] + changed + text[start + len(line) :],
                )


def replacements(line: str) -> Iterator[LineReplacement]:
    """Yield what each mutation operator replaces in one line of a macro."""
    tags = [match.span() for match in _TAG.finditer(line)]
    for operator, pattern, other in _PATTERNS:
        for match in pattern.finditer(line):
            if all(end <= match.start() or match.end() <= begin for begin, end in tags):
                yield LineReplacement(operator, *match.span(), other(match))
    yield from _exchanged_operands(line)
    for pattern in (_LABELS, _CHOICE):
        for match in pattern.finditer(line):
            between = line[match.end("a") : match.start("b")]
            text = match["b"] + between + match["a"]
            begin = match.start("a")
            yield LineReplacement("branches exchanged", begin, match.end("b"), text)
    for match in _CONDITION.finditer(line):
        for constant in ("true", "false"):
            yield LineReplacement("condition dropped", *match.span("c"), constant)
    if _is_unneeded(line):
        yield LineReplacement("line dropped", 0, len(line), "")


_FLIPPED = {
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "fadd": "fsub",
    "fsub": "fadd",
    "fmul": "fadd",
    "sdiv": "srem",
    "srem": "sdiv",
    "udiv": "urem",
    "urem": "udiv",
    "fdiv": "fmul",
    "and": "or",
    "or": "and",
    "xor": "or",
    "shl": "lshr",
    "lshr": "ashr",
    "ashr": "lshr",
    "eq": "ne",
    "ne": "eq",
    "slt": "sge",
    "sge": "slt",
    "sgt": "sle",
    "sle": "sgt",
    "ult": "uge",
    "uge": "ult",
    "ugt": "ule",
    "ule": "ugt",
    "uno": "ord",
    "oeq": "une",
    "une": "oeq",
    "olt": "oge",
    "oge": "olt",
    "ogt": "ole",
    "ole": "ogt",
    "sext": "zext",
    "zext": "sext",
    "sitofp": "uitofp",
    "uitofp": "sitofp",
    "true": "false",
    "false": "true",
    "min": "max",
    "max": "min",
    "smax": "smin",
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">": "<=",
    "<=": ">",
    ">=": "<",
    "&&": "||",
    "||": "&&",
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "%",
    "%": "/",
    "&": "|",
    "|": "&",
    "^": "|",
    "<<": ">>",
    ">>": "<<",
    "!": "",
    "~": "",
}
_OFF_BY_ONE = {
    "slt": "sle",
    "sle": "slt",
    "sgt": "sge",
    "sge": "sgt",
    "ult": "ule",
    "ule": "ult",
    "ugt": "uge",
    "uge": "ugt",
    "olt": "ole",
    "ole": "olt",
    "ogt": "oge",
    "oge": "ogt",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
}


def _words(table: Mapping[str, str]) -> re.Pattern[str]:
    """Return the pattern of the keys of `table`: whole words, and operators between spaces."""
    longest_first = sorted(table, key=len, reverse=True)
    words = "|".join(word for word in longest_first if word.isalpha())
    signs = "|".join(re.escape(sign) for sign in longest_first if not sign.isalpha())
    pattern = rf"(?<![\w.%@])(?:{words})(?![\w.:])|(?<=[ )])(?:{signs})(?= )"
    if "~" in table:
        pattern += r"|[!~](?=\()"
    return re.compile(pattern)


_NUMBER = re.compile(r"(?<![\w.%@}\"])\d+(?![\w.\"])")
_PATTERNS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    ("operator flipped", _words(_FLIPPED), lambda match: _FLIPPED[match[0]]),
    ("comparison off by one", _words(_OFF_BY_ONE), lambda match: _OFF_BY_ONE[match[0]]),
    ("number shifted", _NUMBER, lambda match: str(int(match[0]) + 1)),
    ("condition dropped", re.compile(r"(?<=if )\((?=\{\{)"), lambda _: "(true || "),
)
_OPERAND = re.compile(r"(?:\{\{.*?\}\}|[\w.%@-])+")
_CONDITION = re.compile(r"br i1 (?P<c>(?:\{\{.*?\}\}|[\w.%-])+),")
_LABELS = re.compile(
    r"label (?P<a>\S*(?:\{\{.*?\}\}\S*)*), label (?P<b>\S*(?:\{\{.*?\}\}\S*)*)$"
)
_CHOICE = re.compile(r"\? (?P<a>[^?:]+) : (?P<b>[^?:;]+)")


def _exchanged_operands(line: str) -> Iterator[LineReplacement]:
    """Yield the exchange of the words before a comma and before the next comma or the end."""
    if "{%" in line or "label" in line:
        return
    last_words = []
    for part in re.finditer(r"[^,]+", line):
        words = list(_OPERAND.finditer(line[: part.end()]))
        last_words.append(words[-1] if words else None)
    for a, b in pairwise(last_words):
        if a and b and a.start() < a.end() <= b.start() and a[0] != b[0]:
            text = b[0] + line[a.end() : b.start()] + a[0]
            yield LineReplacement("operands exchanged", a.start(), b.end(), text)


def _is_unneeded(line: str) -> bool:
    """Return True if the line is a whole statement, and no later one needs its value."""
    text = _HOLE.sub("x", line).strip()
    if "{%" in text or text.startswith(("br ", "ret ", "declare", "define", "@", "#")):
        return False
    if text.startswith(("store ", "call ")):
        return True
    return text.endswith(";") and " = " not in text


def table_edits(
    folder: str, file: str, table: Mapping[str, object], path: tuple[str, ...] = ()
) -> Iterator[SpellingEdit]:
    """Yield all edits of a table and its inner tables; `path` are the keys that lead to it."""
    values = list(table.values())
    for number, (key, value) in enumerate(table.items()):
        keys = (*path, key)
        if isinstance(value, dict):
            yield from table_edits(folder, file, value, keys)
            continue
        # An entry is exchanged with the next one that differs.
        siblings = values[number + 1 :] + values
        for operator, other in _other_values(value, siblings):
            yield SpellingEdit(
                operator=operator,
                folder=folder,
                file=file,
                where=".".join(keys),
                change=f"{value!r}  ->  {other!r}",
                keys=keys,
                value=other,
            )


def _other_values(
    value: object, siblings: Sequence[object]
) -> Iterator[tuple[str, str | int]]:
    if isinstance(value, int):
        yield "number shifted", value + 1
    if not isinstance(value, str) or "\n" in value:
        return
    for sibling in siblings:
        if isinstance(sibling, str) and sibling != value:
            yield "entry exchanged", sibling
            break
    *before, word = value.split(" ")
    if _FLIPPED.get(word):
        yield "operator flipped", " ".join([*before, _FLIPPED[word]])
    if word in _OFF_BY_ONE:
        yield "comparison off by one", " ".join([*before, _OFF_BY_ONE[word]])

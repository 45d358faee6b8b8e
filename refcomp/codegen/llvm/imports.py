"""LLVM IR of the user's own in a printed module: functions that C calls may name.

    define float @twice(float %x) #0 {    ->    define internal float @twice(float %x) #1000000 {

Needs texts that begin each `define`, `declare` and global on a line of its own, as LLVM prints
them. Ensures that what they define stays inside the module, that their numbered attributes and
metadata meet no others, and that each line is known by its number when a tool refuses it. Refuses
(UserError) what is made for another machine, a name that is taken, and calls that do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from refcomp.codegen.accumulator import Chunk
from refcomp.foundation.errors import UserError

_LINKAGE = (
    *(
        "private",
        "internal",
        "available_externally",
        "linkonce",
        "weak",
        "common",
        "linkonce_odr",
    ),
    *(
        "weak_odr",
        "external",
        "dso_local",
        "dso_preemptable",
        "default",
        "hidden",
        "protected",
    ),
)
_BEGIN = re.compile(r"define\b")
_DEFINE = re.compile(
    r"define\s+(?P<head>[^@]*)@(?P<name>[-\w.$]+)\((?P<rest>.*\).*\{.*)"
)
_DECLARE = re.compile(r"declare\s[^@]*@(?P<name>[-\w.$]+)\(")
_GLOBAL = re.compile(r"@(?P<name>[-\w.$]+)\s*=\s*(?P<rest>.*)$")
_TARGET = re.compile(r'target\s+(?P<what>triple|datalayout)\s*=\s*"(?P<value>[^"]*)"')
_NUMBERED = re.compile(r'"[^"]*"|;.*|([#!])(\d+)\b')
_CONVENTION = re.compile(r"\w+cc|cc")
_EXTENDED = ("signext", "zeroext")
_OTHER_ABI = (
    "byval",
    "byref",
    "sret",
    "inreg",
    "inalloca",
    "preallocated",
    "nest",
    "addrspace",
)
_APART = 1_000_000  # from one text's numbers to the next one's


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """What a call must fit: types as LLVM spells them, each with how it is extended."""

    name: str
    result: str
    params: tuple[str, ...]
    convention: str


def functions_in(text: str) -> dict[str, ImportedFunction]:
    """The functions that `text` defines; UserError where a definition cannot be read."""
    found: dict[str, ImportedFunction] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if _BEGIN.match(line):
            function = _function(line, number)
            found[function.name] = function
    return found


def _function(line: str, number: int) -> ImportedFunction:
    match = _DEFINE.match(line)
    if match is None:
        raise UserError(
            "a definition in the imported LLVM IR cannot be read",
            where=f"line {number}: {line.strip()}",
            remedy="write `define result @name(parameters) {` on one line, with a plain name",
        )
    words = match["head"].split()
    convention = next((w for w in words if _CONVENTION.fullmatch(w) and w != "ccc"), "")
    result = words[-1] if words else ""
    params = tuple(_passed(param) for param in _split(match["rest"]) if param.strip())
    return ImportedFunction(match["name"], result, params, convention)


def _split(params: str) -> list[str]:
    """The parameters, up to the bracket that ends them."""
    parts, depth = [""], 0
    for char in params:
        if char == ")" and depth == 0:
            break
        depth += (char in "(<{[") - (char in ")>}]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _passed(param: str) -> str:
    """The type of a parameter, with the words that say how it is passed."""
    words = re.findall(r"<[^>]*>|[^\s()]+", param)
    return " ".join(
        [words[0], *(w for w in words[1:] if w in (*_EXTENDED, *_OTHER_ABI))]
    )


def fitting_result(
    function: ImportedFunction, result: str, types: Sequence[str], *, is_dropped: bool
) -> str:
    """The type of the result of a call; UserError when the call does not fit the definition."""
    has, wants = function.result, result.split()[-1]
    fits = has == wants or (is_dropped and has == "void")
    same = len(types) == len(function.params) and all(
        map(_fits, types, function.params)
    )
    if fits and same and not function.convention:
        return has if has == "void" else result
    convention = f"{function.convention} " if function.convention else ""
    raise UserError(
        f"the call of {function.name} does not fit its definition in the imported LLVM IR",
        where=f"define {convention}{has} @{function.name}({', '.join(function.params)})",
        why=f"it is called as {wants} ({', '.join(types)})",
        remedy="convert the arguments with .astype(...), or define it with these types",
    )


def _fits(passed: str, param: str) -> bool:
    type_, *how = passed.split()
    taken, *needs = param.split() if not param.startswith("<") else (param,)
    return type_ == taken and set(needs) <= set(how)


def check_names(
    texts: Iterable[str], taken: Collection[str]
) -> dict[str, ImportedFunction]:
    """All functions that `texts` define; UserError for a name in `taken` or defined twice."""
    functions: dict[str, ImportedFunction] = {}
    for text in texts:
        for name, function in functions_in(text).items():
            if name in taken or name in functions:
                refuse_name(
                    name, "another function that is compiled with it has that name"
                )
            functions[name] = function
    return functions


def refuse_name(name: str, why: str) -> None:
    """Raises the UserError that the user's LLVM IR may not define `name`."""
    raise UserError(
        f"the imported LLVM IR may not define {name}",
        why=why,
        remedy="give it another name",
    )


def import_chunks(
    texts: Sequence[str], declared: Collection[str], triple: str, layout: str
) -> list[Chunk]:
    """The texts as they stand in a module where `declared` are declared or defined already."""
    known = {*declared, *(name for text in texts for name in functions_in(text))}
    chunks: list[Chunk] = []
    for place, text in enumerate(texts, 1):
        for number, line in enumerate(text.splitlines(), 1):
            _check_target(line, number, triple, layout)
            shown = _imported_line(line, place * _APART, known)
            came_from = f"line {number} of the imported LLVM IR: {line.strip()}"
            chunks.append(Chunk(shown + "\n", came_from))
    return chunks


def _check_target(line: str, number: int, triple: str, layout: str) -> None:
    match = _TARGET.match(line)
    if match is None:
        return
    # Vendors differ where nothing else does: x86_64-pc-linux-gnu, x86_64-unknown-linux-gnu.
    asked, here = match["value"], triple if match["what"] == "triple" else layout
    if asked == here or (match["what"] == "triple" and _parts(asked) == _parts(here)):
        return
    raise UserError(
        f"the imported LLVM IR is made for another machine: its {match['what']} is {asked}",
        where=f"line {number}",
        why=f"here it is {here}",
        remedy="leave the line out where the text fits any machine, or make it for this one",
    )


def _parts(triple: str) -> tuple[str, ...]:
    machine, _vendor, *rest = [*triple.split("-"), "", ""]
    return (machine, *rest)


def _imported_line(line: str, offset: int, known: set[str]) -> str:
    """The line with numbers of its own, inside the module; a comment where it says nothing new."""
    declares = _DECLARE.match(line)
    is_known = declares is not None and declares["name"] in known
    if is_known or _TARGET.match(line) or line.startswith("source_filename"):
        return f"; {line}"
    if declares is not None:
        known.add(declares["name"])
    line = _NUMBERED.sub(
        lambda m: f"{m[1]}{int(m[2]) + offset}" if m[1] is not None else m[0], line
    )
    return _internal(line)


def _internal(line: str) -> str:
    define, variable = _DEFINE.match(line), _GLOBAL.match(line)
    if define is not None:
        return f"define internal {_without_linkage(define['head'])}{line[define.end('head') :]}"
    is_outside = variable is None or variable["name"].startswith("llvm.")
    if (
        variable is None
        or is_outside
        or re.match(r"(external|extern_weak)\b", variable["rest"])
    ):
        return line
    return f"@{variable['name']} = internal {_without_linkage(variable['rest'])}"


def _without_linkage(text: str) -> str:
    while text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in _LINKAGE:
        text = text.lstrip()[len(text.split(maxsplit=1)[0]) :].lstrip()
    return text

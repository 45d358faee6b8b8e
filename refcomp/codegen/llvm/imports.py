"""Put LLVM IR of the user's own into a printed module: functions that calls of C functions name.

    define float @twice(float %x) #0 {    ->    define internal float @twice(float %x) #1000000 {

Needs texts that begin each `define`, `declare` and global on a line of its own, as LLVM prints
them. Ensures:

- Definitions stay inside the module.
- Numbered attributes and metadata do not clash with others.
- The line map has the number of each line, for the case that a tool refuses it.

Refuses (UserError) text for another machine, a name that is taken, and calls that do not fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from refcomp.codegen.accumulator import Chunk
from refcomp.foundation.errors import UserError
from refcomp.ir.func import PrimFunc

_LINKAGE = (
    "private",
    "internal",
    "available_externally",
    "linkonce",
    "weak",
    "common",
    "linkonce_odr",
    "weak_odr",
    "external",
    "dso_local",
    "dso_preemptable",
    "default",
    "hidden",
    "protected",
)
_BEGIN = re.compile(r"define\b")
_DEFINE = re.compile(
    r"define\s+(?P<head>[^@]*)@(?P<name>[-\w.$]+)\((?P<rest>.*\).*\{.*)"
)
_DECLARE = re.compile(r"declare\s[^@]*@(?P<name>[-\w.$]+)\(")
_GLOBAL = re.compile(r"@(?P<name>[-\w.$]+)\s*=\s*(?P<rest>.*)$")
_TARGET = re.compile(r'target\s+(?P<what>triple|datalayout)\s*=\s*"(?P<value>[^"]*)"')
_ALIAS = re.compile(
    r"@(?P<name>[-\w.$]+)\s*=\s*(?P<words>[\w ]*?)\b(?P<kind>alias|ifunc)\s+"
    r"(?P<result>[^(]*\S)\s*\((?P<params>.*\).*)"
)
_NUMBERED = re.compile(r'"[^"]*"|;.*|([#!])(\d+)\b')
_CONVENTION = re.compile(r"\w+cc|cc")
# Attributes of parameters that change how they are passed.
_PASSING = (
    "signext",
    "zeroext",
    "byval",
    "byref",
    "sret",
    "inreg",
    "inalloca",
    "preallocated",
    "nest",
    "addrspace",
)
_TEXT_OFFSET = 1_000_000  # between the numbers of one text and of the next


@dataclass(frozen=True, slots=True)
class ImportedFunction:
    """The signature of an imported function, which its calls must fit."""

    name: str
    result: str  # type, as LLVM spells it
    params: tuple[str, ...]  # types, each with the words that say how it is passed
    convention: str  # of the call; '' for C's own


def all_imports(funcs: Iterable[PrimFunc]) -> list[str]:
    """Return the texts that functions bring, each once."""
    return list(dict.fromkeys(text for func in funcs for text in func.imports))


def undefined_in(texts: Sequence[str]) -> set[str]:
    """Return the functions and variables of libraries that `texts` use.

    Names that begin with two underscores are the compiler's own, and are left out.
    """
    known = {name for text in texts for name in functions_in(text)}
    needed: set[str] = set()
    for text in texts:
        uses = Counter(re.findall(r"@([-\w.$]+)", text))
        for line in text.splitlines():
            declares = _DECLARE.match(line)
            variable = _GLOBAL.match(line)
            if variable is not None and not variable["rest"].startswith("extern"):
                known.add(variable["name"])
            elif (found := declares or variable) and uses[found["name"]] > 1:
                needed.add(found["name"])
    return {name for name in needed - known if not name.startswith(("llvm.", "__"))}


def functions_in(text: str) -> dict[str, ImportedFunction]:
    """Return the functions that `text` defines. Raise UserError if a definition cannot be read."""
    found: dict[str, ImportedFunction] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if _BEGIN.match(line):
            function = _function(line, number)
            found[function.name] = function
        elif alias := _ALIAS.match(line):
            function = _alias(alias)
            found[function.name] = function
    return found


def _alias(match: re.Match[str]) -> ImportedFunction:
    """Return a function that is another name of one. Refuse a choice made while loading."""
    name = match["name"]
    if match["kind"] == "ifunc":
        raise UserError(
            f"the imported LLVM IR chooses the code of {name} while it is loaded (ifunc)",
            why="the function stays inside of the module, where nothing loads it by name",
            remedy="leave out target_clones and ifunc, and choose inside of the function",
        )
    params = tuple(param.strip() for param in _split(match["params"]) if param.strip())
    return ImportedFunction(name, match["result"], params, "")


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
    """Return the parameters, up to the bracket that ends them."""
    parts = [""]
    depth = 0
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
    """Return the type of a parameter, with the words that say how it is passed."""
    type_, *words = re.findall(r"<[^>]*>|[^\s()]+", param)
    return " ".join([type_, *(word for word in words if word in _PASSING)])


def fitting_result(
    function: ImportedFunction, result: str, types: Sequence[str], *, is_dropped: bool
) -> str:
    """Return the type of a call's result. Raise UserError if the call does not fit `function`.

    Args:
        function: the definition.
        result: type that the call expects.
        types: of the call's arguments.
        is_dropped: the result is not used, so that the function may return nothing.
    """
    has = function.result
    wants = result.split()[-1]
    fits = has == wants or (is_dropped and has == "void")
    same_count = len(types) == len(function.params)
    fits = fits and same_count and all(map(_fits, types, function.params))
    if fits and not function.convention:
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
    """Return all functions that `texts` define.

    Raise UserError for a name that is in `taken` or is defined twice.
    """
    functions: dict[str, ImportedFunction] = {}
    for text in texts:
        for name, function in functions_in(text).items():
            if name in taken or name in functions:
                why = "another function that is compiled with it has that name"
                refuse_name(name, why)
            functions[name] = function
    return functions


def refuse_name(name: str, why: str) -> NoReturn:
    """Raise the UserError that the user's LLVM IR may not define `name`."""
    raise UserError(
        f"the imported LLVM IR may not define {name}",
        why=why,
        remedy="give it another name",
    )


def import_chunks(
    texts: Sequence[str], declared: Collection[str], triple: str, layout: str
) -> list[Chunk]:
    """Return the lines of `texts` for a module that declares or defines `declared` already."""
    known = set(declared)
    for text in texts:
        known |= functions_in(text).keys()
    chunks: list[Chunk] = []
    for place, text in enumerate(texts, 1):
        for number, line in enumerate(text.splitlines(), 1):
            _check_target(line, number, triple, layout)
            shown = _imported_line(line, place * _TEXT_OFFSET, known)
            came_from = f"line {number} of the imported LLVM IR: {line.strip()}"
            chunks.append(Chunk(shown + "\n", came_from))
    return chunks


def _check_target(line: str, number: int, triple: str, layout: str) -> None:
    match = _TARGET.match(line)
    if match is None:
        return
    # Vendors differ where nothing else does: x86_64-pc-linux-gnu, x86_64-unknown-linux-gnu.
    is_triple = match["what"] == "triple"
    asked = match["value"]
    here = triple if is_triple else layout
    if asked == here or (is_triple and _parts(asked) == _parts(here)):
        return
    raise UserError(
        f"the imported LLVM IR is made for another machine: its {match['what']} is {asked}",
        where=f"line {number}",
        why=f"here it is {here}",
        remedy="leave the line out where the text fits any machine, or make it for this one",
    )


def _parts(triple: str) -> tuple[str, ...]:
    """Return the parts of a triple without the vendor."""
    machine, _vendor, *rest = [*triple.split("-"), "", ""]
    return (machine, *rest)


def _imported_line(line: str, offset: int, known: set[str]) -> str:
    """Return the line with numbers of its own, or as a comment if the module has it already."""
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
    """Return a definition with internal linkage, and any other line as it is."""
    define = _DEFINE.match(line)
    if define is not None:
        rest = line[define.end("head") :]
        return f"define internal {_without_linkage(define['head'])}{rest}"
    variable = _GLOBAL.match(line)
    if variable is None or variable["name"].startswith("llvm."):
        return line
    if re.match(r"(external|extern_weak)\b", variable["rest"]):
        return line
    return f"@{variable['name']} = internal {_without_linkage(variable['rest'])}"


def _without_linkage(text: str) -> str:
    while words := text.split(maxsplit=1):
        if words[0] not in _LINKAGE:
            break
        text = text.lstrip()[len(words[0]) :].lstrip()
    return text

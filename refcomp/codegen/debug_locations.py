"""Add debug locations to LLVM IR: each instruction's line of the loop IR.

Debuggers and `llvm-objdump -l` show them. `link_lines` returns the same for the lines of the LLVM
IR, and the origins of the loop IR's lines. It takes CUDA C++ of `refcomp.codegen.cuda.module`,
too.

`add_debug_locations` needs LLVM IR as `refcomp.codegen.amdgpu.module` and
`refcomp.codegen.nvptx.module` print it. Instructions are indented, labels are not. A function
begins in a line of its own, whose origin is "func NAME". Ensures: each line keeps its number, and
computes the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from refcomp.codegen.line_map import LineMap
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func_with_lines

FILE = "kernels.ir"  # name of the loop IR's text
_INDENT = "  "
_OPENING = "{"
_NODE = re.compile(r"^!\d+ = ", re.MULTILINE)


def add_debug_locations(
    source: Source,
    kernels: Sequence[PrimFunc],
    dialect: str = "amdgpu",
    lines_before: int = 0,
) -> tuple[Source, str]:
    """Return `source` with a location in each instruction, and the text of the loop IR.

    Args:
        source: LLVM IR in the dialect `dialect`.
        kernels: those that `source` was printed from.
        dialect: the folder of its templates.
        lines_before: lines that stand before this text of the loop IR in the whole text.
    """
    assert isinstance(source.line_map, LineMap)
    loop_ir = _loop_ir_lines(kernels, lines_before)
    begins = loop_ir.begins
    first = len(_NODE.findall(source.text))
    metadata = _Metadata(begins, first, dialect)
    printed = source.text.split("\n")
    kernel = None
    for number, came_from in enumerate(source.line_map.came_from):
        text = printed[number]
        if came_from in begins and text.endswith(_OPENING):
            kernel = came_from
            printed[number] = text.removesuffix(_OPENING) + metadata.function(kernel)
        elif kernel is not None and text.startswith(_INDENT):
            line = loop_ir.lines.get(id(came_from), begins[kernel])
            printed[number] = text + metadata.location(line, kernel)
    return replace(source, text="\n".join(printed) + metadata.text()), loop_ir.text


def link_lines(source: Source, kernels: Sequence[PrimFunc]) -> str:
    """Return the lines of `source` and of the loop IR, linked, as JSON.

    - `kernels`: for each symbol the line of the loop IR that the kernel begins on.
    - `text`: for each line of `source` the line of the loop IR that it came from, 0 for none.
    - `origins`: for lines of the loop IR their stage, axis, primitive and the user's line.
    """
    loop_ir = _loop_ir_lines(kernels)
    result = {
        "kernels": {_symbol(name): line for name, line in loop_ir.begins.items()},
        "text": _linked(source, loop_ir),
        "origins": loop_ir.origins,
    }
    return json.dumps(result, separators=(",", ":"))


def lines_of_loop_ir(source: Source, kernels: Sequence[PrimFunc]) -> list[int]:
    """Return for each line of `source` the line of the loop IR that it came from, 0 for none."""
    return _linked(source, _loop_ir_lines(kernels))


def loop_ir_text(kernels: Sequence[PrimFunc]) -> str:
    """Return the text of the loop IR, whose lines locations name."""
    return _loop_ir_lines(kernels).text


def _symbol(came_from: object) -> str:
    """Return the symbol of the kernel for "func NAME"."""
    return machine_symbol(str(came_from).partition(" ")[2])


@dataclass(frozen=True, slots=True)
class _LoopIrLines:
    """The text of several kernels, and its line numbers, which begin at 1."""

    text: str
    lines: dict[int, int]  # id of a statement -> its line
    begins: dict[object, int]  # "func NAME" of a kernel -> the line it begins on
    origins: dict[int, tuple[str, ...]]  # line -> stage, axis, primitive, user's line


def _loop_ir_lines(kernels: Sequence[PrimFunc], offset: int = 0) -> _LoopIrLines:
    texts: list[str] = []
    lines: dict[int, int] = {}
    begins: dict[object, int] = {}
    origins: dict[int, tuple[str, ...]] = {}
    for kernel in kernels:
        text, statements = print_func_with_lines(kernel)
        begins[f"func {kernel.name}"] = offset + 1
        for line, stmt in statements.items():
            lines[id(stmt)] = offset + line
            if stmt.origin:
                origins[offset + line] = astuple(stmt.origin)
        texts.append(text)
        offset += text.count("\n") + 1  # an empty line between two
    return _LoopIrLines("\n".join(texts), lines, begins, origins)


def _linked(source: Source, loop_ir: _LoopIrLines) -> list[int]:
    assert isinstance(source.line_map, LineMap)
    linked: list[int] = []
    for came_from in source.line_map.came_from:
        if isinstance(came_from, str):
            linked.append(loop_ir.begins.get(came_from, 0))
        else:
            linked.append(loop_ir.lines.get(id(came_from), 0))
    return linked


class _Metadata:
    """The metadata nodes of locations, numbered in the order of their use."""

    def __init__(self, begins: dict[object, int], first: int, dialect: str) -> None:
        spelling = load_spelling("llvm", "llvm_kernels", dialect)
        self._say = spelling.macros
        self._begins = begins
        self._first = first  # number of the compile unit, behind the nodes of the text
        emission = spelling.tables["debug"]["emission"]
        unit = self._say.debug_unit(file=FILE, first=first, emission=emission)
        self._nodes = [unit]
        self._count = first + 4  # behind the nodes of the unit
        self._functions: dict[object, int] = {}
        self._suffixes: dict[tuple[int, object], str] = {}

    def function(self, kernel: object) -> str:
        """Return the end of the first line of `kernel`."""
        number = self._take()
        self._functions[kernel] = number
        node = self._say.debug_kernel(
            number=number,
            name=_symbol(kernel),
            line=self._begins[kernel],
            first=self._first,
        )
        self._nodes.append(node)
        return self._say.debug_function(number=number)

    def location(self, line: int, kernel: object) -> str:
        """Return the end of an instruction of `line`."""
        key = (line, kernel)
        if key not in self._suffixes:
            number = self._take()
            scope = self._functions[kernel]
            node = self._say.debug_line(number=number, line=line, kernel=scope)
            self._nodes.append(node)
            self._suffixes[key] = self._say.debug_location(number=number)
        return self._suffixes[key]

    def text(self) -> str:
        """Return all nodes."""
        return "".join(self._nodes)

    def _take(self) -> int:
        self._count += 1
        return self._count - 1

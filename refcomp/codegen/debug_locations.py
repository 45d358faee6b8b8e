"""Tells debuggers, and `llvm-objdump -l`, which line of the loop IR each instruction came from.

`link_lines` tells the same of the lines of the LLVM IR, and where the loop IR's lines came from.

Needs LLVM IR as `refcomp.codegen.amdgpu.module` prints it: instructions are indented, labels are
not, and functions begin in lines of their own that come from "func NAME". Ensures: each line stays
the line it was; what the lines compute stays the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from refcomp.codegen.line_map import LineMap
from refcomp.codegen.signature import machine_symbol
from refcomp.codegen.spelling import load_spelling
from refcomp.foundation.artifacts import Source
from refcomp.ir.func import PrimFunc
from refcomp.ir.printer import print_func_with_lines

FILE = "kernels.ir"  # whose lines are told
_INDENT, _OPENING = "  ", "{"


def add_debug_locations(
    source: Source, kernels: Sequence[PrimFunc]
) -> tuple[Source, str]:
    """`source`, printed of `kernels`, with a location in each instruction; and the loop IR whose
    lines these are."""
    assert isinstance(source.line_map, LineMap)
    loop_ir = _loop_ir_lines(kernels)
    begins = loop_ir.begins
    metadata = _Metadata(begins)
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
    """JSON: `kernels`, the line of the loop IR that each begins on, by symbol; `llvm`, for each
    line of `source` the line of the loop IR that it came from, 0 for none; `origins`, for lines of
    the loop IR their stage, axis, primitive and the user's line."""
    assert isinstance(source.line_map, LineMap)
    loop_ir = _loop_ir_lines(kernels)
    begins = loop_ir.begins
    lines = loop_ir.lines
    froms = source.line_map.came_from
    linked = [
        begins.get(it, 0) if isinstance(it, str) else lines.get(id(it), 0)
        for it in froms
    ]
    first = dict(zip(map(_symbol, begins), begins.values(), strict=True))
    told = {"kernels": first, "llvm": linked, "origins": loop_ir.origins}
    return json.dumps(told, separators=(",", ":"))


def _symbol(came_from: object) -> str:
    """The name in the machine code of the kernel that lines of its own tell."""
    return machine_symbol(str(came_from).partition(" ")[2])


@dataclass(frozen=True, slots=True)
class _LoopIrLines:
    """The text of several kernels, and its line numbers, which begin at 1."""

    text: str
    # id of a statement -> its line
    lines: dict[int, int]
    # "func NAME", where kernels begin in the printed text -> the line that the kernel begins on
    begins: dict[object, int]
    # line -> stage, axis, primitive and the user's line
    origins: dict[int, tuple[str, ...]]


def _loop_ir_lines(kernels: Sequence[PrimFunc]) -> _LoopIrLines:
    texts: list[str] = []
    lines: dict[int, int] = {}
    begins: dict[object, int] = {}
    origins: dict[int, tuple[str, ...]] = {}
    offset = 0
    for kernel in kernels:
        text, statements = print_func_with_lines(kernel)
        begins[f"func {kernel.name}"] = offset + 1
        lines |= {id(stmt): offset + line for line, stmt in statements.items()}
        for line, stmt in statements.items():
            if told := stmt.origin:
                origins[offset + line] = (
                    told.stage,
                    told.axis,
                    told.primitive,
                    told.line,
                )
        texts.append(text)
        offset += text.count("\n") + 1  # an empty line between two
    return _LoopIrLines("\n".join(texts), lines, begins, origins)


class _Metadata:
    """The nodes that locations are, numbered in the order of their use."""

    def __init__(self, begins: dict[object, int]) -> None:
        self._say: Any = load_spelling("llvm", "amdgpu").macros
        self._begins = begins
        self._nodes = [self._say.debug_unit(FILE, 0)]
        self._count = 4  # that the first text has
        self._functions: dict[object, int] = {}
        self._suffixes: dict[tuple[int, object], str] = {}

    def function(self, kernel: object) -> str:
        """What the first line of `kernel` ends with."""
        number = self._functions[kernel] = self._take()
        node = self._say.debug_kernel(number, _symbol(kernel), self._begins[kernel], 0)
        self._nodes.append(node)
        text: str = self._say.debug_function(number)
        return text

    def location(self, line: int, kernel: object) -> str:
        """What an instruction of `line` ends with."""
        key = line, kernel
        if key not in self._suffixes:
            number = self._take()
            self._nodes.append(
                self._say.debug_line(number, line, self._functions[kernel])
            )
            self._suffixes[key] = self._say.debug_location(number)
        return self._suffixes[key]

    def text(self) -> str:
        """All nodes."""
        return "".join(self._nodes)

    def _take(self) -> int:
        self._count += 1
        return self._count - 1

#!/usr/bin/env python3
"""Measure the density of Python code and print a table with a row for each room.

`measure_style.py [FOLDER ...]` prints one table for each folder (default: refcomp); the last row is
the whole folder. A *code line* holds a token that belongs to no docstring. Exit code: 0.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

LAYOUT = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COLUMNS = (
    "code lines|tokens a line|comments a 100|width p90|functions p50|p90|max|once|Any|parallel"
)


@dataclass
class Shape:
    """Counts over one file or, by `+`, over several."""

    code_lines: int = 0
    tokens: int = 0  # of code lines
    comments: int = 0  # lines that hold a comment
    widths: list[int] = field(default_factory=list)  # columns of each line that is not blank
    functions: list[int] = field(default_factory=list)  # lines of each, without its docstring
    called_once: int = 0  # private functions that their file names once
    any_types: int = 0  # uses of the name `Any`
    parallel: int = 0  # assignments of several values to several names, one value being a call

    def __add__(self, other: "Shape") -> "Shape":
        return Shape(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Shape)))

    @property
    def density(self) -> float:
        """Return the tokens per code line."""
        return self.tokens / max(self.code_lines, 1)

    @property
    def width(self) -> int:
        """Return the columns that 90 % of the lines do not exceed."""
        return quantile(self.widths, 0.9)

    def cells(self) -> list[str]:
        """Return the cells of a row, one for each of `COLUMNS`."""
        lengths = [quantile(self.functions, part) for part in (0.5, 0.9, 1)]
        per_hundred = 100 * self.comments / max(self.code_lines, 1)
        counts = [self.called_once, self.any_types, self.parallel]
        shape = [self.code_lines, f"{self.density:.1f}", f"{per_hundred:.1f}", self.width]
        return list(map(str, [*shape, *lengths, *counts]))


def quantile(values: list[int], part: float) -> int:
    """Return the value below which `part` (0 to 1) of `values` lie, 0 if there are none."""
    return sorted(values)[int(part * (len(values) - 1))] if values else 0


@cache  # `rooms` and `table` ask for the same files
def measure(text: str) -> Shape:
    """Return the shape of the text of one Python file."""
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {line for node in nodes for line in docstring_lines(node)}
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    code = [
        token
        for token in tokens
        if token.type not in (*LAYOUT, tokenize.COMMENT, tokenize.ENDMARKER)
        and token.start[0] not in docstrings
    ]
    uses = Counter(n.id for n in nodes if isinstance(n, ast.Name))
    uses.update(n.attr for n in nodes if isinstance(n, ast.Attribute))
    functions = [n for n in nodes if isinstance(n, FUNCTIONS)]
    return Shape(
        code_lines=len({line for t in code for line in range(t.start[0], t.end[0] + 1)}),
        tokens=len(code),
        comments=len(comments),
        widths=[len(line) for line in text.splitlines() if line.strip()],
        functions=list(map(function_length, functions)),
        called_once=sum(n.name[0] == "_" and uses[n.name] == 1 for n in functions),
        any_types=uses["Any"],
        parallel=sum(map(is_parallel_with_call, nodes)),
    )


def function_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function from `def` on, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    return lines - len(docstring_lines(function.body[0]))


def docstring_lines(node: ast.AST) -> range:
    """Return the numbers of the lines of a string that stands alone, as docstrings do."""
    match node:
        case ast.Expr(ast.Constant(str())):
            return range(node.lineno, node.end_lineno + 1)
    return range(0)


def is_parallel_with_call(node: ast.AST) -> bool:
    """Return True for `a, b = f(), x`."""
    match node:
        case ast.Assign([ast.Tuple()], ast.Tuple(values)):
            return any(isinstance(part, ast.Call) for v in values for part in ast.walk(v))
    return False


def rooms(folder: Path) -> dict[str, Shape]:
    """Return the shape of each subfolder of `folder` by name, and as `.` that of its own files."""
    shapes: dict[str, Shape] = {}
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder)
        name = place.parts[0] if len(place.parts) > 1 else "."
        shapes[name] = shapes.get(name, Shape()) + measure(path.read_text(encoding="utf-8"))
    return {name: shape for name, shape in shapes.items() if shape.code_lines}


def table(folder: Path) -> str:
    """Return the table of `folder` in Markdown."""
    shapes = rooms(folder)
    rows = [[folder.name, *COLUMNS.split("|")], ["---"] * 11]
    rows += [[name, *shape.cells()] for name, shape in shapes.items()]
    rows.append(["all", *sum(shapes.values(), Shape()).cells()])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    folders = sys.argv[1:] or [Path(__file__).resolve().parents[1] / "refcomp"]
    print("\n\n".join(table(Path(folder).resolve()) for folder in folders))

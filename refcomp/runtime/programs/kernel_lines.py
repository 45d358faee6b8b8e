"""Explanations of errors that name lines of the kernels' loop IR.

If an error contains

    ... made of kernels.ir:12 ...

it gets the line and its origin, from the texts that are kept with the code (`kernels` and `lines`):

    kernels.ir:12 is C@[t] = A@[t] + B@[t] (stage C)
      in for t in range(64) threadIdx.x { (stage C, axis i.inner, by bind, at vector_add.py:9)

So a program that runs kernels (an emulator, a debugger) need not know the compiler.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from refcomp.foundation.errors import RefcompError

_PLACE = re.compile(r"kernels\.ir:(\d+)")
_MAX_ENCLOSING = 3  # statements that are shown around a line
# Names of the source texts.
_KERNELS = "kernels"
_LINES = "lines"

Origin = Sequence[str]  # stage, axis, primitive, the user's line


def explain_lines(error: RefcompError, sources: Mapping[str, str]) -> None:
    """Add the statements of the lines that the error names to `error.why`.

    Does nothing if `sources` lack the texts.
    """
    text = f"{error.where or ''} {error.why or ''}"
    numbers = dict.fromkeys(int(match) for match in _PLACE.findall(text))
    if not numbers or not {_KERNELS, _LINES} <= set(sources):
        return
    lines = sources[_KERNELS].split("\n")
    found: dict[str, Origin] = json.loads(sources[_LINES])["origins"]
    origins = {int(number): origin for number, origin in found.items()}
    legend = [line for n in numbers for line in _explanation(n, lines, origins)]
    error.why = "\n    ".join([error.why or "", *legend]).lstrip()


def _explanation(
    number: int, lines: Sequence[str], origins: Mapping[int, Origin]
) -> Iterator[str]:
    if not 1 <= number <= len(lines):
        return
    yield f"kernels.ir:{number} is {_statement(number, lines, origins)}"
    # Only statements that a primitive made: the user knows the others.
    enclosing = [n for n in _enclosing(number, lines) if n in origins and origins[n][2]]
    for line in enclosing[:_MAX_ENCLOSING]:
        yield f"  in {_statement(line, lines, origins)}"


def _statement(number: int, lines: Sequence[str], origins: Mapping[int, Origin]) -> str:
    text = lines[number - 1].strip()
    if number not in origins:
        return text
    stage, axis, primitive, line = origins[number]
    parts = (("stage", stage), ("axis", axis), ("by", primitive), ("at", line))
    return f"{text} ({', '.join(f'{name} {value}' for name, value in parts if value)})"


def _enclosing(number: int, lines: Sequence[str]) -> Iterator[int]:
    """Yield the first lines of the enclosing statements, the innermost first."""
    depth = _indent(lines[number - 1])
    for line in range(number - 1, 0, -1):
        text = lines[line - 1]
        if text.strip() and _indent(text) < depth:
            depth = _indent(text)
            yield line


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())

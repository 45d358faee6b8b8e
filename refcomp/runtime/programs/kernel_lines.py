"""Errors that name lines of the kernels' loop IR, told with what stands there and what made it.

    ... made of kernels.ir:12 ...

gets, from the texts that are kept with the code (`kernels` and `lines`),

    kernels.ir:12 is C@[t] = A@[t] + B@[t] (stage C)
      in for t in range(64) threadIdx.x { (stage C, axis i.inner, by bind, at vector_add.py:9)

Whoever runs kernels without knowing the compiler (an emulator, a debugger) can so be understood.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from refcomp.foundation.errors import RefcompError

_PLACE = re.compile(r"kernels\.ir:(\d+)")
_MOST_AROUND = 3
_KERNELS, _LINES = "kernels", "lines"

Origin = Sequence[str]


def explain_lines(error: RefcompError, sources: Mapping[str, str]) -> None:
    """Adds to `error.why` the statements whose lines the error names; nothing where `sources` do
    not have them."""
    told = f"{error.where or ''} {error.why or ''}"
    numbers = dict.fromkeys(int(match) for match in _PLACE.findall(told))
    if not numbers or not {_KERNELS, _LINES} <= set(sources):
        return
    lines = sources[_KERNELS].split("\n")
    origins = {
        int(n): told for n, told in json.loads(sources[_LINES])["origins"].items()
    }
    legend = [text for n in numbers for text in _explained(n, lines, origins)]
    error.why = "\n    ".join([error.why or "", *legend]).lstrip()


def _explained(
    number: int, lines: Sequence[str], origins: Mapping[int, Origin]
) -> Iterator[str]:
    if not 1 <= number <= len(lines):
        return
    yield f"kernels.ir:{number} is {_statement(number, lines, origins)}"
    made = [n for n in _around(number, lines) if n in origins and origins[n][2]]
    for line in made[:_MOST_AROUND]:
        yield f"  in {_statement(line, lines, origins)}"


def _statement(number: int, lines: Sequence[str], origins: Mapping[int, Origin]) -> str:
    text = lines[number - 1].strip()
    if number not in origins:
        return text
    stage, axis, primitive, line = origins[number]
    parts = (("stage", stage), ("axis", axis), ("by", primitive), ("at", line))
    return f"{text} ({', '.join(f'{name} {value}' for name, value in parts if value)})"


def _around(number: int, lines: Sequence[str]) -> Iterator[int]:
    """The lines that open what a line stands in, the innermost first."""
    depth = _indent(lines[number - 1])
    for line in range(number - 1, 0, -1):
        text = lines[line - 1]
        if text.strip() and _indent(text) < depth:
            depth = _indent(text)
            yield line


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())

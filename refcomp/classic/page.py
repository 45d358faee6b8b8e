"""The page MIGRATION.md, made from the table of names, the refusals and the ported tutorials."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from refcomp.classic.programs import (
    ChangedMeaning,
    Refusal,
    Tutorial,
    TutorialStep,
    read_differences,
    read_refusals,
    read_tutorials,
)
from refcomp.classic.table import Area, ClassicName, read_areas

WIDTH = 110
_HEADING = """\
# From TVM 0.5, 0.6 or NNVM to refcomp

This page is for programs that were written for TVM 0.5, TVM 0.6 or NNVM (2017 to 2019). It lists
the public names of these systems. For each name it says what refcomp calls the same thing, or what
to write instead. Here `rc` stands for `import refcomp as rc`, and `np` for `import numpy as np`.
Tests look up all names, and run all programs of this page.

A program can keep its classic names, or change to those of refcomp.

**To keep the classic names**, change the imports:

| classic import | write |
| --- | --- |
| `import tvm` | `from refcomp import classic as tvm` |
| `import topi` | `from refcomp.classic import topi` |
| `import nnvm` or `import nnvm.compiler` | `from refcomp.classic import nnvm` |
| `from tvm.contrib import graph_runtime` | `from refcomp.classic.contrib import graph_runtime` |

Most classic names are then objects of refcomp. Some are functions that take the classic arguments,
and call functions of refcomp. Classes have their classic attributes, such as `ctx.device_id`. A
name whose meaning would differ does not exist. The error says what to write instead.

**To change to the names of refcomp**, write `import refcomp as rc`, and replace names as listed
below. An *unchanged* name stays the same behind `rc.`, as in `rc.compute` for `tvm.compute`.
"""
_TRANSLATED = """\
`refcomp.classic` has these names with their classic arguments. With `rc`, write:
"""
_NOT_ALIASES = """\
`refcomp.classic` does not have these names:
"""
_DIFFERENCES = """\
## The same names, another meaning

These differences change results, or what a program may do. `refcomp.classic` has them, too.
"""
_REFUSALS = """\
## What refcomp refuses

The classic system accepted each of these programs. refcomp refuses the last line of each with the
error that is shown. Below the error stands the wrong result or the crash that it prevents.
"""
_TUTORIALS = """\
## Tutorials side by side

The left column is a classic program, and the right column the same program for refcomp. The classic
program runs on `refcomp.classic`, once its imports are changed as at the top of this page.
"""
_ROW = """\
{text}

<table><tr><th>classic</th><th>refcomp</th></tr><tr><td>

```text
{classic}
```

</td><td>

```python
{refcomp}
```

</td></tr></table>
"""


def migration_page() -> str:
    """Return the page as Markdown."""
    sections = [_HEADING, "## Names\n"]
    sections += [block for area in read_areas() for block in _area(area)]
    sections.append(_DIFFERENCES)
    sections += [block for one in read_differences() for block in _difference(one)]
    sections.append(_REFUSALS)
    sections += [block for refusal in read_refusals() for block in _refusal(refusal)]
    sections.append(_TUTORIALS)
    sections += [block for one in read_tutorials() for block in _tutorial(one)]
    return "\n".join(sections)


def _area(area: Area) -> Iterator[str]:
    yield f"### {area.title}\n"
    for paragraph in filter(None, area.text.split("\n\n")):
        yield _wrapped(paragraph)
    same = [entry for entry in area.names if _is_same(entry)]
    if same:
        listed = ", ".join(f"`{entry.name}`" for entry in same)
        yield _wrapped(f"Unchanged: {listed}.")
    positional = [e for e in area.names if e.is_translated and not e.note]
    if positional:
        listed = ", ".join(f"`{entry.name}`" for entry in positional)
        yield _wrapped(
            f"Unchanged, but `rc.topi` takes attributes by keyword: {listed}."
        )
    listed_above = [*same, *positional]
    renamed = [e for e in area.names if not e.note and e not in listed_above]
    if renamed:
        yield _table(renamed)
    translated = [e for e in area.names if e.is_translated and e.note]
    if translated:
        bullets = [_bullet(f"`{entry.name}`: {entry.note}") for entry in translated]
        yield "\n".join([_TRANSLATED, *bullets]) + "\n"
        yield _NOT_ALIASES
    notes = [e for e in area.names if e.note and not e.is_translated]
    if notes:
        yield "\n".join(_bullet(_note(entry)) for entry in notes) + "\n"


def _is_same(entry: ClassicName) -> bool:
    name = entry.name.removeprefix("tvm.").removeprefix("nnvm.")
    return entry.target == name and not entry.note


def _table(entries: Sequence[ClassicName]) -> str:
    rows = [
        f"| `{entry.name}` | `{'' if entry.is_method else 'rc.'}{entry.target}` |"
        for entry in entries
    ]
    return "\n".join(["| classic name | in refcomp |", "| --- | --- |", *rows]) + "\n"


def _note(entry: ClassicName) -> str:
    if entry.target == entry.name:  # a method
        return f"`{entry.name}`: {entry.note}"
    if entry.target:
        return f"`{entry.name}`: see `rc.{entry.target}`. {entry.note}"
    return f"`{entry.name}` is absent: {entry.note}"


def _difference(difference: ChangedMeaning) -> Iterator[str]:
    yield _wrapped(difference.text)
    yield f"```python\n{difference.program.strip()}\n```\n"


def _refusal(refusal: Refusal) -> Iterator[str]:
    yield f"### {refusal.title}\n"
    yield f"```python\n{refusal.program.strip()}\n```\n"
    parts = [
        f"{refusal.error}: {refusal.what}",
        f"  why: {refusal.why}" if refusal.why else "",
        f"  what to do: {refusal.remedy}" if refusal.remedy else "",
    ]
    lines = [_hanging(part, "    ") for part in parts if part]
    yield "\n".join(["```text", *lines, "```\n"])
    yield _wrapped(f"This prevents {refusal.prevents}")


def _tutorial(tutorial: Tutorial) -> Iterator[str]:
    yield f"### {tutorial.title}\n"
    yield _wrapped(tutorial.text)
    yield from map(_row, tutorial.steps)


def _row(step: TutorialStep) -> str:
    return _ROW.format(
        text=_wrapped(step.text).strip(),
        classic=step.classic.strip(),
        refcomp=step.refcomp.strip(),
    )


def _wrapped(text: str) -> str:
    words = " ".join(text.split())
    return textwrap.fill(words, WIDTH, break_on_hyphens=False) + "\n"


def _bullet(text: str) -> str:
    return _hanging(f"- {' '.join(text.split())}", "  ")


def _hanging(text: str, indent: str) -> str:
    """Return the lines of a paragraph whose later lines are indented."""
    return textwrap.fill(
        text,
        WIDTH,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )

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

refcomp has the words and rules of the classic tensor-expression system. This page says what each
of its public names is here, or what to write instead and why. `rc` is `import refcomp as rc`. A
test holds this page against refcomp.

`from refcomp import classic as tvm` gives a program the classic names: `tvm.nd.array`,
`tvm.target.create`, `tvm.topi.nn.relu`, `tvm.nnvm.sym.conv2d`. Most of them are objects of refcomp,
which this page names. Some are functions that take the classic arguments, and call refcomp's own.
Classes get their classic attributes, such as `ctx.device_id`. A name whose meaning would differ is
left out, and its error says what to write instead.
"""
_TRANSLATED = """\
`refcomp.classic` has these with their classic arguments. In refcomp, write:
"""
_DIFFERENCES = """\
## The same names, another meaning

The programs run as tests. `np` is `import numpy as np`.
"""
_REFUSALS = """\
## What refcomp refuses

The classic system accepted each of these programs. Each stands with refcomp's message and with the
wrong answer or the crash that it prevents. All of them run as tests.
"""
_TUTORIALS = """\
## Tutorials side by side

The steps of each column are one program, which runs as a test. The classic one runs with
`from refcomp import classic as tvm` in the place of `import tvm`.
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
    if area.text:
        yield _wrapped(area.text)
    same = [entry for entry in area.names if _is_same(entry)]
    if same:
        listed = ", ".join(f"`{entry.name}`" for entry in same)
        yield _wrapped(f"As before: {listed}.")
    positional = [e for e in area.names if e.is_translated and not e.note]
    if positional:
        listed = ", ".join(f"`{entry.name}`" for entry in positional)
        yield _wrapped(f"As before, but refcomp takes attributes by keyword: {listed}.")
    listed_above = [*same, *positional]
    renamed = [e for e in area.names if not e.note and e not in listed_above]
    if renamed:
        yield _table(renamed)
    translated = [e for e in area.names if e.is_translated and e.note]
    if translated:
        bullets = [_bullet(f"`{entry.name}`: {entry.note}") for entry in translated]
        yield "\n".join([_TRANSLATED, *bullets]) + "\n"
        yield "Not in `refcomp.classic`:\n"
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

"""The page MIGRATION.md, made from the table of names, the refusals and the ported tutorials."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from refcomp.classic.table import Area, ClassicName, read_areas

WIDTH = 110
_HEADING = """\
# From TVM 0.5, 0.6 or NNVM to refcomp

refcomp has the words and rules of the classic tensor-expression system. This page says what each
of its public names is here, or what to write instead and why. `rc` is `import refcomp as rc`. A
test holds this page against refcomp.

`from refcomp import classic as tvm` gives a program the classic names: `tvm.nd.array`,
`tvm.target.create`, `tvm.topi.nn.relu`, `tvm.nnvm.sym.conv2d`. Each is the object of refcomp that
this page names. A name whose meaning would differ is left out, and its error says what to write
instead.
"""


def migration_page() -> str:
    """Return the page as Markdown."""
    sections = [_HEADING, "## Names\n"]
    sections += [block for area in read_areas() for block in _area(area)]
    return "\n".join(sections)


def _area(area: Area) -> Iterator[str]:
    yield f"### {area.title}\n"
    if area.text:
        yield _wrapped(area.text)
    same = [entry for entry in area.names if _is_same(entry)]
    if same:
        listed = ", ".join(f"`{entry.name}`" for entry in same)
        yield _wrapped(f"As before: {listed}.")
    renamed = [e for e in area.names if not e.note and e not in same]
    if renamed:
        yield _table(renamed)
    notes = [entry for entry in area.names if entry.note]
    if notes:
        yield "\n".join(_bullet(_note(entry)) for entry in notes) + "\n"


def _is_same(entry: ClassicName) -> bool:
    name = entry.name.removeprefix("tvm.").removeprefix("nnvm.")
    return entry.target == name and not entry.note


def _table(entries: Sequence[ClassicName]) -> str:
    rows = [f"| `{entry.name}` | `rc.{entry.target}` |" for entry in entries]
    return "\n".join(["| classic name | in refcomp |", "| --- | --- |", *rows]) + "\n"


def _note(entry: ClassicName) -> str:
    if entry.target:
        return f"`{entry.name}`: see `rc.{entry.target}`. {entry.note}"
    return f"`{entry.name}` is absent: {entry.note}"


def _wrapped(text: str) -> str:
    words = " ".join(text.split())
    return textwrap.fill(words, WIDTH, break_on_hyphens=False) + "\n"


def _bullet(text: str) -> str:
    return textwrap.fill(
        f"- {' '.join(text.split())}",
        WIDTH,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )

"""A profile as tables for a terminal, or for a file.

What is exact stands first; each estimate is called one. Names come from code objects and users:
nothing in them is taken for markup or for commands to the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from refcomp.profile.report import ProfileReport
from refcomp.profile.tables import (
    KERNEL,
    WORDS,
    Table,
    classes_table,
    estimate_table,
    global_table,
    kernels_table,
    lines_table,
    shared_table,
)

_MOST_ROWS = 12
_USUAL_WIDTH = 100


def reports_to_text(reports: Sequence[ProfileReport], width: int = _USUAL_WIDTH) -> str:
    """All kernels of a run: each by itself, and at the end side by side where there are several."""
    whole = "\n".join(report_to_text(report, width) for report in reports)
    if len(reports) < 2:
        return whole
    return (
        whole
        + "\n"
        + _printed(_table(kernels_table(reports), width, len(reports) + 1), width)
    )


def report_to_text(report: ProfileReport, width: int = _USUAL_WIDTH) -> str:
    """All of a report, in lines of `width` columns."""
    return _printed(_parts(report, width), width)


def _printed(parts: Iterable[Any], width: int) -> str:
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)

    file = StringIO()
    console = Console(
        file=file, width=width, markup=False, highlight=False, emoji=False
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _parts(report: ProfileReport, width: int) -> Iterator[Any]:
    yield f"{_head(report)}\n"
    yield from _table(classes_table(report), width)
    yield from _inner_loop(report)
    for table in (lines_table(report), global_table(report), shared_table(report)):
        yield from _table(table, width)
    yield from _resources(report)
    if estimate := estimate_table(report):
        yield from _table(estimate, width)
    yield _advice(report)


def printable(text: str) -> str:
    """`text` without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _head(report: ProfileReport) -> str:
    counts = report.counts
    launches = "1 launch" if counts.launches == 1 else f"{counts.launches} launches"
    return printable(
        f"kernel {counts.name} on {counts.mcpu}: {launches}, {counts.groups} groups, "
        f"{counts.waves} waves of {counts.wave_lanes}; {counts.fmas} multiply-adds; "
        f"{counts.active_lanes:.1%} of the lanes active; {counts.read} bytes of memory read, "
        f"{counts.written} written, {report.efficiency:.0%} of what was moved asked for"
    )


def _inner_loop(report: ProfileReport) -> Iterator[str]:
    if inner := report.counts.inner_loop():
        told = ", ".join(f"{count} {kind}" for kind, count in inner.items())
        yield f"what ran most often, the inner loop if there is one: {told}"
        if report.counts.fmas:
            yield f"{report.useful_part:.0%} of its vector instructions multiply and add"
        yield ""


def _table(table: Table, width: int, most: int = _MOST_ROWS) -> Iterator[Any]:
    """The title, the first rows, and how many more there are; nothing of a table without rows."""
    if not table.rows:
        return
    yield printable(table.title)
    yield _grid(table, width, most)
    if len(table.rows) > most:
        yield f"and {len(table.rows) - most} more, which the page has\n"


def _grid(table: Table, width: int, most: int) -> Any:
    from rich.box import SIMPLE  # noqa: PLC0415  (as above)
    from rich.table import Table as Grid  # noqa: PLC0415

    grid, columns = Grid(box=SIMPLE, pad_edge=False), table.columns
    cells = [[printable(str(cell)) for cell in row.cells] for row in table.rows[:most]]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numbers = sum(
        w + 3 for w, name in zip(widths, columns, strict=True) if name not in WORDS
    )
    for name in columns:
        justify: Any = "left" if name in WORDS else "right"
        grid.add_column(name, justify=justify, no_wrap=True)
    for row in cells:
        # Numbers are never cut, words are.
        pairs = zip(columns, row, strict=True)
        grid.add_row(
            *(_cut(c, width - 8 - numbers, n) if n in WORDS else c for n, c in pairs)
        )
    return grid


def _cut(text: str, room: int, column: str) -> str:
    """To `room` characters; names of kernels differ at their ends."""
    kept = max(room - 3, 0)
    behind = kept // 2 if column == KERNEL else 0
    end = text[len(text) - behind :]
    return text if len(text) <= room else f"{text[: kept - behind]}...{end}"


def _resources(report: ProfileReport) -> Iterator[str]:
    if taken := report.resources:
        sums = f" ({taken.agprs} of them accumulators)" if taken.agprs else ""
        spilled = (
            f", {taken.spilled_vgprs} spilled to memory" if taken.spilled_vgprs else ""
        )
        moved = (
            f", {taken.spilled_sgprs} spilled to lanes" if taken.spilled_sgprs else ""
        )
        yield (
            f"registers: {taken.vgprs} of a lane{sums}{spilled}, {taken.sgprs} of a wave{moved}; "
            f"{taken.shared_bytes} bytes of LDS; estimate: waves of a SIMD at a time: "
            f"{taken.waves}, limited by {taken.limit}\n"
        )


def _advice(report: ProfileReport) -> str:
    if not report.advice:
        return "nothing to advise"
    found = ["what to change in the schedule:"]
    for advice in report.advice:
        text = report.listing.loop_ir(advice.line) if advice.line else ""
        where = f"\n  at line {advice.line}: {text}" if text else ""
        found.append(printable(f"- {advice.what}"))
        found += [printable(where.strip("\n"))] if where else []
        found.append(printable(f"  what to do: {advice.remedy}"))
    return "\n".join(found)

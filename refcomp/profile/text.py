"""A profile as tables for a terminal, or for a file.

What is exact stands first; each estimate is called one. Names come from code objects and users:
nothing in them is taken for markup or for commands to the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

from refcomp.emulator.profile import InstructionCounts
from refcomp.profile.listing import LOOP_IR
from refcomp.profile.report import Report

_MOST_ROWS = 12
_USUAL_WIDTH = 100
_TEXTS = ("class", "text", "global access", "shared access", "by", " ")
Row = Sequence[object]


def report_to_text(report: Report, width: int = _USUAL_WIDTH) -> str:
    """All of a report, in lines of `width` columns."""
    from rich.console import Console  # noqa: PLC0415  (40 ms that a pipe does not pay)

    file = StringIO()
    console = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    for part in _parts(report, width):
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _parts(report: Report, width: int) -> Iterator[Any]:
    yield _head(report)
    yield "\ninstructions of waves, by class"
    yield _table(("class", "count", "part"), _classes(report), width)
    if inner := report.counts.inner_loop():
        told = ", ".join(f"{count} {kind}" for kind, count in inner.items())
        yield f"what ran most often, the inner loop if there is one: {told}"
        if report.counts.fmas:
            yield f"{report.useful_part:.0%} of its vector instructions multiply and add"
        yield ""
    if rows := list(_lines(report)):
        yield "by line"
        yield _table(("line", "count", "part", "text"), rows, width)
    columns: Sequence[str] = (
        "global access",
        "waves",
        "bytes",
        "transactions",
        "needed",
        "efficiency",
    )
    if rows := list(_global(report)):
        yield f"global memory, segments of {report.counts.segment} bytes"
        yield _table(columns, rows, width)
    columns = ("shared access", "waves", "bytes", "clocks", "conflicts")
    if rows := list(_shared(report)):
        yield "shared memory (LDS), clocks by a model of 32 banks of 4 bytes"
        yield _table(columns, rows, width)
    yield from _estimate(report, width)
    yield _advice(report)


def printable(text: str) -> str:
    """`text` without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _head(report: Report) -> str:
    counts = report.counts
    launches = "1 launch" if counts.launches == 1 else f"{counts.launches} launches"
    return printable(
        f"kernel {counts.name} on {counts.mcpu}: {launches}, {counts.groups} groups, "
        f"{counts.waves} waves of {counts.wave_lanes}; {counts.fmas} multiply-adds; "
        f"{counts.active_lanes:.1%} of the lanes active; {counts.read} bytes of memory read, "
        f"{counts.written} written, {report.efficiency:.0%} of what was moved asked for"
    )


def _table(columns: Sequence[str], rows: Sequence[Row], width: int) -> Any:
    from rich.box import SIMPLE  # noqa: PLC0415  (as above)
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=SIMPLE, pad_edge=False)
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    room = (
        width
        - 8
        - sum(w + 3 for w, name in zip(widths, columns, strict=True) if name not in _TEXTS)
    )
    for name in columns:
        justify: Any = "left" if name in _TEXTS else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in cells:
        # Numbers are never cut, texts are.
        table.add_row(
            *(_cut(c, room) if name in _TEXTS else c for name, c in zip(columns, row, strict=True))
        )
    return table


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 3, 0)]}..."


def _classes(report: Report) -> list[Row]:
    whole = sum(count for _, count in report.classes())
    return [(kind, count, f"{count / whole:.1%}") for kind, count in report.classes()]


def _lines(report: Report) -> Iterator[Row]:
    """Lines of the loop IR; where that is not known, of what the code object names."""
    by_line = report.by_line() if report.listing.texts[LOOP_IR] else report.counts.by_source()
    whole = sum(by_line.values()) or 1
    for line, count in sorted(by_line.items(), key=lambda item: -item[1])[:_MOST_ROWS]:
        text = report.listing.loop_ir(line) if isinstance(line, int) else line
        number = line if isinstance(line, int) and line else ""
        yield number, count, f"{count / whole:.1%}", text or "(not known)"


def _most(rows: list[InstructionCounts]) -> list[InstructionCounts]:
    return sorted(rows, key=lambda one: -one.waves)[:_MOST_ROWS]


def _global(report: Report) -> Iterator[Row]:
    for one in _most(list(report.counts.accesses("global"))):
        access = one.access
        if access is not None:
            moved = access.transactions * report.counts.segment
            efficiency = f"{access.bytes / moved:.0%}" if moved else ""
            costs = access.bytes, access.transactions, access.least, efficiency
            yield one.instruction.text, one.waves, *costs


def _shared(report: Report) -> Iterator[Row]:
    for one in _most(list(report.counts.accesses("shared"))):
        if one.access is not None:
            costs = one.access.bytes, one.access.clocks, one.access.conflicts
            yield one.instruction.text, one.waves, *costs


def _estimate(report: Report, width: int) -> Iterator[Any]:
    if taken := report.resources:
        yield (
            f"registers: {taken.vgprs} of a lane, {taken.sgprs} of a wave; {taken.shared_bytes} "
            f"bytes of LDS; estimate: {taken.waves} waves a SIMD at a time, limited by "
            f"{taken.limit}"
        )
    if bound := report.bound:
        rows = [
            (name, f"{1e6 * seconds:.2f}", "the limit" if name == bound.limit else "")
            for name, seconds in bound.seconds.items()
        ]
        yield f"estimate for one launch on {bound.card.name}, not a time that was measured"
        yield _table(("by", "microseconds at least", " "), rows, width)


def _advice(report: Report) -> str:
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

"""The tables of a profile, as rows: what text.py prints, and page.py shows.

Rows come with the one that costs most first, but for classes and limits, which have an order. What
is estimated stands in tables whose title says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refcomp.emulator.observers.counting import InstructionCounts
from refcomp.profile.listing import LOOP_IR, loop_line
from refcomp.profile.report import ProfileReport

KERNEL = "kernel"
# Columns of words; all others hold numbers.
WORDS = frozenset(
    {"class", "text", "global access", "shared access", "by", KERNEL, " "}
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[object, ...]
    line: int = 0  # of the loop IR; 0 where none is known
    kernel: int = 0  # counted from 1; 0 where the row is not about one kernel
    bar: float = 0.0  # in a bar chart, its length relative to the longest bar


@dataclass(frozen=True, slots=True)
class Table:
    """Each row has as many cells as there are columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def classes_table(report: ProfileReport) -> Table:
    """Instructions of waves by class."""
    whole = sum(count for _, count in report.classes())
    most = max((count for _, count in report.classes()), default=0) or 1
    rows = [
        Row((kind, count, _part(count, whole)), bar=count / most)
        for kind, count in report.classes()
    ]
    return Table(
        "instructions of waves, by class", ("class", "count", "part"), tuple(rows)
    )


def lines_table(report: ProfileReport) -> Table:
    """Lines of the loop IR; where that is not known, of what the code object names."""
    by_line = (
        report.by_line() if report.listing.texts[LOOP_IR] else report.counts.by_source()
    )
    whole = sum(by_line.values())
    rows = []
    for line, count in sorted(by_line.items(), key=lambda item: -item[1]):
        number = line if isinstance(line, int) else 0
        text = (
            report.listing.loop_ir(number) if number else "" if line == 0 else str(line)
        )
        cells = _number(number), count, _part(count, whole), text or "(not known)"
        rows.append(Row(cells, number))
    return Table("by line", ("line", "count", "part", "text"), tuple(rows))


def global_table(report: ProfileReport) -> Table:
    """What the accesses to global memory cost."""
    rows = []
    for one in _most_first(report.counts.accesses("global")):
        access, line = one.access, loop_line(one)
        if access is not None:
            moved = access.transactions * report.counts.segment
            efficiency = f"{access.bytes / moved:.0%}" if moved else ""
            costs = access.bytes, access.transactions, access.least, efficiency
            rows.append(
                Row((_number(line), one.instruction.text, one.waves, *costs), line)
            )
    columns = (
        "line",
        "global access",
        "waves",
        "bytes",
        "transactions",
        "needed",
        "efficiency",
    )
    title = f"global memory, segments of {report.counts.segment} bytes"
    return Table(title, columns, tuple(rows))


def shared_table(report: ProfileReport) -> Table:
    """What the accesses to shared memory cost."""
    rows = []
    for one in _most_first(report.counts.accesses("shared")):
        access, line = one.access, loop_line(one)
        if access is not None:
            costs = access.bytes, access.clocks, access.conflicts
            rows.append(
                Row((_number(line), one.instruction.text, one.waves, *costs), line)
            )
    columns = "line", "shared access", "waves", "bytes", "clocks", "conflicts"
    title = "shared memory (LDS), clocks by a model of 32 banks of 4 bytes"
    return Table(title, columns, tuple(rows))


def estimate_table(report: ProfileReport) -> Table | None:
    """By each of the limits how long one launch takes at least; None where no card is known."""
    bound = report.bound
    if bound is None:
        return None
    most = bound.seconds[bound.limit] or 1.0
    rows = [
        Row(
            (name, f"{1e6 * seconds:.2f}", "the limit" if name == bound.limit else ""),
            bar=seconds / most,
        )
        for name, seconds in bound.seconds.items()
    ]
    title = (
        f"estimate for one launch on {bound.card.name}, not a time that was measured"
    )
    return Table(title, ("by", "microseconds at least", " "), tuple(rows))


def kernels_table(reports: Sequence[ProfileReport]) -> Table:
    """All kernels, and their sum: by the estimate if each has one, else by what they ran."""
    is_timed = all(report.bound for report in reports)
    costs = [_microseconds(one) if is_timed else _instructions(one) for one in reports]
    parts = [_part(cost, sum(costs)) for cost in costs]
    order = sorted(range(len(reports)), key=lambda n: -costs[n])
    rows = [Row(_kernel_cells(reports[n], parts[n]), kernel=n + 1) for n in order]
    launches = sum(report.counts.launches for report in reports)
    sums = (
        sum(map(_instructions, reports)),
        sum(report.counts.fmas for report in reports),
    )
    time = f"{sum(costs):.2f}" if is_timed else ""
    rows.append(Row(("all", launches, *sums, time, _part(1, 1), "")))
    columns = (
        KERNEL,
        "launches",
        "instructions",
        "multiply-adds",
        "microseconds",
        "part",
        "limit",
    )
    title = (
        "kernels, all launches; microseconds at least by an estimate, none was measured"
    )
    return Table(title if is_timed else "kernels, all launches", columns, tuple(rows))


def _kernel_cells(report: ProfileReport, part: str) -> tuple[object, ...]:
    counts, bound = report.counts, report.bound
    done = counts.launches, _instructions(report), counts.fmas
    time = f"{_microseconds(report):.2f}" if bound else ""
    return counts.name, *done, time, part, bound.limit if bound else ""


def _microseconds(report: ProfileReport) -> float:
    """Of all launches, an estimate."""
    bound = report.bound
    return 1e6 * bound.seconds[bound.limit] * report.counts.launches if bound else 0.0


def _instructions(report: ProfileReport) -> int:
    return sum(one.waves for one in report.counts.instructions)


def _number(line: int) -> str:
    return str(line) if line else ""


def _part(count: float, whole: float) -> str:
    return f"{count / whole:.1%}" if whole else ""


def _most_first(rows: Iterator[InstructionCounts]) -> list[InstructionCounts]:
    return sorted(rows, key=lambda one: -one.waves)

"""The tables of a profile as rows, which text.py prints and page.py shows.

The row with the highest cost comes first. Only classes and limits have a fixed order. A table of
estimates says so in its title.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refcomp.emulator.observers.counting import InstructionCounts
from refcomp.profile.listing import LOOP_IR, loop_line
from refcomp.profile.report import ProfileReport

KERNEL = "kernel"
LAYER = "layer"
_NOT_KNOWN = "(not known)"
# The columns that hold words. All others hold numbers.
WORDS = frozenset(
    {"class", "text", "global access", "shared access", "by", KERNEL, LAYER, " "}
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[object, ...]
    line: int = 0  # the line of the loop IR; 0 if it is not known
    kernel: int = (
        0  # the number of the kernel, from 1 on; 0 if the row is about several
    )
    bar: float = 0.0  # the length in a bar chart, relative to the longest bar


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a profile."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]  # each row has a cell for each column


def classes_table(report: ProfileReport) -> Table:
    """Return the instructions of waves by class."""
    classes = report.classes()
    whole = sum(count for _, count in classes)
    maximum = max((count for _, count in classes), default=0) or 1
    rows = [
        Row((kind, count, _part(count, whole)), bar=count / maximum)
        for kind, count in classes
    ]
    title = f"instructions of {report.counts.isa.words.wave}s, by class"
    return Table(title, ("class", "count", "part"), tuple(rows))


def lines_table(report: ProfileReport) -> Table:
    """Return the instructions of waves by line of the loop IR.

    Without loop IR, return them by line of the source files that the code object names.
    """
    rows = []
    if report.listing.texts[LOOP_IR]:
        whole = sum(report.by_line().values())
        for line, count in report.by_line().items():
            text = report.listing.loop_ir(line) or _NOT_KNOWN
            cells = (_number(line), count, _part(count, whole), text)
            rows.append(Row(cells, line))
    else:
        by_source = report.counts.by_source()
        whole = sum(by_source.values())
        for source, count in sorted(by_source.items(), key=lambda item: -item[1]):
            cells = ("", count, _part(count, whole), source or _NOT_KNOWN)
            rows.append(Row(cells))
    return Table("by line", ("line", "count", "part", "text"), tuple(rows))


def global_table(report: ProfileReport) -> Table:
    """Return the costs of the accesses to global memory."""
    rows = []
    for one in _by_waves(report.counts.accesses("global")):
        access = one.access
        if access is not None:
            moved = access.transactions * report.counts.segment
            efficiency = f"{access.bytes / moved:.0%}" if moved else ""
            each = f"{access.transactions / access.waves:.1f}" if access.waves else ""
            costs = (access.bytes, access.transactions, each, access.least, efficiency)
            rows.append(_access_row(one, costs))
    words = report.counts.isa.words
    columns = (
        f"{words.wave}s",
        "bytes",
        f"{words.transaction}s",
        "a request",
        "needed",
    )
    title = f"global memory, {words.segment}s of {report.counts.segment} bytes"
    names = ("line", "global access", *columns, "efficiency")
    return Table(title, names, tuple(rows))


def shared_table(report: ProfileReport) -> Table:
    """Return the costs of the accesses to shared memory."""
    rows = []
    for one in _by_waves(report.counts.accesses("shared")):
        access = one.access
        if access is not None:
            costs = (access.bytes, access.clocks, access.conflicts)
            rows.append(_access_row(one, costs))
    words = report.counts.isa.words
    waves = f"{words.wave}s"
    columns = ("line", "shared access", waves, "bytes", "clocks", "conflicts")
    title = f"{words.shared}, clocks by a model of 32 banks of 4 bytes"
    return Table(title, columns, tuple(rows))


def _access_row(one: InstructionCounts, costs: tuple[object, ...]) -> Row:
    line = loop_line(one)
    return Row((_number(line), one.instruction.text, one.waves, *costs), line)


def estimate_table(report: ProfileReport) -> Table | None:
    """Return the least time of one launch by each resource; None if no card is known."""
    bound = report.bound
    if bound is None:
        return None
    longest = bound.seconds[bound.limit] or 1.0
    rows = []
    for name, seconds in bound.seconds.items():
        mark = "the limit" if name == bound.limit else ""
        cells = (name, f"{1e6 * seconds:.2f}", mark)
        rows.append(Row(cells, bar=seconds / longest))
    card = bound.card.name
    title = f"estimate for one launch on {card}, not a time that was measured"
    return Table(title, ("by", "microseconds at least", " "), tuple(rows))


def kernels_table(reports: Sequence[ProfileReport]) -> Table:
    """Return all kernels and their sum.

    Kernels are ordered by the estimate if each has one, else by the number of instructions.
    """
    is_timed = all(report.bound for report in reports)
    costs = [_microseconds(r) if is_timed else _instructions(r) for r in reports]
    whole = sum(costs)
    rows = []
    for number in sorted(range(len(reports)), key=lambda n: -costs[n]):
        report = reports[number]
        counts = report.counts
        bound = report.bound
        cells = (
            counts.name,
            counts.launches,
            _instructions(report),
            counts.fmas,
            f"{_microseconds(report):.2f}" if bound else "",
            _part(costs[number], whole),
            bound.limit if bound else "",
        )
        rows.append(Row(cells, kernel=number + 1))
    total = (
        "all",
        sum(report.counts.launches for report in reports),
        sum(map(_instructions, reports)),
        sum(report.counts.fmas for report in reports),
        f"{whole:.2f}" if is_timed else "",
        _part(1, 1),
        "",
    )
    rows.append(Row(total))
    columns = ("launches", "instructions", "multiply-adds", "microseconds", "part")
    title = "kernels, all launches"
    if is_timed:
        title += "; microseconds at least by an estimate, none was measured"
    return Table(title, (KERNEL, *columns, "limit"), tuple(rows))


def _microseconds(report: ProfileReport) -> float:
    """Return the estimate for all launches, 0 if there is none."""
    bound = report.bound
    return 1e6 * bound.seconds[bound.limit] * report.counts.launches if bound else 0.0


def _instructions(report: ProfileReport) -> int:
    return sum(one.waves for one in report.counts.instructions)


def _number(line: int) -> str:
    return str(line) if line else ""


def _part(count: float, whole: float) -> str:
    return f"{count / whole:.1%}" if whole else ""


def _by_waves(rows: Iterator[InstructionCounts]) -> list[InstructionCounts]:
    return sorted(rows, key=lambda one: -one.waves)

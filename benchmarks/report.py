"""The results of benchmarks as rows: one table to look at, and one JSON to keep.

A row has a time of refcomp, a peer's time from the same rounds where this makes sense, and the bar
that the row must meet. Ratios are refcomp's time over the peer's: below 1 refcomp is faster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.markup import escape
from rich.table import Table

from benchmarks.measure import Figure, figure_of, ratio_of

FORMAT = 1
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass(frozen=True, slots=True)
class Bar:
    """The most that may be: of refcomp's own figure, or of its ratio to the peer's."""

    at_most: float
    of: Literal["ours", "ratio"] = "ours"


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one call, for a rate: 2.0 and "Gflop" give Gflop/s."""

    amount: float
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `unit` is "s", or "" for a bare number; `note` says what the case leaves open."""

    workload: str
    case: str
    ours: Figure
    peer: str = ""
    theirs: Figure | None = None
    ratio: Figure | None = None
    work: Work | None = None
    bar: Bar | None = None
    unit: Literal["s", ""] = "s"
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Return True if the row meets its bar, or has none."""
        if self.bar is None:
            return True
        held = self.ours if self.bar.of == "ours" else self.ratio
        return held is not None and held.median <= self.bar.at_most


@dataclass(frozen=True, slots=True)
class Missing:
    """A workload that could not run, and why, in one line: its bars count as missed."""

    workload: str
    why: str
    details: str = ""


def row_beside(
    workload: str,
    case: str,
    ours: Sequence[float],
    peer: str,
    theirs: Sequence[float],
    *,
    work: Work | None = None,
    bar: Bar | None = None,
    unit: Literal["s", ""] = "s",
    note: str = "",
) -> Row:
    """Return the row of samples that were taken in the same rounds."""
    return Row(
        workload,
        case,
        figure_of(ours),
        peer,
        figure_of(theirs),
        ratio_of(ours, theirs),
        work=work,
        bar=bar,
        unit=unit,
        note=note,
    )


def table_of(rows: Sequence[Row | Missing]) -> Table:
    """Return the table of all rows. Missed bars are marked."""
    table = Table(caption="ratio: refcomp / peer; spread: the middle half of the rounds")
    for heading in ("workload", "case"):
        table.add_column(heading, overflow="fold")
    for heading in ("refcomp", "spread", "rate", "peer", "ratio", "spread", "bar"):
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        if isinstance(row, Missing):
            table.add_row(
                row.workload, f"not measured: {escape(row.why)}", *[""] * 6, "[red]missed[/]"
            )
        else:
            table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    theirs = "" if row.theirs is None else f"{row.peer} {_quantity(row.theirs.median, row.unit)}"
    ratio, spread = "", ""
    if row.ratio is not None:
        ratio = f"{row.ratio.median:.2f}"
        spread = f"{row.ratio.low:.2f} - {row.ratio.high:.2f}"
    return [
        row.workload,
        row.case,
        _quantity(row.ours.median, row.unit),
        f"{_quantity(row.ours.low, row.unit)} - {_quantity(row.ours.high, row.unit)}",
        "" if row.work is None else f"{row.work.amount / row.ours.median:.1f} {row.work.unit}/s",
        theirs,
        ratio,
        spread,
        _bar_cell(row),
    ]


def _bar_cell(row: Row) -> str:
    if row.bar is None:
        return ""
    is_time = row.bar.of == "ours" and row.unit == "s"
    limit = _quantity(row.bar.at_most, "s") if is_time else f"{row.bar.at_most:g}"
    sort = "ratio " if row.bar.of == "ratio" else ""
    verdict = "[green]met[/]" if row.is_met else "[red]missed[/]"
    return f"{sort}<= {limit} {verdict}"


def _quantity(value: float, unit: str) -> str:
    if not unit:
        return f"{value:.2f}"
    scale, name = next((pair for pair in _SCALES if abs(value) >= pair[0] * 0.9995), _SCALES[-1])
    return f"{value / scale:.3g} {name}"


def row_of(fields: Mapping[str, Any]) -> Row:
    """Return the Row whose fields `dataclasses.asdict` gave, for rows of another process."""
    made = dict(fields)
    for name in ("ours", "theirs", "ratio"):
        made[name] = made[name] and Figure(**made[name])
    made["work"] = made["work"] and Work(**made["work"])
    made["bar"] = made["bar"] and Bar(**made["bar"])
    return Row(**made)


def as_json(
    rows: Sequence[Row | Missing],
    machine: dict[str, Any],
    is_quick: bool,
    details: Mapping[str, Any] | None = None,
) -> str:
    """Return the results as text: the machine, then seconds and ratios, one object a row.

    `details` are entries of the whole file that only some benchmarks have.
    """
    measured = [asdict(row) | {"is_met": row.is_met} for row in rows if isinstance(row, Row)]
    lacking = [{"workload": r.workload, "why": r.why} for r in rows if isinstance(r, Missing)]
    results = {
        "format": FORMAT,
        "quick": is_quick,
        "machine": machine,
        "rows": measured,
        "missing": lacking,
        **(details or {}),
    }
    return json.dumps(results, indent=1) + "\n"


def write_json(path: Path, text: str) -> None:
    """Write the results, making the folder where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def is_kept(rows: Sequence[Row | Missing]) -> bool:
    """Return True if every bar is met and every workload was measured."""
    return all(isinstance(row, Row) and row.is_met for row in rows)

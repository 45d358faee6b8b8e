"""The report of `refcomp judge` for a reader: a table with a row for each array.

On a terminal the table has lines and is as wide as that; elsewhere it is plain text in columns.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from refcomp.cli.digest import number_to_text
from refcomp.cli.outcomes import printable
from refcomp.cli.streams import is_terminal

COLUMNS = (
    "array",
    "elements",
    "wrong",
    "error / bound",
    "undecidable",
    "first wrong",
    "found",
    "expected",
    "allowed",
)


def write_report(report: Mapping[str, Any]) -> None:
    """Write the report that `refcomp.cli.judge.judge` returns to stdout."""
    rows = [row_of(result) for result in report["results"]]
    click.echo(f"verdict: {report['verdict']}")
    if is_terminal(sys.stdout):
        _write_grid(rows)
    else:
        click.echo(columns_to_text([COLUMNS, *rows]))
    for line in remarks(report):
        click.echo(line)


def row_of(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one array; `-` where there is nothing to say."""
    worst, wrong = result["worst"], result["first_wrong"]
    element: tuple[str, ...] = ("-",) * 4
    if wrong is not None:
        values = _told_apart(wrong["found"], wrong["expected"])
        element = (str(wrong["index"]), *values, _short(wrong["bound"]))
    return (
        printable(result["name"]),
        str(result["elements"]),
        str(result["wrong"]),
        "-" if worst is None else _short(worst["error_over_bound"]),
        str(result["undecidable"]),
        *element,
    )


def remarks(report: Mapping[str, Any]) -> list[str]:
    """Return the lines below the table: sizes, why elements are undecidable, and the suspects."""
    lines = []
    if report["sizes"]:
        sizes = ", ".join(f"{name} = {size}" for name, size in report["sizes"].items())
        lines.append(f"sizes: {sizes}")
    lines += [
        f"{result['name']}: {result['why']}"
        for result in report["results"]
        if result["why"]
    ]
    lines += [f"suspect: {suspect}" for suspect in report["suspects"]]
    return [printable(line) for line in lines]


def _told_apart(found: Any, expected: Any) -> tuple[str, str]:
    """Two numbers that differ, with all digits if a few do not show it."""
    few = number_to_text(found), number_to_text(expected)
    return few if few[0] != few[1] else (str(found), str(expected))


def _short(number: Any) -> str:
    return f"{number:.3g}" if isinstance(number, int | float) else str(number)


def columns_to_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines of columns: the first one to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [
            cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)
        ]
        lines.append("  ".join(cells))
    return "\n".join(lines)


def _write_grid(rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE  # noqa: PLC0415  (40 ms that a pipe does not pay)
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = Table(box=SIMPLE, pad_edge=False)
    for number, name in enumerate(COLUMNS):
        grid.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        style = "bold red" if row[COLUMNS.index("wrong")] != "0" else ""
        grid.add_row(*map(Text, row), style=style)
    Console().print(grid)

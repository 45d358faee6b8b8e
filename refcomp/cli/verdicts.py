"""The report of `refcomp judge`, and its table for a reader.

A terminal shows a grid, as wide as the terminal. Otherwise the table is plain text in columns.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypedDict

import click

from refcomp.cli.digest import JsonNumber, number_to_text
from refcomp.cli.outcomes import printable
from refcomp.cli.streams import is_terminal


class ElementReport(TypedDict):
    """One element of a judged array."""

    index: list[int]
    verdict: str
    found: JsonNumber
    expected: JsonNumber
    bound: JsonNumber  # greatest absolute error that is allowed
    error_over_bound: JsonNumber
    # How much the computation amplifies relative errors of its inputs.
    condition: JsonNumber


class ArrayReport(TypedDict):
    """One judged array."""

    name: str
    verdict: str  # the worst verdict of an element
    elements: int  # the number of elements
    exact: int  # elements with this verdict, as the next three
    within_bound: int
    undecidable: int
    wrong: int
    worst: ElementReport | None  # None if all elements are exact
    first_wrong: ElementReport | None  # in row-major order
    why: str  # why elements are undecidable or wrong; may be empty
    summary: str


class JudgeReport(TypedDict):
    """The report of `refcomp judge`, as JSON."""

    verdict: str  # the worst verdict of an array
    sizes: dict[str, int]  # symbol -> size in elements
    results: list[ArrayReport]
    suspects: list[str]  # operations, at least one of which is wrong


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


def write_report(report: JudgeReport) -> None:
    """Write the report to stdout."""
    rows = [row_of(result) for result in report["results"]]
    click.echo(f"verdict: {report['verdict']}")
    if is_terminal(sys.stdout):
        _write_grid(rows)
    else:
        click.echo(columns_to_text([COLUMNS, *rows]))
    for line in remarks(report):
        click.echo(line)


def row_of(result: ArrayReport) -> tuple[str, ...]:
    """Return the cells of one array; `-` for a cell that does not apply."""
    worst = result["worst"]
    wrong = result["first_wrong"]
    element: tuple[str, ...] = ("-",) * 4
    if wrong is not None:
        found = number_to_text(wrong["found"])
        expected = number_to_text(wrong["expected"])
        if found == expected:  # six digits do not show the difference
            found = str(wrong["found"])
            expected = str(wrong["expected"])
        element = (str(wrong["index"]), found, expected, _short(wrong["bound"]))
    return (
        printable(result["name"]),
        str(result["elements"]),
        str(result["wrong"]),
        "-" if worst is None else _short(worst["error_over_bound"]),
        str(result["undecidable"]),
        *element,
    )


def remarks(report: JudgeReport) -> list[str]:
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


def _short(number: JsonNumber) -> str:
    return f"{number:.3g}" if isinstance(number, int | float) else number


def columns_to_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns: the first is aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        for cell, width in zip(others, widths[1:], strict=True):
            cells.append(cell.rjust(width))
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
        # As Text: names are not rich's markup.
        grid.add_row(*map(Text, row), style=style)
    Console().print(grid)

"""The page that lists for each operator how it is differentiated (`refcomp/graph/GRADIENTS.md`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from refcomp.graph.gradients.table import (
    Differentiability,
    DifferentiabilityEntry,
    differentiability,
)
from refcomp.topi.sources import OPERATOR_HOMES

_HEADING = """\
# Gradients of operators

`rc.graph.gradient` differentiates graphs. For each operator of `refcomp.topi`, this page says how:

- **rule**: written in operators of graphs (`refcomp/graph/gradients/rules`). In cases that the rule
  does not cover, `vjp` takes its place.
- **vjp**: the operator `vjp`, whose te is `te.gradient` of the operator's compute.
- **zero**: the gradient is 0 wherever it exists.
- **none**: refused, with the reason below. An operator without inputs of floats is never asked.

Tests compare the gradients of all operators with central differences in f64
(`tests/graph/gradients/test_table.py`), and those of more than 100 operators with PyTorch
(`tests/graph/gradients/generate_torch_cases.py`). A test holds this file against the table.
"""


def to_markdown() -> str:
    """Return the page."""
    entries = {name: differentiability(name) for name in OPERATOR_HOMES}
    kinds = [entry.kind for entry in entries.values()]
    counts = "\n".join(
        f"| {kind} | {kinds.count(kind)} |" for kind in Differentiability
    )
    blocks = [
        _HEADING,
        f"| kind | operators |\n| --- | --- |\n{counts}\n",
        f"## By family\n\n{_families(entries)}\n",
        f"## Reasons\n\n{_reasons(entries)}\n",
    ]
    return "\n".join(blocks)


def _families(entries: dict[str, DifferentiabilityEntry]) -> str:
    lines = [
        "| family | rule | vjp | zero | none |",
        "| --- | --- | --- | --- | --- |",
    ]
    for family, members in groupby(entries, _family):
        names = list(members)
        cells = [
            _spelled([name for name in names if entries[name].kind is kind])
            for kind in Differentiability
        ]
        lines.append(f"| {family} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _family(operator: str) -> str:
    module = OPERATOR_HOMES[operator].removeprefix("refcomp.topi.")
    return module.partition(".")[0]


def _reasons(entries: dict[str, DifferentiabilityEntry]) -> str:
    lines = ["| kind | reason | operators |", "| --- | --- | --- |"]
    rows: dict[DifferentiabilityEntry, list[str]] = {}
    for name, entry in entries.items():
        if entry.reason:
            rows.setdefault(entry, []).append(name)
    for entry, names in sorted(rows.items(), key=lambda row: row[0].kind, reverse=True):
        lines.append(f"| {entry.kind} | {entry.reason} | {_spelled(names)} |")
    return "\n".join(lines)


def _spelled(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)

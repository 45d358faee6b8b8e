"""The inventory of operators: what each takes and does, as its declaration and its page say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby

from refcomp.topi.operator import Operator, find_operator
from refcomp.topi.sources import OPERATOR_HOMES

_ROOM = "refcomp.topi"
_HEADING = """\
# Operators

Each operator of `refcomp.topi`, with its inputs and attributes. Those in brackets may be left out,
and `...` follows an input that may be repeated. `help(rc.topi.NAME)` or `refcomp operators NAME`
shows the manual page. A test holds this file against the registry.
"""


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """One operator of topi.

    Attributes:
        name: its name.
        family: the folder below `refcomp/topi` that holds it, such as `elementwise`.
        inputs: its inputs; an optional one in brackets, a repeated one followed by `...`.
        attributes: its attributes; one with a default in brackets.
        summary: the first sentence of its page.
    """

    name: str
    family: str
    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    summary: str


def inventory() -> list[InventoryEntry]:
    """Return all operators of topi, by family."""
    found = []
    for name, module in OPERATOR_HOMES.items():
        operator = find_operator(name)
        attributes = [
            spec.name if spec.required else f"[{spec.name}]"
            for spec in operator.attributes
        ]
        found.append(
            InventoryEntry(
                name=name,
                family=module.removeprefix(f"{_ROOM}.").partition(".")[0],
                inputs=_inputs(operator),
                attributes=tuple(attributes),
                summary=_first_sentence(page_of(name)),
            )
        )
    return found


def page_of(name: str) -> str:
    """Return the manual page of an operator.

    Raises:
        UserError: the operator is unknown. The remedy lists all, or the nearest.
    """
    return inspect.getdoc(find_operator(name).compute) or ""


def to_markdown(entries: Sequence[InventoryEntry]) -> str:
    """Return the operators as a page with a table for each family."""
    blocks = [_HEADING]
    for family, members in groupby(entries, lambda entry: entry.family):
        title = (import_module(f"{_ROOM}.{family}").__doc__ or "").splitlines()[0]
        rows = [
            f"| `{entry.name}` | {_text(entry.inputs)} | {_text(entry.attributes)} "
            f"| {entry.summary.replace('|', chr(92) + '|')} |"
            for entry in members
        ]
        blocks.append(f"## {family}: {title}\n")
        blocks.append(
            "| operator | inputs | attributes | meaning |\n| --- | --- | --- | --- |"
        )
        blocks.append("\n".join(rows) + "\n")
    return "\n".join(blocks)


def _inputs(operator: Operator) -> tuple[str, ...]:
    shown = [
        name if place < operator.least_inputs else f"[{name}]"
        for place, name in enumerate(operator.inputs)
    ]
    if operator.variadic:
        shown[-1] += "..."
    return tuple(shown)


def _first_sentence(page: str) -> str:
    paragraph = " ".join(page.partition("\n\n")[0].split())
    # An ellipsis, as in "0, 1, ... n", ends no sentence.
    sentence = re.split(r"(?<!\.)\.(?: |$)", paragraph, maxsplit=1)[0]
    return f"{sentence}."


def _text(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)

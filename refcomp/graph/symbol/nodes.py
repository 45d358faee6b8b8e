"""Nodes of symbols: variables and applications of classic operators, and their order.

Nodes are immutable and may be shared by many symbols. A walk never recurses: a network may have a
million layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.operator import Attributes, SymbolOperator


class SymbolEntry(NamedTuple):
    """An output of a node."""

    node: SymbolNode
    output: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SymbolNode:
    """A variable, or an application of a classic operator.

    Attributes:
        name: the name of the node.
        operator: the operator; None for a variable.
        inputs: what the operator reads.
        attributes: the attributes of the operator, all of them.
        notes: other attributes as texts, such as `__shape__` of a variable.
    """

    name: str
    operator: SymbolOperator | None = None
    inputs: tuple[SymbolEntry, ...] = ()
    attributes: Attributes = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def output_count(self) -> int:
        """Return the number of outputs that other nodes may read."""
        if self.operator is None:
            return 1
        return self.operator.count_outputs(self.attributes)

    @property
    def place(self) -> str:
        """Return the node in words, for messages."""
        name = self.name if len(self.name) <= 60 else f"{self.name[:60]}..."
        kind = "variable" if self.operator is None else f"{self.operator.name} node"
        return f"{kind} {name!r}"


def ordered_nodes(entries: Iterable[SymbolEntry]) -> list[SymbolNode]:
    """Return all nodes that entries depend on, each after its inputs, depth first."""
    ordered: dict[SymbolNode, None] = {}
    for entry in entries:
        stack = [(entry.node, iter(entry.node.inputs))]
        opened = {entry.node}
        while stack:
            node, rest = stack[-1]
            if node in ordered:
                stack.pop()
                continue
            below = next((e.node for e in rest if e.node not in ordered), None)
            if below is None:
                ordered[node] = None
                stack.pop()
            elif below not in opened:
                opened.add(below)
                stack.append((below, iter(below.inputs)))
    return list(ordered)


def variables_of(entries: Iterable[SymbolEntry]) -> list[SymbolNode]:
    """Return the variables that entries depend on, in order.

    Raises:
        UserError: two variables have one name.
    """
    variables = [node for node in ordered_nodes(entries) if node.operator is None]
    names: set[str] = set()
    for variable in variables:
        if variable.name in names:
            raise UserError(
                f"two variables are named {variable.name!r}",
                remedy="rename one of them, or use one variable in both places",
            )
        names.add(variable.name)
    return variables


def substituted(
    entries: Iterable[SymbolEntry],
    change: Callable[[SymbolNode], SymbolEntry | SymbolNode],
) -> tuple[SymbolEntry, ...]:
    """Return entries in which each node is replaced. Nodes that stay the same are shared.

    Args:
        entries: the outputs.
        change: returns an entry for a variable, and a node for another node. It receives the node
            with its new inputs.
    """
    listed = tuple(entries)
    made: dict[SymbolNode, SymbolEntry | SymbolNode] = {}

    def mapped(entry: SymbolEntry) -> SymbolEntry:
        found = made[entry.node]
        if isinstance(found, SymbolEntry):
            return found
        return SymbolEntry(found, entry.output)

    for node in ordered_nodes(listed):
        inputs = tuple(map(mapped, node.inputs))
        moved = node if inputs == node.inputs else replace(node, inputs=inputs)
        made[node] = change(moved)
    return tuple(map(mapped, listed))

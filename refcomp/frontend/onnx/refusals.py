"""The features of a model that refcomp lacks, collected for one error that lists all."""

from __future__ import annotations

from collections import defaultdict

from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

_SHOWN = 3  # names of nodes for each reason


class Refusals:
    """The nodes of a model that cannot be converted, by operator and reason."""

    def __init__(self) -> None:
        # (operator, reason) -> names of nodes
        self._nodes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, operator: str, reason: str, node: str) -> None:
        """Note that a node of `operator` cannot be converted, because of `reason`."""
        self._nodes[operator, reason].append(node)

    @property
    def count(self) -> int:
        """Return the number of nodes noted so far."""
        return sum(map(len, self._nodes.values()))

    def raise_any(self) -> None:
        """Raise Unsupported that lists all reasons, the most frequent operator first."""
        if not self._nodes:
            return
        rows = sorted(self._nodes.items(), key=lambda row: -len(row[1]))
        lines = []
        for (operator, reason), nodes in rows:
            named = ", ".join(map(repr, nodes[:_SHOWN]))
            more = ", ..." if len(nodes) > _SHOWN else ""
            lines.append(
                f"{operator!r} ({counted(len(nodes), 'node')}: {named}{more}): {reason}"
            )
        raise Unsupported(
            f"refcomp cannot run {counted(self.count, 'node')} of this model",
            why="\n    ".join(["", *lines]),
            remedy="export the model with other operators, or add what is missing: "
            "refcomp.frontend.register_converter",
        )

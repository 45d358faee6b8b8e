"""Gathers what a model needs that refcomp lacks, so that all of it is told at once."""

from __future__ import annotations

from collections import Counter

from refcomp.foundation.errors import Unsupported


class Reasons:
    """Counts of (operator, reason)."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, operator: str, reason: str) -> None:
        """One more node of `operator` cannot be run, because of `reason`."""
        self._counts[operator, reason] += 1

    def raise_any(self) -> None:
        """Raises Unsupported that lists all reasons, the most frequent operator first."""
        if not self._counts:
            return
        lines = [
            f"{operator!r} ({count} {'node' if count == 1 else 'nodes'}): {reason}"
            for (operator, reason), count in self._counts.most_common()
        ]
        total = sum(self._counts.values())
        raise Unsupported(
            f"refcomp cannot run {total} {'node' if total == 1 else 'nodes'} of this model",
            why="\n    ".join(["", *lines]),
            remedy="export the model with other operators, or register what is missing",
        )

"""Counts what the schedule strategy drew, so that nobody has to trust that it draws everything."""

from __future__ import annotations

from collections import Counter
from statistics import median

from refcomp.schedule.schedule import PRIMITIVES, Schedule


class Histogram:
    """Primitives, depths and kinds of computation of the schedules added."""

    def __init__(self) -> None:
        self.with_primitive: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.depths: list[int] = []

    def add(self, kind: str, schedule: Schedule) -> None:
        """Counts one accepted schedule."""
        self.with_primitive.update({step.primitive for step in schedule.steps})
        self.kinds[kind] += 1
        self.depths.append(len(schedule.steps))

    def share(self, primitive: str) -> float:
        """The part of all schedules that use `primitive`."""
        return self.with_primitive[primitive] / max(1, len(self.depths))

    def deep_share(self) -> float:
        """The part of all schedules that have at least four steps."""
        return sum(depth >= 4 for depth in self.depths) / max(1, len(self.depths))

    def __str__(self) -> str:
        rows = [f"  {name:16} {self.share(name):6.1%}" for name in PRIMITIVES]
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.most_common())
        head = (
            f"{len(self.depths)} schedules, median depth {median(self.depths or [0]):g}, "
            f"{self.deep_share():.0%} of at least four steps; share that uses each primitive:"
        )
        return "\n".join([head, *rows, f"  computations: {kinds}"])

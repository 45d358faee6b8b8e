"""Counts what the schedule strategy drew, so that nobody has to trust that it draws everything."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from refcomp.schedule.primitives.table import PRIMITIVES
from refcomp.schedule.schedule import Schedule


class Histogram:
    """Primitives, depths and kinds of computation of the schedules added, and what else they have
    that their test counts."""

    def __init__(self) -> None:
        self.with_primitive: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.depths: list[int] = []
        self.features: Counter[str] = Counter()
        self.near = 0  # of those with a stage computed where it is needed, or a copy

    def add(self, kind: str, schedule: Schedule, features: Iterable[str] = ()) -> None:
        """Counts one accepted schedule."""
        self.features.update(features)
        primitives = {step.primitive for step in schedule.steps}
        self.with_primitive.update(primitives)
        self.near += not primitives.isdisjoint(("compute_at", "cache_read", "cache_write"))
        self.kinds[kind] += 1
        self.depths.append(len(schedule.steps))

    def share(self, primitive: str) -> float:
        """The part of all schedules that use `primitive`."""
        return self.with_primitive[primitive] / max(1, len(self.depths))

    def deep_share(self) -> float:
        """The part of all schedules that have at least four steps."""
        return sum(depth >= 4 for depth in self.depths) / max(1, len(self.depths))

    def add_all(self, other: Histogram) -> None:
        """Counts what `other` counted."""
        self.with_primitive.update(other.with_primitive)
        self.kinds.update(other.kinds)
        self.features.update(other.features)
        self.depths += other.depths
        self.near += other.near

    def __str__(self) -> str:
        rows = [f"  {name:16} {self.share(name):6.1%}" for name in PRIMITIVES]
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.kinds.most_common())
        head = (
            f"{len(self.depths)} schedules, median depth {median(self.depths or [0]):g}, "
            f"{self.deep_share():.0%} of at least four steps; share that uses each primitive:"
        )
        more = [f"  {name}: {count}" for name, count in self.features.most_common()]
        return "\n".join([head, *rows, f"  computations: {kinds}", *more])


def whole_of(histogram: Histogram, shard: int, shards: int, folder: Path) -> Histogram | None:
    """What all shards of a run drew, None while some are missing: each leaves in `folder` what it
    counted, and the last one that comes finds them all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{shard}.draft"
    draft.write_text(json.dumps(vars(histogram)), encoding="utf-8")
    draft.rename(folder / f"{shard}.json")
    parts = sorted(folder.glob("*.json"))
    if len(parts) < shards:
        return None
    whole = Histogram()
    for part in parts:
        counted = Histogram()
        vars(counted).update(json.loads(part.read_text(encoding="utf-8")))
        whole.add_all(counted)
    return whole

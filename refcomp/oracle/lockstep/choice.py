"""Who runs in step, and why a run in step is given up."""

from __future__ import annotations

from dataclasses import dataclass, field

from refcomp.ir.buffer import Buffer
from refcomp.ir.stmt import For, Stmt

LEAST_THREADS = 4  # fewer are sooner done one by one


class Doubt(Exception):
    """A rule may be broken, or the order of threads may show: the plain interpreter decides."""


@dataclass(slots=True, eq=False)
class Plan:
    """The `loops` whose iterations run in step, outermost first; none where they must not, or have
    raised Doubt. `body` is what each iteration does; of the buffers around, it uses `used` and
    writes `written`."""

    loops: tuple[For, ...]
    body: Stmt
    used: tuple[Buffer, ...] = ()
    written: frozenset[Buffer] = frozenset()


@dataclass(slots=True, eq=False)
class Choice:
    """At least `least` threads run in step, by the plan of the loop that they begin with."""

    least: int
    plans: dict[For, Plan] = field(default_factory=dict)

"""What certifying finds out: a Certificate, and where two programs part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from refcomp.certificates.bounds import BoundsReport
from refcomp.certificates.trial import Trial, sizes_to_text
from refcomp.foundation.errors import CompilerBug
from refcomp.oracle.exact.field import P
from refcomp.oracle.watch import Write

_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a program parts from what it should compute: an element of an output, `found` and
    `expected` there (`allowed`: how far they may be apart), and who wrote it; or the rule broken.

    `missing` and `extra` are writes that the program before the guilty step did, and this one does
    not, and the other way round.
    """

    output: str = ""
    index: tuple[int, ...] = ()
    found: Any = None
    expected: Any = None
    writes: tuple[str, ...] = ()
    broken_rule: str = ""
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    allowed: float = 0.0

    def __str__(self) -> str:
        if self.broken_rule:
            return self.broken_rule
        at = ", ".join(map(str, self.index))
        within = f" within {self.allowed:.3g}" if self.allowed else ""
        told = f"{self.output}[{at}] is {self.found}, expected {self.expected}{within}"
        lines = ["; written", *self.writes] if self.writes else ["; nothing writes it"]
        for writes, what in ((self.missing, "missing"), (self.extra, "extra")):
            lines += [f"  {what}: {write.strip()}" for write in writes]
        return told + "\n    ".join(lines)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome of certifying one schedule or function.

    Attributes:
        compared: the programs that were compared, once for each trial
        guilty: the first step that changed the result; '' if none did
        difference: how the guilty step changed it
        sizes: of the symbols in the failed trial, and of the axes of a stand-in
        trials: the inputs that the programs were run on
        steps: the number of recorded primitives of the schedule
        passes: the passes that changed the program, in order
        bounds: how it is known that each access stays within its buffer
    """

    name: str
    compared: tuple[str, ...]
    guilty: str = ""
    difference: Difference | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    steps: int = 0
    passes: tuple[str, ...] = ()
    bounds: BoundsReport | None = None

    @property
    def holds(self) -> bool:
        """Return True if no step changed the result."""
        return not self.guilty

    def __str__(self) -> str:
        sizes = sizes_to_text(self.sizes)
        if self.holds:
            on = f" on a stand-in ({sizes})" if sizes else ""
            return f"{self.name}: certified, {len(self.compared)} programs agree{on}"
        return (
            f"{self.name}: {self.guilty} is guilty{f' ({sizes})' if sizes else ''}\n  "
            + (str(self.difference))
        )

    def report(self) -> str:
        """Return the verdict, then the programs, inputs and bounds behind it, a line each."""
        made_by = f"{counted(self.steps, 'schedule step')} and {counted(len(self.passes), 'pass')}"
        lines = [
            str(self),
            f"  programs: {len(self.compared)} compared, made by {made_by}",
            *(f"  trial: {trial}" for trial in self.trials),
            *(f"  compared: {phrase}" for phrase in self._phrases()),
            *(f"  {line}" for line in str(self.bounds or "").splitlines()),
        ]
        return "\n".join(lines)

    def brief(self) -> str:
        """Return the verdict and what it rests on in one line."""
        made_by = f"{counted(self.steps, 'step')}, {counted(len(self.passes), 'pass')}"
        sizes = "; ".join(
            filter(None, (sizes_to_text(trial.sizes) for trial in self.trials))
        )
        compared = ", ".join(self._phrases())
        return f"{self} ({made_by}; {sizes or 'constant sizes'}; {compared})"

    def _phrases(self) -> list[str]:
        found = (algebra.phrase for trial in self.trials for algebra in trial.algebras)
        return list(dict.fromkeys(found))

    def require(self) -> None:
        """CompilerBug unless it holds."""
        if not self.holds:
            raise CompilerBug(
                f"{self.guilty} changes the result of {self.name}",
                why=str(self.difference),
                remedy="please report it with the schedule's steps",
            )


def counted(count: int, noun: str) -> str:
    """Return `count` with `noun` in the plural unless it is 1."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


def shown(writes: Sequence[Write]) -> tuple[str, ...]:
    """The last of `writes`, for a reader."""
    return tuple(f"  {write}" for write in writes[-_MOST_SHOWN:])


def changed_writes(
    before: Sequence[Write], after: Sequence[Write]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The writes to one element that are missing and those that are extra, as texts.

    Writes are the same where they add the same, or else where they leave the same: whichever tells
    the two programs apart by less. A sum adds the same terms in any order.
    """
    found = [
        (_without(before, after, key), _without(after, before, key))
        for key in (_added, _left)
    ]
    missing, extra = min(found, key=lambda pair: len(pair[0]) + len(pair[1]))
    return shown(missing), shown(extra)


_Key = Callable[[Sequence[Write]], list[Hashable]]


def _without(these: Sequence[Write], others: Sequence[Write], key: _Key) -> list[Write]:
    """Those of `these` whose key has no fellow among `others`."""
    left, rest = Counter(key(others)), []
    for write, value in zip(these, key(these), strict=True):
        if left[value]:
            left[value] -= 1
        else:
            rest.append(write)
    return rest


def _left(writes: Sequence[Write]) -> list[Hashable]:
    return [str(write.value) for write in writes]


def _added(writes: Sequence[Write]) -> list[Hashable]:
    """What each write adds modulo the field's order; the values themselves where they are none."""
    values = [write.value for write in writes]
    if not all(isinstance(value, int) for value in values):
        return _left(writes)
    steps = zip([0, *values], values, strict=False)
    return [int(after - before) % P for before, after in steps]

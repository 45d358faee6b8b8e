"""The result of certifying: a Certificate, and the first difference between two programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from refcomp.certificates.bounds import BoundsReport
from refcomp.certificates.trial import Trial, sizes_to_text
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import CompilerBug
from refcomp.oracle.exact.field import P
from refcomp.oracle.watch import Write

_MAX_SHOWN = 4  # writes


@dataclass(frozen=True, slots=True)
class Difference:
    """A wrong element of an output, or a broken rule of the interpreter."""

    output: str = ""
    index: tuple[int, ...] = ()  # of the element
    found: object = None
    expected: object = None
    writes: tuple[str, ...] = ()  # the last writes to the element
    broken_rule: str = ""
    missing: tuple[str, ...] = ()  # writes that the guilty step removed
    extra: tuple[str, ...] = ()  # writes that the guilty step added
    allowed: float = 0.0  # maximum distance of `found` from `expected`

    def __str__(self) -> str:
        if self.broken_rule:
            return self.broken_rule
        element = f"{self.output}[{', '.join(map(str, self.index))}]"
        within = f" within {self.allowed:.3g}" if self.allowed else ""
        lines = ["; written", *self.writes] if self.writes else ["; nothing writes it"]
        lines += [f"  missing: {write.strip()}" for write in self.missing]
        lines += [f"  extra: {write.strip()}" for write in self.extra]
        head = f"{element} is {self.found}, expected {self.expected}{within}"
        return head + "\n    ".join(lines)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome of certifying one schedule or function; `certify` returns it.

    `print(certificate)` gives the verdict in one line.

    Args:
        name: the name of the function.
        compared: the programs that were compared, once for each trial.
        guilty: the first step that changed the result; '' if none did.
        difference: how the guilty step changed the result; None if none did.
        sizes: the values of the symbols in the failed trial, and the extents of a stand-in.
        trials: the inputs that the programs ran on.
        steps: the number of recorded primitives of the schedule.
        passes: the passes that changed the program, in order.
        bounds: why each access stays within its buffer; None if a step is guilty.
        notes: sentences about arguments that nothing reads, and outputs that are not arguments.

    Example::

        >>> A = rc.placeholder((8,), "int32", name="A")
        >>> B = rc.compute((8,), lambda i: A[i] + 1, name="B")
        >>> s = rc.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> certificate = rc.certify(s, [A, B], name="increment")
        >>> certificate.holds
        True
        >>> certificate.require()
        >>> print(certificate.brief())
        increment: certified, 2 programs agree (1 step, 2 passes; constant sizes; exactly ...)
        >>> print(certificate.report())
        increment: certified, 2 programs agree
          programs: 2 compared, made by 1 schedule step and 2 passes
          trial: constant sizes; random arrays of seed 0 (normal floats, integers of any value)
          compared: exactly (field of 2147483647 elements, integers modulo 2^w)
          bounds: 2 accesses: 2 proved
    """

    name: str
    compared: tuple[str, ...]  # the programs that were compared, once for each trial
    guilty: str = ""  # the first step that changed the result; '' if none did
    difference: Difference | None = None  # how the guilty step changed the result
    # The values of the symbols in the failed trial, and the extents of a stand-in.
    sizes: Mapping[str, int] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()  # the inputs that the programs ran on
    steps: int = 0  # the number of recorded primitives of the schedule
    passes: tuple[str, ...] = ()  # the passes that changed the program, in order
    bounds: BoundsReport | None = None  # why each access stays within its buffer
    # Sentences about arguments that nothing reads, and outputs that are not arguments.
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return True if no step changed the result."""
        return not self.guilty

    def __str__(self) -> str:
        sizes = sizes_to_text(self.sizes)
        if self.holds:
            on = f" on a stand-in ({sizes})" if sizes else ""
            return f"{self.name}: certified, {len(self.compared)} programs agree{on}"
        on = f" ({sizes})" if sizes else ""
        return f"{self.name}: {self.guilty} is guilty{on}\n  {self.difference}"

    def report(self) -> str:
        """Return the verdict, then programs, inputs, bounds and notes, a line each."""
        steps = counted(self.steps, "schedule step")
        passes = counted(len(self.passes), "pass")
        lines = [
            str(self),
            f"  programs: {len(self.compared)} compared, made by {steps} and {passes}",
            *(f"  trial: {trial}" for trial in self.trials),
            *(f"  compared: {phrase}" for phrase in self._phrases()),
        ]
        if self.bounds is not None:
            lines += [f"  {line}" for line in str(self.bounds).splitlines()]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def brief(self) -> str:
        """Return the verdict and the evidence for it in one line."""
        steps = counted(self.steps, "step")
        passes = counted(len(self.passes), "pass")
        sizes = [sizes_to_text(trial.sizes) for trial in self.trials if trial.sizes]
        where = "; ".join(sizes) or "constant sizes"
        return f"{self} ({steps}, {passes}; {where}; {', '.join(self._phrases())})"

    def _phrases(self) -> list[str]:
        found = (algebra.phrase for trial in self.trials for algebra in trial.algebras)
        return list(dict.fromkeys(found))

    def require(self) -> None:
        """Raise CompilerBug unless the certificate holds."""
        if not self.holds:
            raise CompilerBug(
                f"{self.guilty} changes the result of {self.name}",
                why=str(self.difference),
                remedy="please report it with the schedule's steps",
            )


def shown(writes: Sequence[Write]) -> tuple[str, ...]:
    """Return the texts of the last of `writes`."""
    return tuple(f"  {write}" for write in writes[-_MAX_SHOWN:])


def changed_writes(
    before: Sequence[Write], after: Sequence[Write]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the texts of the missing and of the extra writes to one element.

    Two writes are the same if they add the same increment, or if they store the same value. The
    definition that shows fewer differences is used: a sum adds the same terms in any order.
    """
    found = []
    for key in (_increments, _values):
        missing = _unmatched(before, after, key)
        extra = _unmatched(after, before, key)
        found.append((missing, extra))
    missing, extra = min(found, key=lambda pair: len(pair[0]) + len(pair[1]))
    return shown(missing), shown(extra)


def _unmatched(
    writes: Sequence[Write],
    others: Sequence[Write],
    key: Callable[[Sequence[Write]], Sequence[Hashable]],
) -> list[Write]:
    """Return the `writes` whose key has no counterpart among `others`."""
    counts = Counter(key(others))
    unmatched = []
    for write, value in zip(writes, key(writes), strict=True):
        if counts[value]:
            counts[value] -= 1
        else:
            unmatched.append(write)
    return unmatched


def _values(writes: Sequence[Write]) -> list[str]:
    return [str(write.value) for write in writes]


def _increments(writes: Sequence[Write]) -> Sequence[Hashable]:
    """Return what each write adds, modulo P; the values themselves if they are not integers."""
    values = [write.value for write in writes]
    if not all(isinstance(value, int) for value in values):
        return _values(writes)
    pairs = zip([0, *values], values, strict=False)
    return [int(after - before) % P for before, after in pairs]

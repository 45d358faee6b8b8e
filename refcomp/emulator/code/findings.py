"""Findings: reports of errors in a kernel, with the instruction and the lane."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from refcomp.emulator.code.assembly import Instruction

# Kinds of findings.
OUT_OF_BOUNDS = "out of bounds"
UNDEFINED = "undefined"
BARRIER = "barrier"
ENDLESS = "endless"
WAIT = "wait"
RACE = "race"
MISALIGNED = "misaligned"
READ_ONLY = "read-only"
ASSERTION = "assertion"
HEAP = "heap"
_MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """An error of a kernel, at its first occurrence."""

    kind: str  # one of the constants above
    what: str
    instruction: Instruction
    place: str  # the function, and how far in it
    kernel: str
    group: tuple[int, int, int]  # the work-group in x, y and z
    item: tuple[int, int, int]  # the work item in its group
    times: int = 1  # lanes in which the instruction did the same
    wave: int = 0  # of the group
    lane: int = 0  # of the wave

    def __str__(self) -> str:
        times = f" ({self.times} times)" if self.times > 1 else ""
        item = f"work item {self.item}: lane {self.lane} of wave {self.wave}"
        return (
            f"{self.kind}: {self.what}{times}\n"
            f"    by {self.instruction}\n"
            f"    in {self.place}; kernel {self.kernel}, group {self.group}, {item}"
        )


class _FindingKey(NamedTuple):
    """Findings with the same key count as one."""

    kind: str
    number: int  # of the instruction


class Findings:
    """The first finding of each instruction and kind, and how often it occurred."""

    def __init__(self) -> None:
        self._first: dict[_FindingKey, Finding] = {}
        self._times: dict[_FindingKey, int] = {}

    def add(self, finding: Finding) -> None:
        """Add a finding, or count it if the instruction has one of the same kind."""
        key = _FindingKey(finding.kind, finding.instruction.number)
        if key not in self._first and len(self._first) < _MAX_FINDINGS:
            self._first[key] = finding
        self._times[key] = self._times.get(key, 0) + finding.times

    def all(self) -> tuple[Finding, ...]:
        """Return the findings in the order in which they occurred."""
        return tuple(
            replace(finding, times=self._times[key])
            for key, finding in self._first.items()
        )

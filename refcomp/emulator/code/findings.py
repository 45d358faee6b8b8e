"""What the emulator finds wrong with a kernel: where, and in which lane of which group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from refcomp.emulator.code.assembly import Instruction

OUT_OF_BOUNDS, UNDEFINED, BARRIER = "out of bounds", "undefined", "barrier"
ENDLESS = "endless"
WAIT, RACE, MISALIGNED, READ_ONLY = "wait", "race", "misaligned", "read-only"
_MOST = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is one of the constants above. `group` is the work-group in x, y and z, `item` the
    work item in it, which is lane `lane` of the group's wave `wave`; `times` counts the lanes in
    which the instruction did the same."""

    kind: str
    what: str
    instruction: Instruction
    place: str
    kernel: str
    group: tuple[int, int, int]
    item: tuple[int, int, int]
    times: int = 1
    wave: int = 0
    lane: int = 0

    def __str__(self) -> str:
        often = f" ({self.times} times)" if self.times > 1 else ""
        who = f"work item {self.item}: lane {self.lane} of wave {self.wave}"
        return (
            f"{self.kind}: {self.what}{often}\n"
            f"    by {self.instruction}\n"
            f"    in {self.place}; kernel {self.kernel}, group {self.group}, {who}"
        )


class _FindingKey(NamedTuple):
    """Findings with the same key count as one."""

    kind: str
    # Number of the instruction.
    number: int


class Findings:
    """The first finding of each instruction and kind, and how many more there were."""

    def __init__(self) -> None:
        self._found: dict[_FindingKey, Finding] = {}
        self._times: dict[_FindingKey, int] = {}

    def add(self, finding: Finding) -> None:
        """Counts it with what the same instruction did before."""
        key = _FindingKey(finding.kind, finding.instruction.number)
        if key not in self._found and len(self._found) < _MOST:
            self._found[key] = finding
        self._times[key] = self._times.get(key, 0) + finding.times

    def all(self) -> tuple[Finding, ...]:
        """In the order in which they were found."""
        return tuple(
            Finding(
                **{
                    name: getattr(one, name)
                    for name in one.__slots__
                    if name != "times"
                },
                times=self._times[key],
            )
            for key, one in self._found.items()
        )

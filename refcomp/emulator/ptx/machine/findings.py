"""Findings: reports of errors in a kernel, with the PTX line, the block and the thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from refcomp.emulator.ptx.text.module import PtxInstruction

_MAX_FINDINGS = 20

Extents = tuple[int, int, int]  # along x, y and z


@dataclass(frozen=True, slots=True)
class PtxFinding:
    """An error of a kernel, at its first occurrence.

    Attributes:
        kind: one of the constants of `emulator.code.findings`.
        what: a description of the error.
        instruction: the instruction that made the error.
        function: the function of the instruction: the kernel, or a function that it calls.
        kernel: the name of the kernel.
        block: the number of the block along x, y and z.
        thread: the number of the thread in its block along x, y and z.
        times: the number of threads in which the instruction made this error.
    """

    kind: str
    what: str
    instruction: PtxInstruction
    function: str
    kernel: str
    block: Extents
    thread: Extents
    times: int = 1

    def __str__(self) -> str:
        times = f" ({self.times} times)" if self.times > 1 else ""
        at = self.instruction.location
        source = f", made of {at}" if at is not None else ""
        return (
            f"{self.kind}: {self.what}{times}\n"
            f"    by {self.instruction.text}\n"
            f"    in line {self.instruction.line} of the PTX, function {self.function}{source}; "
            f"kernel {self.kernel}, block {self.block}, thread {self.thread}"
        )


class PtxFindings:
    """The first finding of each instruction and kind, and the number of its occurrences."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str, int], PtxFinding] = {}
        self._times: dict[tuple[str, str, int], int] = {}

    def add(self, finding: PtxFinding) -> None:
        """Add a finding, or count it if the instruction has one of the same kind."""
        key = finding.kind, finding.function, finding.instruction.number
        if key not in self._first and len(self._first) < _MAX_FINDINGS:
            self._first[key] = finding
        self._times[key] = self._times.get(key, 0) + finding.times

    def all(self) -> tuple[PtxFinding, ...]:
        """Return the findings in the order in which they occurred."""
        return tuple(
            replace(finding, times=self._times[key])
            for key, finding in self._first.items()
        )

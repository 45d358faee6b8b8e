"""The error of a launch in which the emulator found errors of the kernel, on all emulated GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from refcomp.foundation.counted import counted
from refcomp.foundation.errors import UserError


class ReportedFinding(Protocol):
    """A finding of either interpreter. Its text is a report."""

    @property
    def kind(self) -> str:
        """The kind: a constant of `refcomp.emulator.code.findings`."""


class KernelFailure(UserError):
    """A launch in which the emulator found errors of the kernel. `findings` has them all."""

    def __init__(self, kernel: str, findings: Sequence[ReportedFinding]) -> None:
        count = counted(len(findings), "finding")
        super().__init__(
            f"the emulator found errors in the kernel {kernel} ({count})",
            why="\n    ".join(str(finding) for finding in findings),
            remedy="fix the kernel; a real GPU may run it without a complaint",
        )
        self.findings = tuple(findings)

"""The four kinds of failure a user can meet. Each says what, where, why and what to do.

`UserError`       The request is illegal.
`Unsupported`     The request is legal, but refcomp cannot do it. The error says why.
`ToolchainError`  An external tool is missing, failed or hung.
`CompilerBug`     refcomp broke one of its own rules. A check found it, and reports the IR.

All derive from `RefcompError`, so that a caller can catch every deliberate failure at once. Python
prints an uncaught one with the user's own frames only: see `refcomp.foundation.tracebacks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from refcomp.foundation.tracebacks import hide_from_pytest, install_hooks, render

if TYPE_CHECKING:
    from pathlib import Path


class RefcompError(Exception):
    """A deliberate failure.

    Attributes:
        what: the failure in one sentence.
        where: the user's line, the statement or the setting, if known.
        why: the reason or the rule.
        remedy: what to do.
    """

    # True if refcomp's authors are to read the error: the traceback then has all frames.
    keeps_frames: ClassVar[bool] = False

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        why: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.why = why
        self.remedy = remedy
        super().__init__(what)
        hide_from_pytest()

    def __str__(self) -> str:
        labels = {"where": self.where, "why": self.why, "what to do": self.remedy}
        details = [f"  {label}: {text}" for label, text in labels.items() if text]
        return "\n".join([self.what, *details])

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints; IPython looks for a method of this name."""
        return render(self)


class UserError(RefcompError):
    """An illegal request. The remedy says what would be legal."""


class OutOfBounds(UserError):
    """An index outside of its buffer, found during a call of a compiled function.

    Only functions that were built with the build option `check_bounds` raise it. The outputs of
    the call are undefined.
    """


class Unsupported(RefcompError):
    """A legal request that refcomp cannot fulfil. `why` names the limit."""


class CompilerBug(RefcompError):
    """A broken rule of refcomp itself, with the IR for a bug report."""

    keeps_frames = True


class ToolchainError(RefcompError):
    """An external tool that is missing, failed or ran too long.

    Attributes:
        command: the arguments of the tool; () if no tool was found.
        stderr: the tool's error output.
        kept: the private folder with the tool's inputs, to try again by hand.
    """

    def __init__(
        self,
        what: str,
        *,
        command: tuple[str, ...] = (),
        stderr: str = "",
        kept: Path | None = None,
        where: str | None = None,
        why: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what, where=where, why=why, remedy=remedy)
        self.command = command
        self.stderr = stderr
        self.kept = kept

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.command:
            lines.append(f"  command: {' '.join(self.command)}")
        if self.stderr:
            lines.append("  stderr:")
            lines += [f"    {line}" for line in self.stderr.splitlines()]
        if self.kept is not None:
            lines.append(f"  kept: {self.kept}")
        return "\n".join(lines)


install_hooks()

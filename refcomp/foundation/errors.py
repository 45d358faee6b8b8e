"""The four kinds of failure a user can meet; each says what, where, why and what to do.

`UserError`       you asked for something illegal.
`Unsupported`     the request is legal, but beyond what refcomp can do; the reason is told.
`ToolchainError`  an external tool is missing, failed or hung.
`CompilerBug`     refcomp broke one of its own rules; raised only by checks, with the IR.

All derive from `RefcompError`, so that a caller can catch every deliberate failure at once.

Uncaught, they are printed with the user's own frames only; `refcomp.foundation.tracebacks` says
how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from refcomp.foundation.tracebacks import hide_from_pytest, install_hooks, render

if TYPE_CHECKING:
    from pathlib import Path


class RefcompError(Exception):
    """A deliberate failure: `what` in one sentence, then optional where, why and remedy."""

    # True for what is for refcomp's authors to read: the traceback shows where it arose.
    keeps_frames: ClassVar[bool] = False

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        why: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what, self.where, self.why, self.remedy = what, where, why, remedy
        super().__init__(what)
        hide_from_pytest()

    def __str__(self) -> str:
        labelled = (
            ("where", self.where),
            ("why", self.why),
            ("what to do", self.remedy),
        )
        details = [f"  {label}: {text}" for label, text in labelled if text]
        return "\n".join([self.what, *details])

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints of the error; it asks for this method."""
        return render(self)


class UserError(RefcompError):
    """The request is illegal as written; the remedy says what would be legal."""


class OutOfBounds(UserError):
    """A compiled function met an index beyond a buffer; raised by calls of functions that were
    built with the build option `check_bounds`. The outputs of the call are undefined."""


class Unsupported(RefcompError):
    """The request is legal but refcomp cannot do it; `why` names the limit."""


class CompilerBug(RefcompError):
    """A rule of refcomp itself is broken; carries the IR so that it can be reported."""

    keeps_frames = True


class ToolchainError(RefcompError):
    """A tool is missing, failed or ran too long.

    `command` is the argument list as it was run (empty when no tool was found), `stderr` its
    error output, `kept` the private directory that holds the inputs for a retry by hand.
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
        self.command, self.stderr, self.kept = command, stderr, kept

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.command:
            lines.append(f"  command: {' '.join(self.command)}")
        if self.stderr:
            lines += [
                "  stderr:",
                *(f"    {line}" for line in self.stderr.splitlines()),
            ]
        if self.kept is not None:
            lines.append(f"  kept: {self.kept}")
        return "\n".join(lines)


install_hooks()

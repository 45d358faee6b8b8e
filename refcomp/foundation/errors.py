"""The four kinds of failure a user can meet. Each says what, where, why and what to do.

    cannot split axis i of stage C
      --> my_schedule.py:12
       |     s[C].split(i, factor=2)
       |     ^^^^^^^^^^^^^^^^^^^^^^^
      --> my_schedule.py:11
       |     s[C].vectorize(i)
       |     ----------------- vectorized here
      where: stage C, loops: i (data_parallel)
      why: it is vectorized already
      what to do: split first, then mark

`UserError`       The request is illegal.
`Unsupported`     The request is legal, but refcomp cannot do it. The error says why.
`ToolchainError`  An external tool is missing, failed or hung.
`CompilerBug`     refcomp broke one of its own rules. A check found it, and reports the IR.

All derive from `RefcompError`, so that a caller can catch every deliberate failure at once. Python
prints an uncaught one with the user's own frames only: see `refcomp.foundation.tracebacks`. Since
that traceback ends at the user's line, the message below it does not quote this line again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from refcomp.foundation.snippets import Snippet
from refcomp.foundation.tracebacks import (
    call_of,
    hide_from_pytest,
    install_hooks,
    is_call_shown,
    render,
)

if TYPE_CHECKING:
    from pathlib import Path


class RefcompError(Exception):
    """A deliberate failure. It is the base class of all errors that refcomp raises for its users.

    Attributes:
        what: the failure in one sentence.
        where: the stage, the statement or the setting, if known.
        why: the reason or the rule.
        remedy: what to do.
        at: the wrong line. If it is None, the message quotes the user's call of refcomp.
        earlier: lines with which it conflicts; each label says what the line did.

    Example::

        >>> try:
        ...     rc.all()
        ... except rc.RefcompError as caught:
        ...     error = caught
        >>> print(error.message(quotes_call=False))
        all() needs at least one condition
        >>> error.call is None
        False
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
        at: Snippet | None = None,
        earlier: Iterable[Snippet] = (),
    ) -> None:
        self.what = what
        self.where = where
        self.why = why
        self.remedy = remedy
        self.at = at
        self.earlier = tuple(earlier)
        super().__init__(what)
        hide_from_pytest()

    def __str__(self) -> str:
        return self.message(quotes_call=not is_call_shown())

    def message(self, *, quotes_call: bool = True) -> str:
        """Return the whole message, with the lines of the user's program that it is about.

        Args:
            quotes_call: False to leave out the user's call of refcomp.
        """
        lines = [self.what]
        wrong = self.at
        if (wrong is None or not wrong.place) and quotes_call:
            wrong = self.call
        if wrong is not None and wrong.place:
            lines += wrong.render("^")
        for snippet in dict.fromkeys(self.earlier):
            if snippet.place:
                lines += snippet.render("-")
        labels = {"where": self.where, "why": self.why, "what to do": self.remedy}
        lines += [f"  {label}: {text}" for label, text in labels.items() if text]
        return "\n".join(lines)

    @property
    def call(self) -> Snippet | None:
        """The user's call of refcomp. None for a bug of refcomp, and before the error is raised."""
        return None if self.keeps_frames else call_of(self)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints; IPython looks for a method of this name."""
        return render(self)


class UserError(RefcompError):
    """An illegal request. The remedy says what would be legal.

    Its attributes are those of `RefcompError`.

    Example::

        >>> try:
        ...     rc.LocalMemory(0)
        ... except rc.UserError as error:
        ...     print(error.what, "-", error.remedy)
        LocalMemory(0) is not a size - give a whole number >= 1: LocalMemory(64 * 4) for 64 floats
    """


class OutOfBounds(UserError):
    """An index outside of its buffer, found during a call of a compiled function.

    Only functions that were built with the build option `check_bounds` raise it. The outputs of the
    call are undefined. Its attributes are those of `RefcompError`.

    Example::

        >>> X = rc.placeholder((4,), name="X")
        >>> I = rc.placeholder((2,), "int64", name="I")
        >>> Y = rc.compute((2,), lambda i: X[I[i]], name="Y")
        >>> with rc.build_options(check_bounds=True):
        ...     gather = rc.build(rc.create_schedule(Y), [X, I, Y], target="interp")
        >>> try:
        ...     gather(np.ones(4, "float32"), np.array([0, 7]), np.empty(2, "float32"))
        ... except rc.OutOfBounds as error:
        ...     print(error.what)
        main reads from X out of bounds: index 7 in dimension 0, which has 4 elements
    """


class Unsupported(RefcompError):
    """A legal request that refcomp cannot fulfil. `why` names the limit.

    Its attributes are those of `RefcompError`.

    Example::

        >>> try:
        ...     rc.decl_buffer((4,), data=object())
        ... except rc.Unsupported as error:
        ...     print(error.what)
        buffer buffer is declared on memory of its own
    """


class CompilerBug(RefcompError):
    """A broken rule of refcomp itself, with the IR for a bug report.

    The traceback of such an error has all frames. Its attributes are those of `RefcompError`.

    Example::

        >>> failed = rc.Certificate("double", ("program",), guilty="pass unroll_loops")
        >>> try:
        ...     failed.require()
        ... except rc.CompilerBug as error:
        ...     print(error.what)
        pass unroll_loops changes the result of double
    """

    keeps_frames = True


class ToolchainError(RefcompError):
    """An external tool that is missing, failed or ran too long.

    Attributes:
        command: the arguments of the tool; () if no tool was found.
        stderr: the tool's error output.
        kept: the private folder with the tool's inputs, to try again by hand; None if there is
            none.

    It also has the attributes of `RefcompError`.

    Example::

        >>> error = rc.ToolchainError("llc failed", command=("llc", "a.ll"), stderr="line 3: ...")
        >>> print(error)
        llc failed
          command: llc a.ll
          stderr:
            line 3: ...
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

    def message(self, *, quotes_call: bool = True) -> str:
        lines = [super().message(quotes_call=quotes_call)]
        if self.command:
            lines.append(f"  command: {' '.join(self.command)}")
        if self.stderr:
            lines.append("  stderr:")
            lines += [f"    {line}" for line in self.stderr.splitlines()]
        if self.kept is not None:
            lines.append(f"  kept: {self.kept}")
        return "\n".join(lines)


install_hooks()

"""A progress bar on stderr for a build that takes longer than a second, if stderr is a terminal.

It shows how many functions have passed the pipeline, and how many parts the tools have compiled. It
disappears when the build ends, also by an exception. REFCOMP_PROGRESS=0 turns it off.

Ensures that nothing is printed if stderr is not a terminal. The same holds in other threads than
the main one, in forked processes, and in nested builds. rich is imported only if a bar is shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer, current_thread, main_thread
from typing import TYPE_CHECKING, TypeVar

from refcomp.foundation.options import environment_flag

if TYPE_CHECKING:
    from rich.progress import Progress

_DELAY_S = 1.0
_PROCESS = os.getpid()  # in a forked process the number is another one
_T = TypeVar("_T")

# Held by the build that may show a bar.
_shown = Lock()


@contextmanager
def build_progress(total: int | None) -> Iterator[BuildProgress]:
    """Count the steps of a build of `total` functions, and show a bar if the build is long.

    `total` is None if it is not known.

    Raises UserError if REFCOMP_PROGRESS is neither 0 nor 1.
    """
    progress = BuildProgress(total)
    if not (_may_show() and _shown.acquire(blocking=False)):
        yield progress
        return
    timer = Timer(_DELAY_S, progress.show)
    timer.daemon = True
    timer.start()
    try:
        yield progress
    finally:
        timer.cancel()
        progress.close()
        _shown.release()


def _may_show() -> bool:
    effect = "build without a progress bar"
    if not environment_flag("REFCOMP_PROGRESS", effect, default=True):
        return False
    # Python has no stderr if it runs without a console.
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    is_main = current_thread() is main_thread() and os.getpid() == _PROCESS
    return is_terminal and is_main


class BuildProgress:
    """The counts of a build. Any thread may change them."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._lowered = 0
        self._compiled = 0
        self._lock = Lock()
        self._bar: Progress | None = None
        self._is_over = False

    def counted(self, lowered: Iterable[_T]) -> Iterator[_T]:
        """Yield functions, each after it is counted."""
        for func in lowered:
            with self._lock:
                self._lowered += 1
                self._update()
            yield func

    def part_compiled(self) -> None:
        """Count a part."""
        with self._lock:
            self._compiled += 1
            self._update()

    def show(self) -> None:
        """Show the bar from now on, unless the build is over or the terminal is too simple."""
        from rich.console import Console  # noqa: PLC0415  (40 ms that a short build does not pay)
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        console = Console(stderr=True)
        columns = (
            TextColumn("building"),
            BarColumn(),
            TextColumn("{task.description}"),
        )
        # Warnings and certificates of the build, which go to stderr, appear above the bar.
        bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
        bar.add_task("", total=self._total)
        with self._lock:
            if not self._is_over and not console.is_dumb_terminal:
                self._bar = bar
                self._update()
                bar.start()

    def close(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def _update(self) -> None:
        if self._bar is None:
            return
        of_total = "" if self._total is None else f" of {self._total}"
        functions = f"{self._lowered}{of_total} functions lowered"
        (task,) = self._bar.task_ids
        self._bar.update(
            task,
            completed=self._lowered,
            description=f"{functions}, {self._compiled} parts compiled",
        )

"""Runs what may crash, hang or ruin its process in a child of its own, made by fork.

The child tells what it has found out as it goes; what it told before it died is kept. It has the
memory of this process as it is, so that nothing need be built again, and changes only its own copy.
Needs: a system with fork. Ensures: the child is gone, and what it printed is not seen.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Any

Tell = Callable[[Any], None]
_MOST_BYTES = 8 << 30  # of data that is new, for a mutant that asks for more and more
# Libraries may have taken these for themselves; LLVM's goes on after SIGXCPU.
_DEADLY = ("SIGXCPU", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTERM")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the child told, values of JSON in order, and how it ended: '' as it should, else
    'crashed', with the signal's name, or 'did not end'."""

    told: tuple[Any, ...]
    ended: str = ""


def run_in_child(
    work: Callable[[Tell], None], limit_s: float, processor_s: float | None = None
) -> Outcome:
    """Runs `work` in a child for at most `limit_s` seconds, or `processor_s` of the processor's
    time, which does not hang on who else is at work. An exception that leaves it is told as
    {"error": its text}."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_child(work, writing, processor_s or limit_s * (os.cpu_count() or 1))
    os.close(writing)
    try:
        text, is_late = _read(reading, time.monotonic() + limit_s)
    finally:
        os.close(reading)
        status = _end(pid)
    told = tuple(
        json.loads(line)
        for line in text.decode().splitlines(keepends=True)
        if line[-1] == "\n"
    )
    return Outcome(told, "did not end" if is_late else _how_it_ended(status))


def _be_child(work: Callable[[Tell], None], writing: int, processor_s: float) -> None:
    """Never returns: what stands above on the stack belongs to the parent."""
    try:
        os.setsid()
        faulthandler.disable()  # a crash is what is looked for
        for name in _DEADLY:
            signal.signal(signal.Signals[name], signal.SIG_DFL)
        most = _bytes_of_data() + _MOST_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Should the parent be killed, nobody else ends what does not end by itself.
        seconds = ceil(processor_s + time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        silence = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silence, stream)

        def tell(value: Any) -> None:
            os.write(writing, (json.dumps(value) + "\n").encode())

        try:
            work(tell)
        except BaseException as error:
            tell({"error": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(0)


def _bytes_of_data() -> int:
    """What the process has already, used or not: it counts against the limit, too."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def _read(reading: int, deadline: float) -> tuple[bytes, bool]:
    """All that is written until the other end is closed, and whether that took too long."""
    text = b""
    while True:
        ready, _, _ = select.select(
            [reading], [], [], max(0.0, deadline - time.monotonic())
        )
        if not ready:
            return text, True
        part = os.read(reading, 65536)
        if not part:
            return text, False
        text += part


def _end(pid: int) -> int:
    """Kills what is left of the child and of its children; its status."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    deadline = time.monotonic() + 0.5
    while not ended and time.monotonic() < deadline:
        time.sleep(0.001)
        ended, status = os.waitpid(pid, os.WNOHANG)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return status if ended else os.waitpid(pid, 0)[1]


def _how_it_ended(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return ""
    name = signal.Signals(os.WTERMSIG(status)).name
    return "did not end" if name == "SIGXCPU" else f"crashed by {name}"

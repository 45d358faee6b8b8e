"""Run work that may crash, hang or corrupt its process in a forked child.

The child has a copy of this process's memory, so nothing has to be built again, and its changes
stay its own. It sends messages while it works; those sent before it died are kept. When
`run_in_child` returns, the child is gone. The child's output is discarded.
Needs: a system with fork.
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

Send = Callable[[object], None]
_MAX_NEW_BYTES = 8 << 30  # of data that a child may allocate
# Libraries may have handlers for these; LLVM's returns after SIGXCPU.
_DEADLY = ("SIGXCPU", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTERM")
_DID_NOT_END = "did not end"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a child."""

    messages: tuple[object, ...]  # JSON values, in the order in which they were sent
    failure: str = ""  # 'crashed by' and the signal's name, or 'did not end'


def run_in_child(
    work: Callable[[Send], None], limit_s: float, processor_s: float | None = None
) -> Outcome:
    """Run `work` in a child; an exception becomes the message {"error": text}.

    Args:
        work: gets the function that sends a JSON value to this process.
        limit_s: maximum wall-clock time, in seconds.
        processor_s: maximum processor time, which other load does not change, in seconds.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_child(work, write_end, processor_s or limit_s * (os.cpu_count() or 1))
    os.close(write_end)
    try:
        text, is_late = _read(read_end, time.monotonic() + limit_s)
    finally:
        os.close(read_end)
        status = _end(pid)
    # A last line without its end is a message that the child could not complete.
    lines = text.decode().splitlines(keepends=True)
    messages = tuple(json.loads(line) for line in lines if line.endswith("\n"))
    if is_late:
        return Outcome(messages, _DID_NOT_END)
    if not os.WIFSIGNALED(status):
        return Outcome(messages)
    name = signal.Signals(os.WTERMSIG(status)).name
    return Outcome(
        messages, _DID_NOT_END if name == "SIGXCPU" else f"crashed by {name}"
    )


def _be_child(work: Callable[[Send], None], write_end: int, processor_s: float) -> None:
    """Do the work and exit. Never returns: the callers' frames belong to the parent."""

    def send(value: object) -> None:
        os.write(write_end, (json.dumps(value) + "\n").encode())

    try:
        os.setsid()
        faulthandler.disable()  # a crash is expected here
        for name in _DEADLY:
            signal.signal(signal.Signals[name], signal.SIG_DFL)
        # Memory that the process has already counts against the limit.
        with open("/proc/self/statm", encoding="ascii") as file:
            own_bytes = int(file.read().split()[5]) * resource.getpagesize()
        max_bytes = own_bytes + _MAX_NEW_BYTES
        # The hard limit stays: programs of sanitizers need address space without end.
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Ends an endless loop even if the parent has been killed.
        seconds = ceil(processor_s + time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(null, stream)
        try:
            work(send)
        except BaseException as error:
            send({"error": f"{type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(0)


def _read(read_end: int, deadline: float) -> tuple[bytes, bool]:
    """Return all bytes until the pipe is closed, and whether the deadline came first."""
    text = b""
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([read_end], [], [], left_s)
        if not ready:
            return text, True
        part = os.read(read_end, 65536)
        if not part:
            return text, False
        text += part


def _end(pid: int) -> int:
    """Kill what is left of the child and of its own children; return the child's status."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    deadline = time.monotonic() + 0.5
    while not ended and time.monotonic() < deadline:
        time.sleep(0.001)
        ended, status = os.waitpid(pid, os.WNOHANG)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return status if ended else os.waitpid(pid, 0)[1]

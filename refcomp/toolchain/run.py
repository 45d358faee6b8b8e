"""Run a tool: an argument list, a time limit, and no process left behind.

Each tool runs in a process group of its own. The whole group is killed if the time limit passes,
the caller is interrupted, or another thread kills it. No shell is used. Raises ToolchainError if a
tool cannot be started or does not end in time.
"""

import os
import reprlib
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from refcomp.foundation.errors import ToolchainError, UserError

DEFAULT_TIMEOUT_S = 120.0
_MAX_TIMEOUT_S = 1_000_000  # poll takes milliseconds as a C int

# A tool that crashes may print stack dumps without end.
_STDERR_LIMIT = 16_384  # characters
# How long to wait for the pipes of a killed group, which a process outside it may hold open.
_GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a tool that has ended."""

    command: tuple[str, ...]
    status: int  # exit status, or minus the number of the signal that killed it
    stdout: bytes
    stderr: str  # cut at _STDERR_LIMIT
    whole_stderr: bytes


def tool_timeout_s() -> float:
    """Return the time limit of one tool in seconds: $REFCOMP_TOOL_TIMEOUT, else 120."""
    text = os.environ.get("REFCOMP_TOOL_TIMEOUT", "")
    if not text:
        return DEFAULT_TIMEOUT_S
    with suppress(ValueError):
        if 0 < float(text) <= _MAX_TIMEOUT_S:
            return float(text)
    raise UserError(
        f"REFCOMP_TOOL_TIMEOUT is {reprlib.repr(text)}, which is not a number of seconds above 0",
        where="environment variable REFCOMP_TOOL_TIMEOUT",
        remedy=f"set it to at most {_MAX_TIMEOUT_S} seconds (default {DEFAULT_TIMEOUT_S:g}), "
        "or unset it",
    )


def start_tool(
    command: Sequence[str], kept: Path | None = None
) -> "subprocess.Popen[bytes]":
    """Start `command` (an absolute path, then arguments) in the folder `kept`."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=kept,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolchainError(
            f"{os.path.basename(command[0])} cannot be started",
            why=str(error),
            command=tuple(command),
            kept=kept,
        ) from error


def finish_tool(
    process: "subprocess.Popen[bytes]", timeout_s: float, kept: Path | None = None
) -> Completed:
    """Wait for `process`, and kill its whole group if it is not done after `timeout_s` seconds."""
    command = tuple(map(str, process.args))  # type: ignore[arg-type]
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as expired:
        raise ToolchainError(
            f"{os.path.basename(command[0])} was not done after {timeout_s:g} s and was killed",
            remedy="raise the limit by REFCOMP_TOOL_TIMEOUT (seconds), or try the command by hand",
            command=command,
            stderr=_to_text(_kill_group(process)),
            kept=kept,
        ) from expired
    # Such as KeyboardInterrupt: no process may be left behind.
    except BaseException:
        _kill_group(process)
        raise
    return Completed(command, process.returncode, stdout, _to_text(stderr), stderr)


class ToolKilled(Exception):
    """A tool was killed because nobody wants its result any more."""


class ToolRunner:
    """Runs tools one after another. Another thread may kill the one that runs, and all later ones.

    Each tool may take `timeout_s` seconds, by default those of `tool_timeout_s`.
    """

    def __init__(self, timeout_s: float | None = None) -> None:
        self._timeout_s = tool_timeout_s() if timeout_s is None else timeout_s
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False

    def run(self, command: Sequence[str], kept: Path | None = None) -> Completed:
        """Start `command` and wait for it. Raise ToolKilled once `kill` has been called."""
        with self._lock:
            if self._is_killed:
                raise ToolKilled
            process = start_tool(command, kept)
            self._process = process
        try:
            completed = finish_tool(process, self._timeout_s, kept)
        finally:
            with self._lock:
                self._process = None
                is_killed = self._is_killed
        if is_killed:
            raise ToolKilled
        return completed

    def kill(self) -> None:
        """Kill the tool that runs, and start no other."""
        with self._lock:
            self._is_killed = True
            if self._process is not None:
                _signal_group(self._process)


def _signal_group(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_group(process: "subprocess.Popen[bytes]") -> bytes:
    """Kill the group, and return what it had written to stderr."""
    _signal_group(process)
    try:
        return process.communicate(timeout=_GRACE_S)[1]
    except subprocess.TimeoutExpired as expired:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        return expired.stderr or b""


def _to_text(stderr: bytes) -> str:
    text = stderr.decode(errors="replace")
    return text if len(text) <= _STDERR_LIMIT else text[:_STDERR_LIMIT] + "\n[cut]"

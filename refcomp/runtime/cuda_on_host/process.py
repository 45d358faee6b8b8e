"""The process that runs kernels: it cannot harm this process, and its faults are errors here.

`templates/cuda_on_host/process.cpp` is the other side, and describes the requests. Raises
ToolchainError with the process' own words for a fault, for a sanitizer's report, and for a launch
that does not end in time. The next launch starts a new process.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from threading import Lock, Timer
from typing import BinaryIO, cast

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import ToolchainError
from refcomp.foundation.private_folder import private_folder
from refcomp.runtime.launch import Extents

_READY = b"."
_MAX_REPORT = 6000  # characters
# A sanitizer's first report ends the process. Memory that is not freed is not a fault of a kernel.
_ENVIRONMENT = {
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66",
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=0",
}


@dataclass(frozen=True, slots=True)
class HostArgument:
    """An argument of a kernel, as bytes."""

    data: bytes
    is_array: bool  # the launch returns the array's bytes


class HostProcess:
    """A process with the kernels of one shared object. Several threads may launch."""

    def __init__(self, process: Binary, kernels: Binary, limit_s: float) -> None:
        """Start the program `process` with `kernels`.

        Args:
            process: the compiled process.cpp.
            kernels: the compiled kernels, with the same sanitizers.
            limit_s: maximum time of one launch, in seconds.
        """
        self._binaries = (process, kernels)
        self._limit_s = limit_s
        self._lock = Lock()
        self._running: _Running | None = None

    def launch(
        self,
        symbol: str,
        arguments: Sequence[HostArgument],
        grid: Extents,
        block: Extents,
        shared_bytes: Sequence[int] = (),
    ) -> list[bytes]:
        """Run a kernel; return the bytes of each array afterwards."""
        request = [_number(len(symbol)), symbol.encode()]
        request.append(struct.pack("<6I", *grid, *block))
        request += map(_number, [len(shared_bytes), *shared_bytes, len(arguments)])
        for argument in arguments:
            size = len(argument.data)
            request += [_number(argument.is_array), _number(size), argument.data]
        sizes = [len(one.data) for one in arguments if one.is_array]
        with self._lock:
            if self._running is None:
                self._running = _Running(*self._binaries, limit_s=self._limit_s)
            try:
                return self._running.exchange(b"".join(request), sizes, self._limit_s)
            except ToolchainError as error:
                self._running = None
                error.where = error.where or f"kernel {symbol}"
                raise

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._running = None


class _Running:
    """A started process, which ends when this object is freed."""

    def __init__(self, process: Binary, kernels: Binary, limit_s: float) -> None:
        self._resources = ExitStack()
        folder = self._resources.enter_context(private_folder())
        program, library = folder / "process", folder / "kernels.so"
        program.write_bytes(process.data)
        program.chmod(0o700)
        library.write_bytes(kernels.data)
        self._errors = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (kept open)
        self._resources.callback(self._errors.close)
        with _unlimited_memory():
            self._process = subprocess.Popen(
                # It ends itself if this process cannot kill it any more.
                [program, library, str(ceil(limit_s) + 1)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=folder,
                env={**os.environ, **_ENVIRONMENT},
            )
        self._read(len(_READY), limit_s)

    def exchange(
        self, request: bytes, sizes: Sequence[int], limit_s: float
    ) -> list[bytes]:
        """Send a request; return as many bytes as each of `sizes`, of the reply."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the reply then ends too soon
            self._process.stdin.write(request)
            self._process.stdin.flush()
        reply = self._read(sum(sizes) + len(_READY), limit_s)
        parts = []
        begin = 0
        for size in sizes:
            parts.append(reply[begin : begin + size])
            begin += size
        return parts

    def _read(self, size: int, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        timer = Timer(limit_s, self._process.kill)
        timer.start()
        try:
            reply = self._process.stdout.read(size)
        finally:
            timer.cancel()
        if len(reply) < size:
            raise self._fault(limit_s)
        return reply

    def _fault(self, limit_s: float) -> ToolchainError:
        status = self._process.wait()
        self._errors.seek(0)
        report = self._errors.read().decode(errors="replace")
        if not report and status == -signal.SIGKILL:
            report = f"it was not done after {limit_s:g} s"
        elif not report:
            report = f"it ended with status {status}"
        # The report of a sanitizer begins with a rule of equals signs.
        lines = (line for line in report.splitlines() if line.strip("="))
        return ToolchainError(
            "a CUDA kernel fails on this machine",
            why=next(lines, None),
            stderr=report[:_MAX_REPORT],
        )

    def __del__(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()
        self._resources.close()


@contextmanager
def _unlimited_memory() -> Iterator[None]:
    """Let a process that starts now reserve as much as this user may, as sanitizers do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _number(value: int) -> bytes:
    return struct.pack("<Q", value)

"""Commands as real processes: chained without a shell, with closed pipes and signals."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REFCOMP = [sys.executable, "-m", "refcomp.cli"]


def start(*args: str | Path, stdin: int | None = None, **options: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*REFCOMP, *map(str, args)],
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=options.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
    )


def chain(*commands: list[str | Path]) -> list["subprocess.Popen[bytes]"]:
    """Processes, each of which reads what the one before writes."""
    running: list[subprocess.Popen[bytes]] = []
    for command in commands:
        before = running[-1].stdout if running else None
        running.append(start(*command, stdin=before.fileno() if before else None))
        if before:
            before.close()
    return running


def finish(running: list["subprocess.Popen[bytes]"]) -> tuple[list[int], bytes, bytes]:
    """The exit codes, what the last one wrote, and what all of them said on stderr."""
    output = running[-1].communicate(timeout=120)[0]
    errors = b"".join(p.stderr.read() for p in running[:-1] if p.stderr)
    codes = [process.wait(timeout=120) for process in running]
    for process in running:
        if process.stderr and not process.stderr.closed:
            process.stderr.close()
    return codes, output, errors


@pytest.mark.llvm
def test_the_stages_chain(script: Path) -> None:
    codes, output, errors = finish(
        chain(
            ["lower", script],
            ["pass", "simplify_expressions", "flatten_storage", "vectorize_loops"],
            ["pass", "--all"],
            ["print"],
            ["assemble"],
            ["execute", "--symbol", "n=1000", "--seed", "1", "--json"],
        )
    )
    assert (codes, errors) == ([0] * 6, b"")
    interpreted = chain(
        ["lower", script], ["execute", "--symbol", "n=1000", "--seed", "1", "--json"]
    )
    assert finish(interpreted)[1] == output
    (digest,) = json.loads(output)["outputs"]
    assert (digest["name"], digest["shape"]) == ("C", [1000])


@pytest.mark.tools
def test_a_failing_stage_fails_those_behind_it_with_a_message(script: Path) -> None:
    codes, output, errors = finish(chain(["lower", f"{script}:broken"], ["check"]))
    assert codes == [4, 4]
    assert output == b""
    assert b"the program failed: ZeroDivisionError" in errors


@pytest.mark.tools
def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    many = "".join(f"func f{k}(A: f32[1] out) {{ A[0] = 1.0f32 }}\n" for k in range(5000))
    path.write_text(many)
    process = start("show", path, "--target", "interp")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.tools
def test_an_interrupt_ends_with_its_code(tmp_path: Path) -> None:
    path = tmp_path / "endless.py"
    path.write_text(
        "import sys, time\n"
        "def computation():\n"
        "    sys.stderr.write('ready\\n'); sys.stderr.flush()\n"
        "    time.sleep(100)\n"
    )
    process = start("lower", path)
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120) == (b"", b"interrupted\n")
    assert process.returncode == 130


@pytest.mark.llvm
def test_a_terminal_gets_no_machine_code(script: Path) -> None:
    controller, terminal = pty.openpty()
    running = chain(["lower", script], ["print", "--all-passes"])
    before = running[-1].stdout
    assert before is not None
    process = start("assemble", stdin=before.fileno(), stdout=terminal)
    before.close()
    _, errors = process.communicate(timeout=120)
    os.close(terminal)
    os.close(controller)
    assert process.returncode == 4
    assert b"stdout is a terminal" in errors
    for earlier in running:
        earlier.wait(timeout=120)
        assert earlier.stderr is not None
        earlier.stderr.close()

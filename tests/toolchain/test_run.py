"""A tool that runs, fails to start, hangs, or leaves children behind."""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.toolchain.run import ToolKilled, ToolRunner, finish_tool, start_tool, tool_timeout_s


def _script(folder: Path, body: str) -> str:
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def _is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has collected yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _expect_death(pid: int) -> None:
    for _ in range(500):
        if not _is_alive(pid):
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    pytest.fail(f"process {pid} was left behind")


def test_output_and_status(tmp_path: Path) -> None:
    tool = _script(tmp_path, 'echo "$1"; echo problem >&2; exit 3')
    completed = ToolRunner(60).run([tool, "a b; exit 0"])
    assert completed.stdout == b"a b; exit 0\n"
    assert (completed.status, completed.stderr) == (3, "problem\n")
    assert completed.command == (tool, "a b; exit 0")


def test_the_folder_and_the_empty_input(tmp_path: Path) -> None:
    completed = ToolRunner(60).run([_script(tmp_path, "pwd; cat")], tmp_path)
    assert completed.stdout == f"{tmp_path}\n".encode()


def test_stderr_that_is_no_text_or_has_no_end(tmp_path: Path) -> None:
    body = f"{sys.executable} -c \"import sys; sys.stderr.buffer.write(b'\\xff' * 99999)\""
    completed = ToolRunner(60).run([_script(tmp_path, body)])
    assert completed.stderr.startswith("\ufffd")
    assert completed.stderr.endswith("[cut]")
    assert len(completed.stderr) < 20_000


def test_what_cannot_be_started_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_bytes(b"\x7fELF rubbish")
    path.chmod(0o755)
    for command in ([str(path)], [str(tmp_path / "gone")]):
        with pytest.raises(ToolchainError, match="cannot be started") as caught:
            start_tool(command)
        assert caught.value.command == tuple(command)
        assert caught.value.why


def test_a_tool_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    body = f"sleep 600 & echo $! > {tmp_path}/child; echo so far >&2; wait"
    tool = _script(tmp_path, body)
    process = start_tool([tool, "x"], tmp_path)
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text().strip():
        time.sleep(0.01)
    with pytest.raises(ToolchainError, match=r"^tool was not done after 0\.2 s") as caught:
        finish_tool(process, 0.2, tmp_path)
    assert caught.value.command == (tool, "x")
    assert caught.value.stderr == "so far\n"
    assert caught.value.kept == tmp_path
    assert "REFCOMP_TOOL_TIMEOUT" in str(caught.value)
    _expect_death(process.pid)
    _expect_death(int((tmp_path / "child").read_text()))


def test_a_child_that_escaped_and_holds_the_pipes_does_not_hang_us(tmp_path: Path) -> None:
    body = f"setsid sh -c 'echo $$ > {tmp_path}/child; exec sleep 600' & sleep 600"
    process = start_tool([_script(tmp_path, body)])
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text().strip():
        time.sleep(0.01)
    with pytest.raises(ToolchainError, match="was not done"):
        finish_tool(process, 0.2)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    _expect_death(process.pid)


def test_an_interrupt_kills_the_tool(tmp_path: Path) -> None:
    process = start_tool([_script(tmp_path, "sleep 600")])

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            finish_tool(process, 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    _expect_death(process.pid)


def test_a_runner_that_is_killed_kills_its_tool_and_starts_no_other(tmp_path: Path) -> None:
    runner = ToolRunner(60)
    tool = _script(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(runner.run, [tool])
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.01)
        runner.kill()
        with pytest.raises(ToolKilled):
            result.result()
    _expect_death(int((tmp_path / "pid").read_text()))
    (tmp_path / "pid").unlink()
    with pytest.raises(ToolKilled):
        runner.run([tool])
    assert not (tmp_path / "pid").exists()


def test_time_limit_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFCOMP_TOOL_TIMEOUT", raising=False)
    assert tool_timeout_s() == 120
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", "2.5")
    assert tool_timeout_s() == 2.5


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e308", "1000001"])
def test_a_wrong_time_limit_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("REFCOMP_TOOL_TIMEOUT", text)
    with pytest.raises(UserError, match="not a number of seconds above 0") as caught:
        tool_timeout_s()
    assert text in str(caught.value)

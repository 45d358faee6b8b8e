"""The progress bar: on a terminal, for long builds only, and gone when the build ends."""

import os
import select
import subprocess
import sys
import time
from threading import Thread

import pytest

from refcomp.driver import progress
from refcomp.driver.backends import division
from refcomp.driver.compile import compile_functions
from refcomp.driver.progress import build_progress
from refcomp.foundation.errors import UserError
from refcomp.ir.parser import parse_func

HIDE_CURSOR, SHOW_CURSOR, ERASE_LINE = "\x1b[?25l", "\x1b[?25h", "\x1b[2K"
FUNCS = [
    parse_func(f"func f{k}(A: f32[n] out) {{ for i in range(n) {{ A[i] = {k}.0f32 }} }}")
    for k in range(3)
]


class Terminal:
    """A pseudo-terminal as stderr."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        self.stream = os.fdopen(slave, "w", encoding="utf-8")
        self.text = ""

    def read(self) -> str:
        """All that was written so far."""
        while select.select([self._master], [], [], 0)[0]:
            self.text += os.read(self._master, 65536).decode()
        return self.text

    def wait_for(self, text: str) -> None:
        """Waits until `text` was written."""
        for _ in range(3000):
            if text in self.read():
                return
            time.sleep(0.01)
        raise AssertionError(f"{text!r} was not shown: {self.text!r}")

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def open_terminal(monkeypatch):
    """Makes stderr a terminal. Call it in the test, since pytest sets stderr before each."""
    opened = []

    def make():
        terminal = Terminal()
        opened.append(terminal)
        monkeypatch.setattr(sys, "stderr", terminal.stream)
        return terminal

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "_DELAY_S", 0.0)
    for variable in ("REFCOMP_PROGRESS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(variable, raising=False)
    yield make
    for terminal in opened:
        terminal.close()


def _assert_cleared(text):
    assert HIDE_CURSOR in text and SHOW_CURSOR in text
    assert ERASE_LINE in text[text.rindex("lowered") :]


def test_a_long_build_shows_what_is_done_and_clears_it(open_terminal):
    terminal = open_terminal()

    def made():
        yield FUNCS[0]
        terminal.wait_for("1 of 3 functions lowered, 0 parts compiled")
        yield from FUNCS[1:]

    compile_functions(made(), "interp", 3)
    _assert_cleared(terminal.read())


def test_a_number_of_functions_that_is_not_known_is_not_shown(open_terminal):
    terminal = open_terminal()

    def made():
        yield FUNCS[0]
        terminal.wait_for("1 functions lowered")

    compile_functions(made(), "interp")
    _assert_cleared(terminal.read())


@pytest.mark.llvm
def test_parts_are_counted(open_terminal, monkeypatch):
    terminal = open_terminal()
    monkeypatch.setattr(division, "PART_NODES", 1)

    def made():
        yield from FUNCS
        terminal.wait_for("2 parts compiled")

    compile_functions(made(), "llvm", 3)
    _assert_cleared(terminal.read())


def test_an_exception_clears_the_bar(open_terminal):
    terminal = open_terminal()

    def made():
        yield FUNCS[0]
        terminal.wait_for("functions lowered")
        raise RuntimeError("of the generator")

    with pytest.raises(RuntimeError, match="of the generator"):
        compile_functions(made(), "interp", 3)
    _assert_cleared(terminal.read())


def test_a_warning_does_not_end_up_inside_the_bar(open_terminal):
    terminal = open_terminal()

    def made():
        yield FUNCS[0]
        terminal.wait_for("functions lowered")
        print("a warning", file=sys.stderr)
        terminal.wait_for("a warning")

    compile_functions(made(), "interp", 3)
    assert f"{ERASE_LINE}a warning" in terminal.read()
    assert sys.stderr is terminal.stream


def _timers(monkeypatch):
    """The bars that are going to be shown."""
    started = []

    class Noted(progress.Timer):
        def __init__(self, delay_s, show):
            super().__init__(delay_s, show)
            started.append(delay_s)

    monkeypatch.setattr(progress, "Timer", Noted)
    return started


def test_a_short_build_shows_nothing(open_terminal, monkeypatch):
    terminal = open_terminal()
    monkeypatch.setattr(progress, "_DELAY_S", 1000.0)
    started = _timers(monkeypatch)
    compile_functions(FUNCS, "interp", 3)
    assert started == [1000.0] and terminal.read() == ""


def test_a_build_that_ends_while_the_bar_is_made_shows_nothing(open_terminal, monkeypatch):
    monkeypatch.setattr(progress, "_DELAY_S", 1000.0)
    terminal = open_terminal()
    with build_progress(1) as shown:
        pass
    shown.show()
    assert terminal.read() == ""


def test_the_variable_turns_the_bar_off(open_terminal, monkeypatch):
    open_terminal()
    started = _timers(monkeypatch)
    monkeypatch.setenv("REFCOMP_PROGRESS", "0")
    compile_functions(FUNCS, "interp", 3)
    assert started == []
    monkeypatch.setenv("REFCOMP_PROGRESS", "1")
    compile_functions(FUNCS, "interp", 3)
    assert started == [0.0]
    monkeypatch.setenv("REFCOMP_PROGRESS", "no")
    with pytest.raises(UserError) as caught:
        compile_functions(FUNCS, "interp", 3)
    assert "set it to 0 to build without a progress bar; otherwise set it to 1" in str(caught.value)


def test_a_build_in_a_build_in_a_thread_or_in_a_fork_is_quiet(open_terminal, monkeypatch):
    open_terminal()
    started = _timers(monkeypatch)
    with build_progress(1):
        compile_functions(FUNCS, "interp", 3)
    assert len(started) == 1
    thread = Thread(target=compile_functions, args=(FUNCS, "interp", 3))
    thread.start()
    thread.join()
    assert len(started) == 1
    monkeypatch.setattr(progress, "_PROCESS", os.getpid() + 1)
    compile_functions(FUNCS, "interp", 3)
    assert len(started) == 1


@pytest.mark.parametrize("stream", ["a pipe", None])
def test_nothing_is_printed_where_stderr_is_no_terminal(stream, monkeypatch):
    started = _timers(monkeypatch)
    reader, writer = os.pipe()
    with open(reader, encoding="utf-8") as read, open(writer, "w", encoding="utf-8") as written:
        monkeypatch.setattr(sys, "stderr", written if stream else None)
        compile_functions(FUNCS, "interp", 3)
        written.close()
        assert started == [] and read.read() == ""


def test_a_simple_terminal_shows_nothing(open_terminal, monkeypatch):
    terminal = open_terminal()
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "_DELAY_S", 1000.0)
    with build_progress(1) as shown:
        shown.show()
    assert terminal.read() == ""


def test_rich_is_imported_only_for_a_bar():
    code = (
        "import sys, refcomp; from refcomp.driver.compile import compile_functions\n"
        f"compile_functions([refcomp.parse_func({str(FUNCS[0])!r})], 'interp')\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")

"""Steps run in order in a private folder; a failure tells command, stderr, line and folder."""

from pathlib import Path

import pytest

from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError
from refcomp.toolchain.description import load_description
from refcomp.toolchain.find import find_tools
from refcomp.toolchain.run import ToolRunner
from refcomp.toolchain.steps import fill_arguments, run_steps, write_input

LLVM = load_description("llvm")
SOURCE = Source("one\ntwo\nthree\n", "llvm", ("", "C[i] = A[i]", ""))


def _run(output: str = "so", timeout_s: float = 60, source: Source = SOURCE) -> bytes:
    holes = {**find_tools(LLVM).paths, "mcpu": "native", "mattr": "", "passes": "p"}
    libraries = ("/lib/a", "/lib/b")
    runner = ToolRunner(timeout_s)
    made = run_steps(LLVM, LLVM.outputs[output], source, holes, libraries=libraries, runner=runner)
    return made.data


def test_holes_are_filled_and_libraries_become_several() -> None:
    arguments = ("{tool}", "-x={a}{b}", "{libraries}", "plain{}")
    filled = fill_arguments(arguments, {"tool": "/t", "a": "1; 2", "b": "{a}"}, ("l1", "l2"))
    assert filled == ("/t", "-x=1; 2{a}", "l1", "l2", "plain{}")
    assert fill_arguments(arguments[2:3], {}) == ()


def test_an_argument_with_several_values_is_repeated() -> None:
    holes = {"arch": ("80", "90"), "tool": "/t"}
    filled = fill_arguments(("{tool}", "-gencode={arch}:{arch}", "-o"), holes)
    assert filled == ("/t", "-gencode=80:80", "-gencode=90:90", "-o")


def test_steps_run_in_order_and_the_last_file_comes_back(fake_tools, tmp_path: Path) -> None:
    fake_tools.add_all()
    assert _run() == SOURCE.text.encode()
    runs = [start.split() for start in fake_tools.starts() if "--version" not in start]
    assert [words[0] for words in runs] == ["opt", "llc", "ld.lld"]
    assert runs[0][-1] in runs[1]
    assert runs[1][-1] in runs[2]
    assert [word for word in runs[2] if word.startswith("/lib/")] == ["/lib/a", "/lib/b"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_input_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"kernel\.ll cannot be written"):
        write_input(tmp_path / "gone" / "kernel.ll", b"")


def test_a_failing_step_tells_everything(fake_tools) -> None:
    fake_tools.add_all()
    fake_tools.add("llc", body='echo "llc: error: no such thing" >&2; exit 4')
    with pytest.raises(ToolchainError, match="^llc failed") as caught:
        _run()
    error = caught.value
    assert error.command[0] == str(fake_tools.bin / "llc")
    assert error.stderr == "llc: error: no such thing\n"
    assert error.why == "exit status 4"
    assert error.where is None
    assert error.kept is not None
    assert (error.kept / "kernel.ll").read_text() == SOURCE.text
    assert (error.kept / "optimize.bc").exists()
    assert not any(start.startswith("ld.lld -shared") for start in fake_tools.starts())


@pytest.mark.parametrize(
    ("line", "where"),
    [
        (2, "C[i] = A[i]"),
        (1, "line 1 of the llvm text"),
        (99, "line 99 of the llvm text"),
        (0, "line 0 of the llvm text"),
    ],
)
def test_the_guilty_line_is_traced_back(fake_tools, line: int, where: str) -> None:
    fake_tools.add_all()
    fake_tools.add("opt", body=f'echo "opt: /x/kernel.ll:{line}:5: error: bad" >&2; exit 1')
    with pytest.raises(ToolchainError, match="opt failed") as caught:
        _run()
    assert caught.value.where == where


def test_a_crash_names_the_signal(fake_tools) -> None:
    fake_tools.add_all()
    fake_tools.add("opt", body="kill -SEGV $$")
    with pytest.raises(ToolchainError, match="opt failed") as caught:
        _run()
    assert caught.value.why == "killed by signal 11"


def test_a_warning_that_something_is_ignored_is_a_failure(fake_tools) -> None:
    fake_tools.add_all()
    warning = "'banana' is not a recognized processor for this target (ignoring processor)"
    fake_tools.add("opt", body=f'echo "{warning}" >&2')
    with pytest.raises(ToolchainError, match="opt warned: is not a recognized processor"):
        _run()


def test_a_step_that_hangs(fake_tools) -> None:
    fake_tools.add_all()
    fake_tools.add("opt", body="sleep 600")
    with pytest.raises(ToolchainError, match=r"opt was not done after 0\.2 s") as caught:
        _run(timeout_s=0.2)
    assert caught.value.kept is not None
    assert (caught.value.kept / "kernel.ll").exists()


def test_a_step_that_writes_nothing(fake_tools) -> None:
    fake_tools.add_all()
    fake_tools.add("ld.lld", body="exit 0")
    with pytest.raises(ToolchainError, match="step link wrote nothing") as caught:
        _run()
    assert caught.value.command[0] == str(fake_tools.bin / "ld.lld")

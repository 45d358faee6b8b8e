"""What is timed of a vector add: a right program, the tools' own commands, and the differences."""

import sys

import numpy as np
import pytest

from benchmarks.fresh import call_fresh
from benchmarks.vector_add import workload
from benchmarks.vector_add.program import build_add
from benchmarks.vector_add.workload import build_seconds, commands_of, measure

SCRIPT = """#!/bin/sh
set -e
cd "$(dirname "$0")"
export LLVM_PATH=/usr/lib
/usr/bin/opt '-passes=default<O2>' -mattr= kernel.ll -o optimize.bc
/usr/bin/llc optimize.bc -o emit_object.o
"""


def test_the_commands_are_those_of_the_kept_run(tmp_path):
    folder = tmp_path / "llvm-0123"
    folder.mkdir()
    (folder / "commands.sh").write_text(SCRIPT)
    assert commands_of(tmp_path) == {
        "commands": [
            ["/usr/bin/opt", "-passes=default<O2>", "-mattr=", "kernel.ll", "-o", "optimize.bc"],
            ["/usr/bin/llc", "optimize.bc", "-o", "emit_object.o"],
        ],
        "folder": str(folder),
    }


@pytest.mark.llvm
def test_the_program_adds():
    x = np.arange(37, dtype=np.float32)
    y = np.empty_like(x)
    build_add("twice").entry(x, x, y)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.llvm
def test_the_tools_alone_make_the_code_again(tmp_path):
    call_fresh(workload.build_once, environment={"REFCOMP_KEEP": str(tmp_path)})
    found = commands_of(tmp_path)
    (code,) = tmp_path.glob("*/link.so")
    code.unlink()
    seconds = build_seconds(**found)
    assert code.exists()
    assert len(seconds["builds"]) == len(seconds["tools"]) == len(workload.NAMES)


def test_a_tool_that_fails_ends_the_workload(monkeypatch, tmp_path):
    monkeypatch.setattr(workload, "build_add", lambda name: None)
    with pytest.raises(workload.subprocess.CalledProcessError):
        build_seconds([[sys.executable, "-c", "raise SystemExit(3)"]], str(tmp_path))


def test_rows_have_ratios_to_the_tools_and_differences_from_numpy(monkeypatch):
    """The first build of a process is a row of its own; a later one stands beside its tools."""

    def call_fresh(function, environment, commands=None, folder=""):
        builds = [0.5, 0.3, 0.3, 0.3] if commands else [0.5, 0.003, 0.003, 0.003]
        return {"builds": builds, "tools": [9.0, 0.1, 0.1, 0.1]}

    monkeypatch.setattr(workload, "call_fresh", call_fresh)
    monkeypatch.setattr(workload, "commands_of", lambda kept: {"commands": [["opt"]], "folder": ""})
    monkeypatch.setattr(workload, "_call_rows", lambda is_quick: [])
    times = {"build": [0.11, 0.13], "numpy": [0.1, 0.1]}
    monkeypatch.setattr(workload, "interleave", lambda contenders, rounds: times)
    first, cold, cached, process = measure(is_quick=True)
    assert (first.ours.median, first.is_met) == (0.5, False)
    assert (cold.ratio.median, cold.ours.rounds, cold.is_met) == (pytest.approx(3.0), 9, False)
    assert (cached.ours.median, cached.is_met) == (0.003, True)
    assert (process.ours.median, process.is_met) == (pytest.approx(0.02), True)
    assert (process.peer, process.theirs.median, process.ratio) == ("import numpy", 0.1, None)

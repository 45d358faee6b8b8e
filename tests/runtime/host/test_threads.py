"""The number of threads: from the environment, by hand, and after a fork."""

import os
import reprlib
import subprocess
import sys
from pathlib import Path

import pytest

from refcomp.foundation.errors import UserError
from refcomp.runtime.host import threads
from refcomp.runtime.module import Module


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_THREADS", threads._Threads())
    monkeypatch.delenv("REFCOMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_the_processors_this_process_may_use() -> None:
    assert threads.thread_count() == len(os.sched_getaffinity(0))


def test_usable_cores_are_those_of_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFCOMP_NUM_THREADS", "1")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 5, 7})
    assert threads.usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads.usable_cores() == 1


def test_own_variable_wins_over_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.thread_count() == 3
    monkeypatch.setenv("REFCOMP_NUM_THREADS", " 5 ")
    assert threads.thread_count() == 3, "read once"
    threads.set_thread_count(None)
    assert threads.thread_count() == 5


@pytest.mark.parametrize(
    ("text", "count"), [("4,2", 4), (" 007 ", 7), ("99999999", threads.MAX_THREADS)]
)
def test_openmp_variable(monkeypatch: pytest.MonkeyPatch, text: str, count: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert threads.thread_count() == count


@pytest.mark.parametrize("text", ["", "zero", "0", "-1", "2x"])
def test_openmp_variable_without_a_number_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert threads.thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1025", "9" * 5000, "²"])
def test_own_variable_must_be_a_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("REFCOMP_NUM_THREADS", text)
    with pytest.raises(UserError) as caught:
        threads.thread_count()
    shown = reprlib.repr(text)  # which leaves out the middle of a long one
    assert caught.value.what == f"REFCOMP_NUM_THREADS is {shown}, which is not a number of threads"
    assert caught.value.where == "environment variable REFCOMP_NUM_THREADS"
    assert caught.value.remedy == "set it to a number from 1 to 1024, or unset it"


def test_set_by_hand() -> None:
    shared = threads.shared_thread_count()
    threads.set_thread_count(7)
    assert threads.thread_count() == 7 == shared.value
    for count in (0, -1, 1025, "2", 1.0):
        with pytest.raises(UserError, match=r"is not a number of threads\n.*from 1 to 1024"):
            threads.set_thread_count(count)  # type: ignore[arg-type]
    assert threads.thread_count() == 7


def test_a_forked_process_stays_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    threads.set_thread_count(4)
    shared = threads.shared_thread_count()
    threads._THREADS.run_serial()
    assert threads.thread_count() == 1 == shared.value
    monkeypatch.setenv("REFCOMP_NUM_THREADS", "4")
    threads.set_thread_count(None)
    assert threads.thread_count() == 1
    threads.set_thread_count(1)
    with pytest.raises(UserError, match=r"4 threads in a forked process\n.*\n.*by spawn"):
        threads.set_thread_count(4)


_FORK = """
import os, sys
import numpy as np
from refcomp.runtime import load_module, set_thread_count

set_thread_count(2)
region = load_module(sys.argv[1])["region"]
count = np.zeros(1, np.int32)
bound = region.bind(count)
bound()
print("parent", count[0], flush=True)
if os.fork() == 0:
    bound()
    print("child, bound before", count[0], flush=True)
    region(count)
    print("child, called", count[0], flush=True)
    print("child, loaded", load_module(sys.argv[1])["region"](count), count[0], flush=True)
    os._exit(0)
_, status = os.wait()
print("status", status, flush=True)
bound()
print("parent again", count[0], flush=True)
"""


@pytest.mark.llvm
def test_parallel_code_after_a_fork(module: Module, tmp_path: Path) -> None:
    module.save(tmp_path / "module")
    script = tmp_path / "script.py"
    script.write_text(_FORK)
    # The limit ends a hang, which is how this fails; it measures nothing.
    done = subprocess.run(
        [sys.executable, script, tmp_path / "module"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "parent 2",
        "child, bound before 1",
        "child, called 1",
        "child, loaded None 1",
        "status 0",
        "parent again 2",
    ]

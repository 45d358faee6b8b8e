"""The number of threads: from the environment, and by hand."""

import os
import reprlib

import pytest

from refcomp.foundation.errors import UserError
from refcomp.runtime.host import threads


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

"""Children send what they find, and how they end is noticed."""

import mmap
import os
import signal
import time

from refcomp.mutate import child
from refcomp.mutate.child import Outcome, run_in_child


def test_messages_come_in_order():
    def work(send):
        send({"first": 1})
        send(["second", None])

    assert run_in_child(work, 20) == Outcome(({"first": 1}, ["second", None]))


def test_changes_stay_in_the_child(capfd):
    changed = []

    def work(send):
        changed.append(1)
        os.write(1, b"noise")
        send(len(changed))

    assert run_in_child(work, 20).messages == (1,)
    assert not changed
    assert capfd.readouterr() == ("", "")


def test_an_exception_is_a_message():
    def work(send):
        raise KeyError("x")

    assert run_in_child(work, 20).messages == ({"error": "KeyError: 'x'"},)


def test_a_crash_and_the_messages_before_it():
    def work(send):
        send("before")
        os.kill(os.getpid(), signal.SIGSEGV)

    assert run_in_child(work, 20) == Outcome(("before",), "crashed by SIGSEGV")


def test_an_endless_loop_is_ended():
    def work(send):
        send("before")
        while True:
            time.sleep(1)

    assert run_in_child(work, 0.5) == Outcome(("before",), "did not end")


def test_a_busy_loop_is_ended_by_the_time_of_the_processor():
    def work(send):
        send("before")
        while True:
            pass

    assert run_in_child(work, 300, processor_s=0.5) == Outcome(("before",), "did not end")


def test_handlers_of_libraries_do_not_keep_it_alive():
    def work(send):
        while True:
            pass

    before = signal.signal(signal.SIGXCPU, lambda *_: None)
    try:
        assert run_in_child(work, 300, processor_s=0.5) == Outcome((), "did not end")
    finally:
        signal.signal(signal.SIGXCPU, before)


def test_memory_of_this_process_does_not_count(monkeypatch):
    monkeypatch.setattr(child, "_MAX_NEW_BYTES", 1 << 28)
    reserved = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE)

    def work(send):
        send(len(mmap.mmap(-1, 1 << 27, flags=mmap.MAP_PRIVATE)))
        mmap.mmap(-1, 1 << 29, flags=mmap.MAP_PRIVATE)

    first, second = run_in_child(work, 20).messages
    assert first == 1 << 27 and "Cannot allocate memory" in second["error"]
    reserved.close()


def test_more_than_a_pipe_holds():
    text = "x" * 300_000
    assert run_in_child(lambda send: send(text), 20).messages == (text,)

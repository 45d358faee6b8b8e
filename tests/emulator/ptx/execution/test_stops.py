"""Threads that cannot go on: what is reported of them."""

import numpy as np

from tests.emulator.ptx.texts import HEADER, kernel, kinds, run, words


def test_a_barrier_that_waits_forever_is_found():
    text = kernel("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 0; @!%p1 bar.sync 1; ret;")
    report = run(text, [words(1), np.uint32(0)], block=64)
    assert kinds(report) == ["barrier"]
    assert "a barrier waits forever: 32 threads at barrier 0, 32 threads at barrier 1" in str(
        report.findings[0]
    )


def test_threads_of_a_warp_at_different_barriers_are_found():
    text = kernel("setp.lt.u32 %p1, %r1, 7; @%p1 bar.sync 0; @%p1 ret; bar.sync 0; ret;")
    report = run(text, [words(1), np.uint32(0)], block=32)
    assert kinds(report) == ["barrier"]
    assert "threads of a warp wait at different barriers" in report.findings[0].what


def test_a_loop_without_end_is_found():
    report = run(kernel("$loop: bra $loop;"), [words(1), np.uint32(0)], steps=5000)
    assert kinds(report) == ["endless"]
    what = report.findings[0].what
    assert "no thread of any warp has ended for 5000 instructions; 32 threads still running" in what


def test_an_endless_kernel_is_named_though_another_stands_in_front():
    text = f"{HEADER}.func other() {{ ret; }} .entry k() {{ $loop: bra $loop; }}"
    report = run(text, [], steps=500)
    assert "function k; kernel k" in str(report.findings[0])

"""Shuffles, votes, matches and reductions of warps, whose threads wait for each other."""

import numpy as np
import pytest

from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words


def _run(body, block=32, **options):
    """What each thread stores from %r9 after `body`, and the kinds of findings."""
    data = words(block)
    text = kernel(f"{OWN_PLACE} {body} st.global.u32 [%rd2], %r9; ret;")
    report = run(text, [data, np.uint32(0)], block=block, **options)
    return data.tolist(), kinds(report)


def test_shuffles():
    assert _run("shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;", 64) == ([i ^ 1 for i in range(64)], [])
    body = "shfl.sync.up.b32 %r9|%p1, %r1, 2, 0, -1; @!%p1 mov.u32 %r9, 99;"
    assert _run(body) == ([99, 99, *range(30)], [])
    body = "mul.lo.u32 %r2, %r1, 10; shfl.sync.idx.b32 %r9, %r2, 3, 0x181f, -1;"
    assert _run(body) == ([10 * (i // 8 * 8 + 3) for i in range(32)], [])


def test_votes():
    body = "setp.lt.u32 %p1, %r1, 40; vote.sync.ballot.b32 %r9, %p1, -1;"
    assert _run(body, 64) == ([2**32 - 1] * 32 + [255] * 32, [])
    body = "setp.lt.u32 %p1, %r1, 40; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;"
    assert _run(body, 64) == ([1] * 32 + [0] * 32, [])


def test_matches_and_reductions():
    body = "and.b32 %r2, %r1, 1; match.any.sync.b32 %r9, %r2, -1;"
    assert _run(body) == ([0x55555555, 0xAAAAAAAA] * 16, [])
    assert _run("redux.sync.add.u32 %r9, %r1, -1;") == ([sum(range(32))] * 32, [])
    body = "elect.sync %r9|%p1, 0xfffffff0;"
    assert _run(f"setp.lt.u32 %p2, %r1, 4; mov.u32 %r9, 77; @!%p2 {body}") == (
        [77] * 4 + [4] * 28,
        [],
    )


def test_groups_of_a_warp_take_part_apart():
    """The lower half names itself, and so does the upper one."""
    body = """
        setp.lt.u32 %p1, %r1, 16; selp.b32 %r2, 0xffff, 0xffff0000, %p1;
        redux.sync.max.u32 %r9, %r1, %r2;
    """
    assert _run(body) == ([15] * 16 + [31] * 16, [])


@pytest.mark.parametrize("first", ["lt", "ge"])
def test_threads_wait_for_those_that_they_name(first):
    """Threads come to the instruction by two ways, of which one is longer."""
    body = f"""
        setp.{first}.u32 %p1, %r1, 16; mov.u32 %r3, 0;
        @%p1 bra $there;
    $more:
        add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 50;
        @%p2 bra $more;
    $there:
        shfl.sync.bfly.b32 %r9, %r3, 16, 31, -1;
    """
    short = 16 * [0]
    expected = [50] * 16 + short if first == "lt" else short + [50] * 16
    assert _run(body) == (expected, [])


def test_active_threads():
    body = "setp.lt.u32 %p1, %r1, 5; mov.u32 %r9, 0; @%p1 activemask.b32 %r9;"
    assert _run(body) == ([31] * 5 + [0] * 27, [])


def test_threads_that_never_come_are_found():
    body = """
        setp.lt.u32 %p1, %r1, 5; mov.u32 %r9, 0;
        @%p1 bar.sync 0;
        @!%p1 shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;
    """
    data = words(32)
    report = run(kernel(f"{OWN_PLACE} {body} ret;"), [data, np.uint32(0)])
    assert kinds(report) == ["barrier"]
    assert "that the member mask names never come" in report.findings[0].what


def test_threads_outside_of_their_own_mask_are_found():
    assert _run("redux.sync.add.u32 %r9, %r1, 0xff;")[1] == ["barrier"]


def test_the_value_of_an_absent_thread_is_undefined():
    body = """
        setp.lt.u32 %p1, %r1, 16; mov.u32 %r9, 0;
        @%p1 shfl.sync.down.b32 %r9, %r1, 8, 31, 0xffff;
        setp.eq.u32 %p2, %r9, 3; @%p2 st.global.u32 [%rd2], 0;
    """
    assert _run(body)[1] == ["undefined"] * 2  # of the predicate, and of what is stored at last

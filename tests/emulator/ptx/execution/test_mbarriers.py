"""Barriers in shared memory."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words

_INIT = f"""
    {OWN_PLACE}
    .shared .align 8 .b8 ready[8]; .shared .align 4 .b8 tile[4];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [ready], COUNT;
    bar.sync 0;
"""
_HANDED = (
    _INIT
    + """
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra $wait;
    @%p1 st.shared.u32 [tile], 77;
    mbarrier.arrive.shared::cta.b64 %rd3, [ready];
    ret;
$wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [ready], 0;
    @!%p3 bra $wait;
    ld.shared.u32 %r2, [tile];
    st.global.u32 [%rd2], %r2;
    ret;
"""
).replace("COUNT", "32")


def _run(body, block=64, hazards=False):
    data = words(64)
    report = run(kernel(body), [data, np.uint32(0)], block=block, hazards=hazards)
    return report, data


def test_threads_wait_until_all_have_arrived():
    report, data = _run(_HANDED, hazards=True)
    assert report.findings == ()
    assert data.tolist() == [0] * 32 + [77] * 32


def test_a_phase_that_never_ends_is_found():
    text = kernel(_HANDED.replace("[ready], 32", "[ready], 33"))
    report = run(text, [words(64), np.uint32(0)], block=64, steps=3000)
    assert kinds(report) == ["endless"]
    assert "mbarrier.try_wait" in str(report.findings[0])


def test_a_thread_that_does_not_wait_races():
    report, _ = _run(_HANDED.replace("@!%p3 bra $wait;", ""), hazards=True)
    assert kinds(report) == ["race"]


def test_states_say_which_phase_is_waited_for():
    report, data = _run(
        _INIT.replace("COUNT", "64")
        + """
        mbarrier.arrive.release.cta.shared::cta.b64 %rd3, [ready];
        mbarrier.pending_count.b64 %r2, %rd3;
    $wait:
        mbarrier.test_wait.shared::cta.b64 %p3, [ready], %rd3;
        @!%p3 bra $wait;
        st.global.u32 [%rd2], %r2;
        @%p1 mbarrier.inval.shared::cta.b64 [ready];
        ret;
    """
    )
    assert report.findings == ()
    assert sorted(data.tolist()) == list(range(1, 65))


def test_a_generic_address_and_threads_that_drop_out():
    report, data = _run(
        _INIT.replace("COUNT", "64")
        + """
        mov.u64 %rd4, ready; cvta.shared.u64 %rd4, %rd4;
        setp.ge.u32 %p2, %r1, 32;
        @%p2 mbarrier.arrive_drop.b64 %rd3, [%rd4];
        @%p2 ret;
        mbarrier.arrive.b64 %rd3, [%rd4];
        mbarrier.arrive.b64 %rd3, [%rd4];
    $wait:
        mbarrier.test_wait.b64 %p3, [%rd4], %rd3;
        @!%p3 bra $wait;
        st.global.u32 [%rd2], 5;
        ret;
    """
    )
    assert report.findings == ()
    assert data.tolist() == [5] * 32 + [0] * 32


def test_a_barrier_that_nothing_initialized_is_found():
    report, _ = _run(_HANDED.replace("@%p1 mbarrier.init.shared::cta.b64 [ready], 32;", ""))
    assert set(kinds(report)) == {"barrier"}
    assert "that nothing has initialized" in report.findings[0].what


def test_too_many_arrivals_are_found():
    report, _ = _run(
        _INIT.replace("COUNT", "2") + "mbarrier.arrive.shared.b64 %rd3, [ready], 3; ret;", block=1
    )
    assert kinds(report) == ["barrier"]
    assert "arrives 3 times at a barrier (mbarrier) that waits for 2" in report.findings[0].what


def test_a_barrier_outside_of_shared_memory_is_found():
    report, _ = _run("mbarrier.init.b64 [%rd1], 3; ret;", block=1)
    assert kinds(report) == ["barrier"]
    assert "outside of shared memory" in report.findings[0].what


def test_initialization_must_be_seen_by_others():
    report, _ = _run(_HANDED.replace("bar.sync 0;", "bar.warp.sync -1;"), hazards=True)
    assert "race" in kinds(report)


def test_barriers_of_other_blocks_are_refused():
    with pytest.raises(Unsupported, match="mbarrier.arrive.release.cluster.* is not emulated"):
        _run("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1]; ret;", block=1)


# Threads 32 and 33 arrive in a phase each time. Thread 32 stores behind the first phase. Thread 0
# waits for PARITY, and loads.
_LATE = (
    _INIT
    + """
    .shared .align 4 .b8 other[8];
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra $reader;
    setp.gt.u32 %p3, %r1, 33;
    @%p3 ret;
    setp.eq.u32 %p4, %r1, 32;
    @%p4 st.shared.u32 [tile], 7;
    mbarrier.arrive.shared.b64 %rd5, [ready];
$first:
    mbarrier.try_wait.parity.shared.b64 %p5, [ready], 0;
    @!%p5 bra $first;
    @%p4 st.shared.u32 [PLACE], 9;
    @%p4 mbarrier.arrive.shared.b64 %rd5, [ready];
    ret;
$reader:
    @!%p1 ret;
    mov.u32 %r9, 0;
$delay:
    add.u32 %r9, %r9, 1; setp.lt.u32 %p7, %r9, 400;
    @%p7 bra $delay;
$wait:
    mbarrier.try_wait.parity.shared.b64 %p5, [ready], 0;
    @!%p5 bra $wait;
    ld.shared.u32 %r5, [tile];
    st.global.u32 [%rd1], %r5;
    ret;
"""
).replace("COUNT", "2")


def test_arrival_in_a_later_phase_orders_nothing_for_who_waits_for_an_earlier_one():
    report, _ = _run(_LATE.replace("PLACE", "tile"), hazards=True)
    assert set(kinds(report)) == {"race"}
    report, data = _run(_LATE.replace("PLACE", "other"), hazards=True)
    assert report.findings == ()
    assert data[0] == 7


def test_end_of_a_phase_orders_arrivals_in_all_earlier_ones():
    """Thread 33 stores, and arrives in the first phase. Thread 0 waits for the second alone."""
    text = _LATE.replace("PLACE", "other").replace("%p4, %r1, 32", "%p4, %r1, 33")
    text = text.replace("@%p4 mbarrier", "@!%p4 mbarrier").replace(
        "@%p4 st.shared.u32 [other], 9;", ""
    )
    text = text.replace("%rd5, [ready];\n    ret;", "%rd5, [ready], 2;\n    ret;")
    head, wait, tail = text.partition("$wait:")
    report, data = _run(head + wait + tail.replace("[ready], 0", "[ready], 1"), hazards=True)
    assert report.findings == ()
    assert data[0] == 7

"""Asynchronous copies, and the waits for them."""

import numpy as np
import pytest

from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words

_COPY = f"""
    {OWN_PLACE}
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r3, %r2, %r3;
    mul.wide.u32 %rd3, %r1, 16; add.s64 %rd3, %rd1, %rd3;
    cp.async.cg.shared.global [%r3], [%rd3], 16;
    cp.async.commit_group;
    WAIT
    ld.shared.u32 %r4, [%r3+4]; add.u32 %r4, %r4, 1000;
    add.s64 %rd3, %rd3, 4; st.global.u32 [%rd3], %r4;
    ret;
"""


@pytest.mark.parametrize("wait", ["cp.async.wait_group 0;", "cp.async.wait_all;"])
def test_a_copy_is_there_behind_the_wait(wait):
    data = np.arange(64, dtype=np.uint32)
    text = kernel(_COPY.replace("WAIT", wait))
    assert run(text, [data, np.uint32(0)], block=16).findings == ()
    assert data[1::4].tolist() == [i + 1000 for i in range(1, 64, 4)]


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;"])
def test_a_missing_wait_is_found(wait):
    text = kernel(_COPY.replace("WAIT", wait))
    report = run(text, [np.arange(64, dtype=np.uint32), np.uint32(0)], block=16)
    assert kinds(report) == ["wait"]
    assert "ld.shared.u32 %r4" in str(report.findings[0])


def test_the_latest_groups_may_stay_in_flight():
    text = kernel("""
        .shared .align 16 .b8 tile[64];
        cp.async.ca.shared.global [tile], [%rd1], 4; cp.async.commit_group;
        cp.async.ca.shared.global [tile+4], [%rd1+4], 4; cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u32 %r2, [tile]; st.global.u32 [%rd1+8], %r2;
        ld.shared.u32 %r2, [tile+4]; st.global.u32 [%rd1+12], %r2;
        ret;
    """)
    data = np.array([5, 6, 0, 0], np.uint32)
    report = run(text, [data, np.uint32(0)], block=1)
    assert kinds(report) == ["wait"] and "[tile+4]" in str(report.findings[0])
    assert data.tolist() == [5, 6, 5, 6]


def test_what_is_not_copied_is_zero():
    text = kernel("""
        .shared .align 16 .b8 tile[16];
        ld.param.u32 %r2, [n];
        cp.async.ca.shared.global [tile], [%rd1], 16, %r2;
        cp.async.wait_all;
        ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [tile];
        st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
        ret;
    """)
    for count in (0, 4, 12, 16):
        data = np.arange(1, 5, dtype=np.uint32)
        assert run(text, [data, np.uint32(count)], block=1).findings == ()
        assert data.tolist() == [i if 4 * i <= count else 0 for i in range(1, 5)]


def test_reductions_by_copies_are_refused():
    copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;"
    text = kernel(f"{copy} ret;")
    with pytest.raises(Unsupported, match=r"cp\.reduce.* is not emulated"):
        run(text, [words(1), np.uint32(0)])


def test_a_barrier_waits_for_copies():
    body = f"""
        {OWN_PLACE}
        .shared .align 16 .b8 tile[128]; .shared .align 8 .b8 ready[8];
        mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; sub.u32 %r5, 124, %r3;
        add.u32 %r5, %r5, %r2;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 mbarrier.init.shared.b64 [ready], 32;
        bar.sync 0;
        cp.async.ca.shared.global [%r4], [%rd2], 4;
        cp.async.mbarrier.arrive.noinc.shared.b64 [ready];
    $wait:
        mbarrier.test_wait.parity.shared.b64 %p3, [ready], 0;
        @!%p3 bra $wait;
        ld.shared.u32 %r6, [%r5];
        st.global.u32 [%rd2], %r6;
        ret;
    """
    data = np.arange(32, dtype=np.uint32)
    assert run(kernel(body), [data, np.uint32(0)], hazards=True).findings == ()
    assert data.tolist() == list(range(31, -1, -1))
    early = body.replace("@!%p3 bra $wait;", "").replace(
        "mbarrier.test_wait.parity.shared.b64 %p3, [ready], 0;", ""
    )
    assert "wait" in kinds(run(kernel(early), [data, np.uint32(0)]))
    counted = body.replace("arrive.noinc", "arrive").replace(
        "$wait:", "mbarrier.arrive.shared.b64 _, [ready];\n$wait:"
    )
    data = np.arange(32, dtype=np.uint32)
    assert run(kernel(counted), [data, np.uint32(0)], hazards=True).findings == ()

"""Branches and barriers: which threads run."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.emulator.ptx.texts import HEADER, OWN_PLACE, kernel, kinds, run, words


def test_threads_that_part_meet_again():
    text = kernel(f"""
        {OWN_PLACE}
        and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
        mov.u32 %r3, 5;
        @%p1 bra $even;
        mul.lo.u32 %r3, %r1, 10;
        bra $both;
    $even:
        add.u32 %r3, %r1, 100;
    $both:
        st.global.u32 [%rd2], %r3;
        ret;
    """)
    data = words(64)
    assert run(text, [data, np.uint32(0)], block=64).findings == ()
    assert data.tolist() == [i * 10 if i % 2 else i + 100 for i in range(64)]


def test_loops_run_as_often_as_each_thread_says():
    text = kernel(f"""
        {OWN_PLACE}
        mov.u32 %r2, 0; mov.u32 %r3, 0;
    $loop:
        setp.ge.u32 %p1, %r2, %r1;
        @%p1 bra $end;
        add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1;
        bra $loop;
    $end:
        st.global.u32 [%rd2], %r3;
        ret;
    """)
    data = words(40)
    assert run(text, [data, np.uint32(0)], block=40).findings == ()
    assert data.tolist() == [i * (i - 1) // 2 for i in range(40)]


def test_a_predicate_guards_any_instruction():
    text = kernel(f"""
        {OWN_PLACE}
        setp.lt.u32 %p1, %r1, 3;
        mov.u32 %r2, 1;
        @%p1 mov.u32 %r2, 2;
        @!%p1 st.global.u32 [%rd2], %r2;
        @%p1 ret;
        add.u32 %r2, %r2, 4;
        st.global.u32 [%rd2], %r2;
        ret;
    """)
    data = words(5)
    assert run(text, [data, np.uint32(0)], block=5).findings == ()
    assert data.tolist() == [0, 0, 0, 5, 5]


def test_a_branch_by_an_index_goes_to_one_of_a_list():
    text = kernel(f"""
        {OWN_PLACE}
        rem.u32 %r2, %r1, 3;
    $list: .branchtargets $a, $b, $c;
        brx.idx %r2, $list;
    $a: mov.u32 %r3, 7; bra $end;
    $b: mov.u32 %r3, 8; bra $end;
    $c: mov.u32 %r3, 9;
    $end:
        st.global.u32 [%rd2], %r3;
        ret;
    """)
    data = words(6)
    assert run(text, [data, np.uint32(0)], block=6).findings == ()
    assert data.tolist() == [7, 8, 9, 7, 8, 9]
    wrong = text.replace("rem.u32 %r2, %r1, 3", "add.u32 %r2, %r1, 1")
    with pytest.raises(UserError, match="a branch of k has no target 6"):
        run(wrong, [data, np.uint32(0)], block=6)


def test_branch_by_an_index_that_nothing_wrote_is_found():
    text = kernel("$list: .branchtargets $a, $a; brx.idx %r2, $list; $a: ret;")
    report = run(text, [words(1), np.uint32(0)], block=6)
    assert kinds(report) == ["undefined"]
    assert report.findings[0].what == "the index of a branch depends on bits that nothing wrote"
    assert report.findings[0].times == 6


def test_a_trap_stops_the_kernel():
    with pytest.raises(UserError, match="the kernel k stopped by a trap"):
        run(kernel("trap; ret;"), [words(1), np.uint32(0)])


SHIFTED = f"""
    {OWN_PLACE}
    .shared .align 4 .b8 tile[256];
    mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    add.u32 %r5, %r1, 1; and.b32 %r5, %r5, 63; shl.b32 %r5, %r5, 2; add.u32 %r5, %r2, %r5;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd2], %r6;
    ret;
"""


def test_a_barrier_orders_the_threads_of_a_block():
    data = words(64)
    assert run(kernel(SHIFTED), [data, np.uint32(0)], block=64).findings == ()
    assert data.tolist() == [*range(1, 64), 0]


def test_threads_that_have_ended_are_not_waited_for():
    text = kernel(
        f"{OWN_PLACE} setp.gt.u32 %p1, %r1, 9; @%p1 exit; bar.sync 0; st.global.u32 [%rd2], 1; ret;"
    )
    data = words(40)
    assert run(text, [data, np.uint32(0)], block=40).findings == ()
    assert data.tolist() == [1] * 10 + [0] * 30


def test_barriers_of_a_part_of_the_block():
    """The first warp waits at barrier 1 with the second one, which only arrives there."""
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 4 .b8 tile[4];
        setp.lt.u32 %p1, %r1, 32;
        @%p1 bra $first;
        st.shared.u32 [tile], 77;
        bar.arrive 1, 64;
        ret;
    $first:
        bar.sync 1, 64;
        ld.shared.u32 %r2, [tile];
        st.global.u32 [%rd2], %r2;
        ret;
    """)
    data = words(32)
    assert run(text, [data, np.uint32(0)], block=64).findings == ()
    assert data.tolist() == [77] * 32


def test_threads_that_wait_for_each_other_get_their_turn():
    """Thread 40 waits in a loop for what thread 3 writes behind it."""
    text = kernel(f"""
        {OWN_PLACE}
        setp.eq.u32 %p1, %r1, 40;
        @!%p1 bra $others;
    $wait:
        ld.volatile.global.u32 %r2, [%rd1];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra $wait;
        st.global.u32 [%rd2], %r2;
        ret;
    $others:
        setp.eq.u32 %p3, %r1, 3;
        @%p3 st.volatile.global.u32 [%rd1], 5;
        ret;
    """)
    data = words(64)
    assert run(text, [data, np.uint32(0)], block=64).findings == ()
    assert (data[0], data[40]) == (5, 5)


def test_blocks_run_together_and_in_batches():
    text = kernel("""
        mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
        mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r6, %r6, %r3;
        mad.lo.u32 %r4, %r5, %r6, %r4;
        mul.wide.u32 %rd2, %r4, 4; add.s64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], %r4;
        ret;
    """)
    data = words(7 * 3 * 1000)
    assert run(text, [data, np.uint32(0)], grid=(7, 3, 1), block=1000).findings == ()
    assert (data == np.arange(21000)).all()


def test_registers_that_nothing_wrote_are_found():
    text = kernel(f"{OWN_PLACE} setp.eq.u32 %p1, %r9, 0; @%p1 ret; ret;")
    report = run(text, [words(1), np.uint32(0)])
    assert kinds(report) == ["undefined"]
    assert "a predicate depends on bits that nothing wrote" in report.findings[0].what


def test_the_file_names_its_kernels():
    with pytest.raises(UserError, match="the PTX has no kernel 'k'"):
        run(f"{HEADER}.visible .entry other() {{ ret; }}", [])


def test_barriers_reduce_predicates():
    text = kernel(f"""
        {OWN_PLACE}
        mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 40, %r1; mul.wide.u32 %rd2, %r3, 4;
        add.s64 %rd2, %rd1, %rd2;
        setp.lt.u32 %p1, %r3, 43;
        bar.red.popc.u32 %r4, 0, %p1;
        barrier.cta.red.or.aligned.pred %p2, 0, 40, %p1;
        bar.red.and.pred %p3, 0, !%p1;
        selp.u32 %r5, 100, 0, %p2; selp.u32 %r6, 1000, 0, %p3;
        add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
        st.global.u32 [%rd2], %r4;
        ret;
    """)
    data = words(120)
    assert run(text, [data, np.uint32(0)], grid=3, block=40, hazards=True).findings == ()
    assert data.tolist() == [140] * 40 + [103] * 40 + [1000] * 40


def test_threads_wait_for_their_warp_at_its_barrier():
    """Thread 0 comes late, by a loop whose instructions stand behind the barrier."""
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 4 .b8 tile[4];
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra $late;
    $meet:
        bar.warp.sync -1;
        ld.shared.u32 %r2, [tile];
        st.global.u32 [%rd2], %r2;
        ret;
    $late:
        st.shared.u32 [tile], 9;
        bra $meet;
    """)
    data = words(32)
    assert run(text, [data, np.uint32(0)], hazards=True).findings == ()
    assert data.tolist() == [9] * 32


def test_threads_that_name_different_counts_at_a_barrier_are_found():
    text = kernel("""
        setp.lt.u32 %p1, %r1, 32;
        @%p1 bar.sync 1, 64;
        @!%p1 bar.arrive 1, 32;
        bar.sync 0;
        ret;
    """)
    report = run(text, [words(1), np.uint32(0)], block=64)
    assert kinds(report)[0] == "barrier"
    what = "a barrier is for 32 threads here, and for 64 where others wait"
    assert report.findings[0].what == what
    assert run(text.replace("1, 32", "1, 64"), [words(1), np.uint32(0)], block=64).findings == ()


def test_barriers_that_blocks_do_not_have_are_refused():
    with pytest.raises(UserError, match="the kernel k names the barrier 20"):
        run(kernel("bar.sync 20; ret;"), [words(1), np.uint32(0)])

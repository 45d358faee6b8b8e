"""Data races are found, and what orders accesses is not taken for one."""

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words

_SHIFT = f"""
    {OWN_PLACE}
    .shared .align 4 .b8 tile[512];
    mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
    st.shared.u32 [%r4], %r1;
    BARRIER
    xor.b32 %r5, %r1, DISTANCE; shl.b32 %r5, %r5, 2; add.u32 %r5, %r2, %r5;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd2], %r6;
    ret;
"""


def check(text, arguments, grid=1, block=64):
    """The kinds of the findings of a run that looks for races."""
    gpu = EmulatedNvidiaGpu(size=16 << 20, hazards=True)
    return kinds(gpu.run(gpu.load(text), "k", (grid, 1, 1), (block, 1, 1), arguments))


@pytest.mark.parametrize(
    ("barrier", "distance", "found"),
    [
        ("bar.sync 0;", 1, []),
        ("bar.sync 0;", 32, []),
        ("", 32, ["race"]),
        ("", 1, ["race"]),
        ("", 0, []),
        ("bar.warp.sync -1;", 1, []),
        ("bar.warp.sync -1;", 32, ["race"]),
    ],
)
def test_exchanges_in_shared_memory(barrier, distance, found):
    text = kernel(_SHIFT.replace("BARRIER", barrier).replace("DISTANCE", str(distance)))
    assert check(text, [words(64), np.uint32(0)]) == found


def test_a_write_after_reads_of_others():
    """All threads read a place that the first one then overwrites."""
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 4 .b8 tile[4];
        setp.eq.u32 %p1, %r1, 0;
        @%p1 st.shared.u32 [tile], 5;
        bar.sync 0;
        ld.shared.u32 %r2, [tile];
        BARRIER
        @%p1 st.shared.u32 [tile], 6;
        st.global.u32 [%rd2], %r2;
        ret;
    """)
    data = [words(64), np.uint32(0)]
    assert check(text.replace("BARRIER", "bar.sync 0;"), data) == []
    assert check(text.replace("BARRIER", ""), data) == ["race"]


def test_a_load_of_what_nothing_wrote_is_no_race():
    """LLVM loads all threads' copy in front of a loop in which one of them writes it."""
    text = kernel("""
        .shared .align 4 .b8 tile[4];
        setp.eq.u32 %p1, %r1, 0;
        ld.shared.u32 %r2, [tile];
        @%p1 st.shared.u32 [tile], 6;
        @%p1 st.global.u32 [%rd1], 6;
        USE
        ret;
    """)
    assert check(text.replace("USE", ""), [words(1), np.uint32(0)]) == []
    used = text.replace("USE", "setp.eq.u32 %p1, %r2, 3; @%p1 trap;")
    assert "undefined" in check(used, [words(1), np.uint32(0)])


@pytest.mark.parametrize(("value", "found"), [("7", []), ("%r1", ["race"])])
def test_several_threads_write_a_place_at_once(value, found):
    assert check(kernel(f"st.global.u32 [%rd1], {value}; ret;"), [words(1), np.uint32(0)]) == found


_BLOCKS = """
    mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r1, 0;
    @!%p2 ret;
    mul.wide.u32 %rd3, %r2, 4; add.s64 %rd3, %rd1, %rd3;
    st.global.u32 [%rd3+4], %r2;
    FENCE
    atom.global.add.u32 %r3, [%rd1], 1;
    setp.eq.u32 %p1, %r3, 2;
    @!%p1 ret;
    FENCE
    ld.global.u32 %r4, [%rd1+4]; ld.global.u32 %r5, [%rd1+8]; ld.global.u32 %r6, [%rd1+12];
    add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
    st.global.u32 [%rd1+16], %r4;
    ret;
"""


def test_the_last_block_adds_up_what_all_wrote():
    """It may, behind a fence and an atomic counter."""
    data = words(5)
    assert (
        check(kernel(_BLOCKS.replace("FENCE", "fence.acq_rel.gpu;")), [data, np.uint32(0)], 3) == []
    )
    assert data[4] == 3
    assert check(kernel(_BLOCKS.replace("FENCE", "")), [words(5), np.uint32(0)], 3) == ["race"] * 2


def test_blocks_that_write_the_same_place():
    text = kernel("mov.u32 %r2, %ctaid.x; st.global.u32 [%rd1], %r2; ret;")
    assert check(text, [words(1), np.uint32(0)], grid=1) == []
    assert check(text, [words(1), np.uint32(0)], grid=2) == ["race"]


def test_atomic_updates_do_not_race_but_with_other_accesses():
    text = kernel(f"""
        {OWN_PLACE}
        red.global.add.u32 [%rd1], 1; BARRIER ld.global.u32 %r2, [%rd1];
        st.global.u32 [%rd2+4], %r2; ret;
    """)
    assert check(text.replace("BARRIER", "bar.sync 0;"), [words(65), np.uint32(0)]) == []
    assert check(text.replace("BARRIER", ""), [words(65), np.uint32(0)]) == ["race"]
    assert check(text.replace("BARRIER ld", "ld.volatile"), [words(65), np.uint32(0)]) == []


def test_bytes_beside_each_other_are_no_race():
    text = kernel("cvt.u64.u32 %rd2, %r1; add.s64 %rd2, %rd1, %rd2; st.global.u8 [%rd2], %r1; ret;")
    assert check(text, [words(16), np.uint32(0)]) == []


def test_arrays_that_are_not_writeable_are_not_written():
    data = words(4)
    data.flags.writeable = False
    text = kernel("st.global.u32 [%rd1], 3; ld.global.u32 %r2, [%rd1]; ret;")
    assert check(text, [data, np.uint32(0)], block=1) == ["read-only"]


def test_a_write_to_another_block_needs_a_fence_behind_it():
    """Both blocks make a fence, but only one that comes behind the write orders it."""
    text = """
        mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 0;
        @!%p1 bra $second;
        BEFORE
        @%p1 st.global.u32 [%rd1], 7;
        BEHIND
        st.volatile.global.u32 [%rd1+4], 1;
        ret;
    $second:
        ld.volatile.global.u32 %r3, [%rd1+4];
        setp.eq.u32 %p2, %r3, 0;
        @%p2 bra $second;
        fence.acq_rel.gpu;
        ld.global.u32 %r4, [%rd1];
        st.global.u32 [%rd1+8], %r4;
        ret;
    """
    fence = "fence.acq_rel.gpu;"
    for before, behind, wanted in ((fence, "", ["race"]), ("", fence, [])):
        data = words(3)
        body = kernel(text.replace("BEFORE", before).replace("BEHIND", behind))
        report = run(body, [data, np.uint32(0)], grid=2, block=1, hazards=True)
        assert kinds(report) == wanted
        assert data.tolist() == [7, 1, 7]


def test_a_thread_of_a_warp_that_reads_late_races_with_a_write():
    """Of several readers at once, each counts where clocks say what threads know."""
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 4 .b8 tile[4];
        setp.eq.u32 %p1, %r1, 31;
        @%p1 st.shared.u32 [tile], 3;
        bar.sync 1, 32;
        ld.shared.u32 %r2, [tile];
        BARRIER
        @%p1 st.shared.u32 [tile], 4;
        st.global.u32 [%rd2], %r2;
        ret;
    """)
    for barrier, wanted in (("", ["race"]), ("bar.warp.sync -1;", [])):
        body = text.replace("BARRIER", barrier)
        report = run(body, [words(32), np.uint32(0)], hazards=True)
        assert kinds(report) == wanted

"""Loads and stores in all spaces, and the errors that are found in them."""

import numpy as np
import pytest

from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, run, words


def test_vectors_and_narrow_types():
    text = kernel("""
        mul.wide.u32 %rd2, %r1, 16; add.s64 %rd2, %rd1, %rd2;
        ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd2];
        ld.global.s8 %r6, [%rd2]; ld.global.u8 %r7, [%rd2];
        ld.global.s16 %r8, [%rd2+2];
        st.global.v2.u32 [%rd2], {%r6, %r7};
        st.global.u16 [%rd2+8], %r8; st.global.u8 [%rd2+10], %r5; st.global.u8 [%rd2+11], %r4;
        ret;
    """)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2**32, (9, 4)).astype(np.uint32)
    given = data.copy()
    assert run(text, [data, np.uint32(0)], block=9).findings == ()
    first = given.view(np.uint8)[:, 0]
    assert (data[:, 0].view(np.int32) == first.view(np.int8)).all()
    assert (data[:, 1] == first).all()
    expected = given.view(np.uint16)[:, 1] | given[:, 3] % 256 << 16 | given[:, 2] % 256 << 24
    assert (data[:, 2] == expected).all()


def test_generic_addresses_lead_to_all_spaces():
    """The threads of one instruction go to global, shared and local memory."""
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 4 .b8 tile[128]; .local .align 4 .b8 own[8];
        mov.u64 %rd3, own; cvta.local.u64 %rd4, %rd3; add.s64 %rd4, %rd4, 4;
        mov.u64 %rd5, tile; cvta.shared.u64 %rd6, %rd5; mul.wide.u32 %rd7, %r1, 4;
        add.s64 %rd6, %rd6, %rd7;
        rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1;
        mov.u64 %rd8, %rd2;
        @%p1 mov.u64 %rd8, %rd4; @%p2 mov.u64 %rd8, %rd6;
        add.u32 %r3, %r1, 50;
        st.u32 [%rd8], %r3;
        ld.u32 %r4, [%rd8];
        isspacep.shared %p3, %rd8; selp.u32 %r5, 1000, 0, %p3; add.u32 %r4, %r4, %r5;
        st.global.u32 [%rd2], %r4;
        ret;
    """)
    data = words(32)
    assert run(text, [data, np.uint32(0)]).findings == ()
    assert data.tolist() == [i + 50 + 1000 * (i % 3 == 1) for i in range(32)]


@pytest.mark.parametrize("size", [32, 64])
def test_an_address_of_32_bits_wraps_around_in_shared_and_local_memory(size):
    # %r2 = 4 * i - 16, as nvcc writes for tile[i - 4 + 4].
    text = kernel(f"""
        {OWN_PLACE}
        .shared .align 16 .b8 tile[128]; .local .align 16 .b8 own[128];
        shl.b32 %r2, %r1, 2; sub.u32 %r2, %r2, 16; cvt.u64.u32 %rd3, %r2;
        st.shared.u32 [%{"r2" if size == 32 else "rd3"}+16], %r1;
        st.local.u32 [%r2+16], %r1;
        ld.shared.u32 %r3, [%r2+16]; ld.local.u32 %r4, [%r2+16]; add.u32 %r3, %r3, %r4;
        st.global.u32 [%rd2], %r3;
        ret;
    """)
    data = words(32)
    found = run(text, [data, np.uint32(0)])
    if size == 32:
        assert kinds(found) == []
        assert data.tolist() == [2 * i for i in range(32)]
    else:  # 64 bits hold the sum: it lies beyond the memory
        assert set(kinds(found)) == {"out of bounds", "undefined"}


def test_constants_and_global_variables_have_their_initial_values():
    text = kernel(
        f"""
        {OWN_PLACE}
        ld.const.u32 %r2, [table+4];
        mov.u64 %rd3, counts; cvta.global.u64 %rd3, %rd3; ld.u32 %r3, [%rd3+8];
        ld.global.u64 %rd4, [where]; ld.global.u32 %r4, [%rd4];
        add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
        st.global.u32 [%rd2], %r2;
        ret;
        """,
        before=".const .align 4 .u32 table[2] = {3, 40};\n"
        ".global .align 4 .u32 counts[4] = {1, 2, 500};\n"
        ".global .align 8 .u64 where = counts;\n",
    )
    data = words(2)
    assert run(text, [data, np.uint32(0)], block=2).findings == ()
    assert data.tolist() == [541, 541]


def test_local_memory_is_a_threads_own():
    text = kernel(f"""
        {OWN_PLACE}
        .local .align 4 .b8 own[16];
        mov.u64 %rd3, own;
        and.b32 %r2, %r1, 3; mul.wide.u32 %rd4, %r2, 4; add.s64 %rd3, %rd3, %rd4;
        st.local.u32 [%rd3], %r1;
        ld.local.u32 %r3, [%rd3];
        st.global.u32 [%rd2], %r3;
        ret;
    """)
    data = words(64)
    assert run(text, [data, np.uint32(0)], block=64).findings == ()
    assert data.tolist() == list(range(64))


@pytest.mark.parametrize(
    ("body", "kind", "what"),
    [
        (
            "ld.global.u32 %r2, [%rd1+16]; st.global.u32 [%rd1], %r2; ret;",
            "out of bounds",
            "reads 4 bytes that end 4 bytes behind the argument data (16 bytes)",
        ),
        ("st.global.u32 [%rd1-4], %r1; ret;", "out of bounds", "writes 4 bytes"),
        ("st.global.u32 [%rd1+2], %r1; ret;", "misaligned", "an address is not a multiple of 4"),
        (
            ".shared .align 4 .b8 tile[64]; mov.u32 %r2, 64; st.shared.u32 [%r2], %r1; ret;",
            "out of bounds",
            "accesses 4 bytes at 64 of shared memory; a block has 64",
        ),
        (
            ".local .align 4 .b8 own[8]; st.local.u32 [own+8], %r1; ret;",
            "out of bounds",
            "accesses 4 bytes at 8 of local memory; a thread has 8",
        ),
        ("ld.global.u32 %r3, [%rd9]; ret;", "undefined", "an address depends on bits"),
    ],
)
def test_wrong_accesses_are_found(body, kind, what):
    report = run(kernel(body), [words(4), np.uint32(0)], block=1)
    assert kind in kinds(report)
    text = str(next(one for one in report.findings if one.kind == kind))
    assert what in text and "kernel k, block (0, 0, 0), thread (0, 0, 0)" in text


def test_what_nothing_wrote_is_found_where_it_matters():
    """To move such bits is no error, to branch by them is."""
    text = kernel(f"""
        .shared .align 4 .b8 tile[128];
        {OWN_PLACE}
        ld.shared.u32 %r2, [tile]; st.shared.u32 [tile+4], %r2; ld.shared.u32 %r3, [tile+4];
        and.b32 %r3, %r3, 0; setp.eq.u32 %p1, %r3, 0; @%p1 st.global.u32 [%rd2], 1;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 st.global.u32 [%rd2], 2;
        ret;
    """)
    report = run(text, [words(1), np.uint32(0)], block=1)
    assert kinds(report) == ["undefined"]
    assert report.findings[0].instruction.text.startswith("@%p1 st.global.u32 [%rd2], 2")


def test_blocks_have_shared_memory_of_their_own():
    text = kernel("""
        .shared .align 4 .b8 tile[4];
        mov.u32 %r2, %ctaid.x;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 st.shared.u32 [tile], %r2;
        bar.sync 0;
        ld.shared.u32 %r3, [tile];
        mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r2, %r4, %r1;
        mul.wide.u32 %rd2, %r5, 4; add.s64 %rd2, %rd1, %rd2;
        st.global.u32 [%rd2], %r3;
        ret;
    """)
    data = words(3 * 33)
    assert run(text, [data, np.uint32(0)], grid=3, block=33).findings == ()
    assert data.tolist() == [0] * 33 + [1] * 33 + [2] * 33


def test_dynamic_shared_memory_lies_behind_the_other():
    text = kernel(
        f"""
        {OWN_PLACE}
        .shared .align 4 .b8 fixed[12];
        mov.u32 %r2, fixed; mov.u32 %r3, more; sub.u32 %r4, %r3, %r2;
        shl.b32 %r5, %r1, 2; add.u32 %r5, %r3, %r5;
        st.shared.u32 [%r5], %r4; ld.shared.u32 %r6, [%r5];
        st.global.u32 [%rd2], %r6;
        ret;
        """,
        before=".extern .shared .align 16 .b8 more[];\n",
    )
    data = words(4)
    assert run(text, [data, np.uint32(0)], block=4, shared_bytes=16).findings == ()
    assert data.tolist() == [16] * 4
    assert kinds(run(text, [data, np.uint32(0)], block=4, shared_bytes=12)) == ["out of bounds"] * 2


def test_a_result_that_nothing_wrote_is_found():
    report = run(
        kernel(f"{OWN_PLACE} st.global.u32 [%rd2], %r9; ret;"), [words(4), np.uint32(0)], block=4
    )
    assert kinds(report) == ["undefined"]
    assert "changes memory by a value that nothing wrote" in report.findings[0].what
    partly = f"{OWN_PLACE} and.b32 %r9, %r9, 255; st.global.u32 [%rd2], %r9; ret;"
    assert run(kernel(partly), [words(4), np.uint32(0)], block=4).findings == ()

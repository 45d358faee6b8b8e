"""Loads and stores of translated kernels: checks that several accesses share, spaces, widths."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import MISALIGNED, OUT_OF_BOUNDS
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.translation.accesses import access_of
from refcomp.emulator.ptx.translation.emitter import PlacedNames
from refcomp.emulator.ptx.translation.printer import print_kernel
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, words
from tests.emulator.ptx.translation.both import run_both

_SHARED = ".shared .align 16 .b8 s[1024];\n"
_FOUR = "mul.wide.u32 %rd3, %r1, 16; add.s64 %rd3, %rd1, %rd3;"


def _printed(body):
    function = read_ptx(kernel(body, ".param .u64 data")).functions["k"]
    return print_kernel(function, PlacedNames({}, {}, {}, 0, {"data": range(8)}), is_watched=True)


def test_accesses_by_one_address_are_checked_once():
    one = "ld.global.u32 %r2, [%rd1];"
    assert _printed(f"{one} ret;").windows == 1
    assert _printed(f"{one} ld.global.u32 %r3, [%rd1+64]; ret;").windows == 1
    assert _printed(f"{one} add.s64 %rd1, %rd1, 4; {one} ret;").windows == 2
    assert _printed(f"{one} L: ld.global.u32 %r3, [%rd1+64]; bra L;").windows == 2
    # A store may fail where a load does not: in an array that must not be written.
    assert _printed(f"{one} st.global.u32 [%rd1], %r2; ret;").windows == 2


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("ld.global.u32 %r2, [%rd2]; ld.global.u32 %r3, [%rd2+124];", [OUT_OF_BOUNDS]),
        ("ld.global.u32 %r2, [%rd2]; ld.global.u16 %rs2, [%rd2+1];", [MISALIGNED]),
        ("ld.global.v2.u32 {%r2, %r3}, [%rd1]; ld.global.u32 %r4, [%rd1+4];", []),
    ],
)
def test_each_access_of_a_group_is_checked(body, expected):
    text = kernel(f"{OWN_PLACE} {body} ret;", ".param .u64 data")
    found = run_both(text, [words(32)])
    assert kinds(found.report) == expected
    assert found.counts.stops == len(expected)


@pytest.mark.llvm
@pytest.mark.parametrize(
    "body",
    [
        # The load itself, or a predicated instruction, moves the address behind it.
        "st.global.u64 [%rd2], %rd1; ld.global.u64 %rd2, [%rd2]; ld.global.u64 %rd3, [%rd2+8];",
        "ld.global.u64 %rd3, [%rd2]; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u64 %rd2, %rd1;"
        "ld.global.u64 %rd4, [%rd2+8];",
    ],
)
def test_a_group_ends_where_its_address_changes(body):
    text = kernel(f"add.s64 %rd2, %rd1, 56; {body} ret;", ".param .u64 data")
    found = run_both(text, [words(16)], block=1)
    assert (kinds(found.report), found.counts.blocks, found.counts.stops) == ([], 1, 0)


def test_a_parameter_is_aligned_where_it_lies():
    parameters = ".param .u64 data, .param .u8 q, .param .b8 p[4]"
    text = kernel("ld.param.u32 %r2, [p]; st.global.u32 [%rd1], %r2; ret;", parameters)
    given = [words(1), np.uint8(1), np.arange(4, dtype=np.uint8).tobytes()]
    found = run_both(text, given, block=1)
    assert kinds(found.report) == [MISALIGNED]
    assert found.counts.refused == {"k": "line 10: ld.param.u32"}


@pytest.mark.llvm
def test_spaces_and_widths():
    text = kernel(
        f"{OWN_PLACE} {_FOUR} mov.u32 %r9, s; shl.b32 %r8, %r1, 4; add.u32 %r9, %r9, %r8;"
        "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd3];"
        "st.shared.v2.b64 [%r9], {%rd3, %rd2};"
        "st.shared.v4.u32 [%r9], {%r5, %r4, %r3, %r2};"
        "bar.sync 0;"
        "ld.shared.s8 %r2, [%r9+1]; ld.shared.u16 %r3, [%r9+2]; ld.shared.b64 %rd5, [%r9+8];"
        "mov.u64 %rd6, own; st.local.u32 [%rd6+4], %r2; ld.local.u32 %r4, [%rd6+4];"
        "cvt.u32.u64 %r5, %rd5;"
        "st.global.v4.u32 [%rd3], {%r2, %r3, %r4, %r5}; ret;",
        ".param .u64 data",
        before=_SHARED,
    ).replace(".reg .pred", ".local .align 8 .b8 own[16]; .reg .pred", 1)
    data = np.random.default_rng(0).integers(0, 1 << 32, 256, dtype=np.uint32)
    found = run_both(text, [data], block=64)
    assert (found.counts.blocks, found.counts.refused) == (1, {})
    assert (found.arguments[0] != data).any()


@pytest.mark.llvm
@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize(("low", "stops"), [(16, 0), (12, 1)])
def test_an_address_of_32_bits_wraps_around(space, low, stops):
    body = (
        f"{OWN_PLACE} mov.u32 %r9, s; shl.b32 %r2, %r1, 2; sub.u32 %r2, %r2, 16;"
        "ld.global.u32 %r3, [%rd2];"
        f"st.{space}.u32 [%r2+{low}], %r3; ld.{space}.u32 %r4, [%r2+{low}]; add.u32 %r4, %r4, 1;"
        "st.global.u32 [%rd2], %r4; ret;"
    )
    text = kernel(body, ".param .u64 data", before=_SHARED)
    text = text.replace(".reg .pred", ".local .align 8 .b8 own[256]; .reg .pred", 1)
    found = run_both(text, [words(32)])
    assert found.counts.stops == stops
    assert (OUT_OF_BOUNDS in kinds(found.report)) == bool(stops)


_GENERIC = """mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; add.s64 %rd4, %rd4, %rd5;
mov.u64 %rd6, own; cvta.local.u64 %rd6, %rd6; st.u32 [%rd6+4], %r1; ld.u32 %r3, [%rd6+4];
st.v2.u32 [%rd4], {%r2, %r3}; bar.sync 0; cvta.to.shared.u64 %rd7, %rd4;
ld.shared.u32 %r4, [%rd7+4]; add.u32 %r2, %r2, %r4; atom.add.u32 %r5, [%rd2], %r2;"""


def _generic(more=""):
    body = f"{OWN_PLACE} mul.wide.u32 %rd5, %r1, 8; ld.u32 %r2, [%rd2];"
    text = kernel(f"{body}{_GENERIC}{more} ret;", ".param .u64 data", before=_SHARED)
    return text.replace(".reg .pred", ".local .align 8 .b8 own[16]; .reg .pred", 1)


@pytest.mark.llvm
def test_generic_addresses_lie_in_all_spaces():
    data = np.random.default_rng(0).integers(0, 1 << 30, 64, dtype=np.uint32)
    found = run_both(_generic(), [data], block=64)
    assert (found.counts.blocks, found.counts.refused) == (1, {})
    assert found.arguments[0].tolist() == (2 * data + np.arange(64)).tolist()


@pytest.mark.llvm
@pytest.mark.parametrize(
    ("access", "kind"),
    [
        ("st.u32 [%rd4+1000], %r1;", OUT_OF_BOUNDS),
        ("ld.u32 %r2, [%rd6+6];", MISALIGNED),
        ("st.u32 [%rd2+4], %r1;", OUT_OF_BOUNDS),
    ],
)
def test_generic_addresses_are_checked(access, kind):
    # What was written before is taken back, as far as it is in global memory.
    found = run_both(_generic(access), [words(64)], block=64)
    assert kind in kinds(found.report) and found.counts.stops == 1


@pytest.mark.llvm
def test_a_predicated_access_is_checked_only_where_it_happens():
    text = kernel(
        f"{OWN_PLACE} setp.lt.u32 %p1, %r1, 8; @%p1 st.global.u32 [%rd2], %r1; ret;",
        ".param .u64 data",
    )
    found = run_both(text, [words(8)])
    assert found.counts.blocks == 1 and found.arguments[0].tolist() == list(range(8))


@pytest.mark.parametrize(
    "text", ["ld.volatile.global.u32 %r2, [%rd1]", "st.release.gpu.global.u32 [%rd1], %r1"]
)
def test_accesses_that_order_memory_are_not_translated(text):
    function = read_ptx(kernel(f"{text}; ret;")).functions["k"]
    with pytest.raises(NotTranslated):
        access_of(function.instructions[2])

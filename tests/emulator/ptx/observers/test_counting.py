"""Counts of kernels whose counts follow by hand from their text."""

import numpy as np
import pytest

from refcomp.emulator.observers.counting import Profile
from refcomp.emulator.ptx.execution.launch import PtxLaunch, launch
from refcomp.emulator.ptx.observers import opcodes
from refcomp.emulator.ptx.observers.counting import ThreadCounting
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from tests.emulator.ptx.texts import OWN_PLACE, kernel


def _counted(text, grid=1, block=32, launches=1, data=1 << 14):
    """The counts of the kernel `k`, whose parameter is `data` bytes of zeros."""
    gpu = EmulatedNvidiaGpu(size=1 << 20)
    place = gpu.arena.allocate(data, "data")
    gpu.arena.write(place.address, np.zeros(data, np.uint8))
    profile = Profile()
    extents = [e if isinstance(e, tuple) else (e, 1, 1) for e in (grid, block)]
    request = PtxLaunch(
        "k",
        *extents,
        place.address.to_bytes(8, "little") + bytes(8),
        observers=(ThreadCounting(profile, "sm_90"),),
    )
    loaded = gpu.load(text)
    for _ in range(launches):
        assert launch(loaded, request).findings == ()
    (counts,) = profile.kernels
    return counts


def _access(counts, space="global"):
    """The only access to a memory."""
    (one,) = counts.accesses(space)
    return one.access


@pytest.mark.parametrize(
    ("stride", "kind", "asked", "sectors", "least"),
    [
        (4, "u32", 128, 4, 4),  # side by side: 128 bytes are 4 sectors
        (8, "u32", 128, 8, 4),
        (32, "u32", 128, 32, 4),
        (0, "u32", 4, 1, 1),  # all threads read one word
        (16, "v4.u32", 512, 16, 16),
        (1, "u8", 32, 1, 1),
    ],
)
def test_sectors_of_a_load_follow_from_its_stride(stride, kind, asked, sectors, least):
    target = {"v4.u32": "{%r2, %r3, %r4, %r5}", "u8": "%rs1"}.get(kind, "%r2")
    counts = _counted(
        kernel(f"""
        mul.wide.u32 %rd2, %r1, {stride}; add.s64 %rd2, %rd1, %rd2;
        ld.global.{kind} {target}, [%rd2]; ret;"""),
        block=64,
    )
    load = _access(counts)
    assert (load.waves, load.lanes, load.bytes) == (2, 64, 2 * asked)
    assert (load.transactions, load.least) == (2 * sectors, 2 * least)
    assert load.stride == stride and not load.is_store


def test_the_counts_of_a_launch_add_up():
    """Of 3 blocks with 40 threads: two warps, the second of which has 8 threads."""
    text = kernel(f"{OWN_PLACE} st.global.u32 [%rd2], %r1; ret;")
    counts = _counted(text, grid=3, block=40, launches=2)
    assert (counts.launches, counts.groups, counts.waves) == (2, 6, 12)
    assert (counts.grid, counts.block) == ((3, 1, 1), (40, 1, 1))
    ran = [(one.instruction.mnemonic, one.waves, one.lanes) for one in counts.instructions]
    assert [name for name, _, _ in ran] == [
        *("ld.param.u64", "mov.u32", "mul.wide.u32", "add.s64", "st.global.u32", "ret")
    ]
    assert {(waves, lanes) for _, waves, lanes in ran} == {(12, 240)}
    assert counts.active_lanes == pytest.approx(40 / 64)
    store = _access(counts)
    assert store.is_store and (store.transactions, store.least) == (6 * 5, 6 * 5)
    # Blocks write the same 160 bytes, which are 5 sectors.
    assert (counts.written, counts.read) == (2 * 160, 0)


def test_half_of_the_lanes_take_a_branch():
    counts = _counted(
        kernel("""
        setp.ge.u32 %p1, %r1, 16;
        @%p1 bra $done;
        add.u32 %r2, %r1, 1;
        add.u32 %r3, %r1, 2;
$done:  ret;""")
    )
    ran = {one.instruction.text: (one.waves, one.lanes) for one in counts.instructions}
    assert ran["add.u32 %r2, %r1, 1"] == ran["add.u32 %r3, %r1, 2"] == (1, 16)
    assert ran["@%p1 bra $done"] == ran["ret"] == (1, 32)
    assert counts.active_lanes == (5 * 32 + 2 * 16) / (7 * 32)


def test_a_predicate_leaves_out_lanes():
    counts = _counted(
        kernel("""
        setp.ge.u32 %p1, %r1, 24; setp.ge.u32 %p2, %r1, 32;
        @%p1 add.u32 %r2, %r1, 1;
        @!%p1 add.u32 %r2, %r1, 1;
        @%p2 add.u32 %r2, %r1, 1;
        ret;""")
    )
    adds = [one for one in counts.instructions if one.instruction.opcode == "add"]
    assert [(one.waves, one.lanes) for one in adds] == [(1, 8), (1, 24), (1, 0)]


def test_a_warp_that_waits_for_its_threads_counts_once():
    """Some threads of the second warp come later to the instruction that all do together."""
    counts = _counted(
        kernel("""
        setp.ge.u32 %p1, %r1, 48;
        @%p1 bra $far;
$join:  shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
        ret;
$far:   add.u32 %r3, %r1, 1;
        bra $join;"""),
        block=64,
    )
    ran = {one.instruction.opcode: (one.waves, one.lanes) for one in counts.instructions}
    assert ran["shfl"] == ran["ret"] == (2, 64) and ran["add"] == (1, 16)


def _tile(place):
    """A kernel of 32 x 32 threads that reads the word `place` of a tile in shared memory."""
    return kernel(f"""
        .shared .align 16 .b8 tile[4224];
        mov.u32 %r2, %tid.y;
        mad.lo.u32 %r3, {place};
        mul.lo.u32 %r3, %r3, 4; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
        st.shared.u32 [%r4], %r1;
        ret;""")


@pytest.mark.parametrize(
    ("place", "clocks"),
    [
        ("%r2, 32, %r1", 1),  # rows
        ("%r1, 32, %r2", 32),  # columns: all lanes of a warp ask one bank
        ("%r1, 33, %r2", 1),  # columns of padded rows
        ("%r1, 2, %r2", 2),
    ],
)
def test_bank_conflicts_of_a_tile(place, clocks):
    store = _access(_counted(_tile(place), block=(32, 32, 1)), "shared")
    assert store.waves == 32 and store.bytes == 4096
    assert (store.clocks, store.conflicts) == (32 * clocks, 32 * (clocks - 1))


def test_atomics_of_one_word_take_their_turns():
    counts = _counted(
        kernel("""
        .shared .align 4 .b8 sum[4];
        st.shared.u32 [sum], 0; bar.sync 0;
        red.shared.add.u32 [sum], %r1; red.global.add.u32 [%rd1], 1; ret;""")
    )
    store, shared = (one.access for one in counts.accesses("shared"))
    assert (store.clocks, store.conflicts) == (1, 0)  # of one word, the lanes share it
    assert (shared.is_atomic, shared.clocks, shared.conflicts) == (True, 32, 31)
    update = _access(counts)
    assert update.is_atomic and (update.transactions, update.lanes, update.bytes) == (1, 32, 4)
    assert counts.read == counts.written == 32
    assert counts.by_class()[opcodes.ATOMIC] == 2 and counts.by_class()[opcodes.SYNC] == 1


def test_loads_of_constants_and_local_memory_are_no_transactions():
    counts = _counted(
        kernel(
            """
        .local .align 4 .b8 own[4];
        mov.u64 %rd2, own; cvta.local.u64 %rd3, %rd2;
        st.local.u32 [own], %r1; ld.u32 %r2, [%rd3]; ld.const.u32 %r3, [table]; ret;""",
            before=".const .align 4 .b32 table[2] = {1, 2};",
        )
    )
    by_class = counts.by_class()
    assert by_class[opcodes.LOCAL] == 2 and by_class[opcodes.CONSTANT] == 2
    assert not [*counts.accesses("global")] and counts.read == 32


def test_asynchronous_copies_read_and_write():
    counts = _counted(
        kernel("""
        .shared .align 16 .b8 tile[512];
        mul.lo.u32 %r2, %r1, 16; mul.wide.u32 %rd2, %r1, 16; add.s64 %rd2, %rd1, %rd2;
        mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
        cp.async.cg.shared.global [%r3], [%rd2], 16;
        cp.async.commit_group; cp.async.wait_group 0; ret;""")
    )
    assert _access(counts).transactions == 16 and counts.read == 512
    assert (_access(counts, "shared").clocks, _access(counts, "shared").conflicts) == (4, 0)
    assert counts.by_class()[opcodes.SYNC] == 2


_HALVES = ", ".join(f"%r{n}" for n in range(4, 12))
_SUMS = ", ".join(f"%f{n}" for n in range(1, 9))


@pytest.mark.parametrize(
    ("move", "size", "asked", "sectors", "least"),
    [
        # 16 rows of 16 elements of f16, which are 32 bytes. Two lanes hold the same element.
        (
            f"load.a.sync.aligned.row.m16n16k16.global.f16 {{{_HALVES}}}, [%rd1], 16",
            32,
            512,
            16,
            16,
        ),
        (f"load.b.sync.aligned.col.m16n16k16.f16 {{{_HALVES}}}, [%rd1], 32", 32, 512, 16, 16),
        # Rows lie 48 bytes apart: each other one is in two sectors.
        (
            f"load.a.sync.aligned.row.m16n16k16.global.f16 {{{_HALVES}}}, [%rd1], 24",
            32,
            512,
            24,
            16,
        ),
        # 16 rows of 16 elements of f32.
        (
            f"store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {{{_SUMS}}}, 16",
            32,
            1024,
            32,
            32,
        ),
    ],
)
def test_fragments_in_global_memory_move_whole_at_once(move, size, asked, sectors, least):
    moved = _access(_counted(kernel(f"wmma.{move}; ret;"), block=64))
    assert (moved.waves, moved.lanes, moved.size) == (2, 64, size)
    assert (moved.bytes, moved.transactions, moved.least) == (2 * asked, 2 * sectors, 2 * least)


@pytest.mark.parametrize(
    ("stride", "clocks"),
    [
        (16, 4),  # 128 words side by side, 4 for each bank
        (24, 4),  # rows of 8 words begin in the banks 0, 12, 24, 4, 16, 28, 8 and 20, twice
        (32, 8),  # rows begin in bank 0 or in bank 16
        (64, 16),  # all rows begin in bank 0
    ],
)
def test_banks_of_fragments_in_shared_memory(stride, clocks):
    text = kernel(f"""
        .shared .align 32 .b8 tile[2048]; mov.u32 %r2, tile;
        wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {{{_HALVES}}}, [%r2], {stride};
        ret;""")
    load = _access(_counted(text), "shared")
    assert (load.waves, load.bytes) == (1, 512)
    assert (load.clocks, load.conflicts) == (clocks, clocks - 4)


def test_multiply_adds_of_lanes_and_of_tensor_cores():
    counts = _counted(
        kernel("""
        fma.rn.f32 %f1, 0f3F800000, 0f3F800000, 0f3F800000;
        mov.b32 %r2, 0; mov.b32 %r3, 0; mov.f32 %f2, 0f00000000;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
            {%f1, %f2, %f3, %f4}, {%r2, %r3, %r2, %r3}, {%r2, %r3}, {%f2, %f2, %f2, %f2};
        ret;"""),
        block=64,
    )
    assert counts.fmas == 64 + 2 * 16 * 8 * 16
    assert counts.by_class()[opcodes.TENSOR] == 2 and counts.by_class()[opcodes.FMA] == 2


def test_called_functions_and_source_lines():
    text = kernel(
        """
        .loc 1 7 3
        call.uni add_one; .loc 1 8 0
        ret;""",
        before="""
        .file 1 "a.cu"
        .file 2 "b.h"
        .func add_one() { .reg .b32 %r<3>;
        .loc 2 4 1, function_name add_one, inlined_at 1 3 2
        mov.u32 %r1, 1; ret; }""",
    )
    counts = _counted(text)
    assert counts.by_source() == {"": 2, "a.cu:7": 1, "a.cu:8": 1, "a.cu:3": 2}
    listed = [(one.instruction.text.partition(" ")[0], one.waves) for one in counts.listing()]
    names = ("mov.u32", "ret", "ld.param.u64", "mov.u32", "call.uni", "ret")
    assert listed == [(name, 1) for name in names]
    assert str(counts).startswith("k: 0 multiply-adds; instructions of warps: ")

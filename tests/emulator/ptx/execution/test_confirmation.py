"""A race of a load counts only if a thread uses the value."""

import numpy as np
import pytest

from refcomp.emulator.machine.memory import Arena
from refcomp.emulator.ptx.execution.confirmation import confirmed_findings
from refcomp.emulator.ptx.observers.races import ThreadRaces
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.observers.test_races import check
from tests.emulator.ptx.texts import OWN_PLACE, kernel, words

# All threads load a place that the first one writes, twice. USE is what they do with it.
_EARLY = f"""
    {OWN_PLACE}
    .shared .align 16 .b8 tile[512];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 st.shared.u32 [tile], 5; bar.sync 0;
    ld.shared.u32 %r2, [tile];
    @%p1 st.shared.u32 [tile], 6;
    ld.shared.u32 %r3, [tile];
    USE
    ret;
"""


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("", []),
        ("@%p1 st.global.u32 [%rd2], %r2; @%p1 st.global.u32 [%rd2+4], %r3;", []),
        ("st.global.u32 [%rd2], %r2;", ["race"]),
        ("st.global.u32 [%rd2], %r3;", ["race"]),
        ("setp.eq.u32 %p2, %r2, 77; @%p2 st.global.u32 [%rd2], 1;", ["race"]),
        ("sub.u32 %r3, %r3, %r2; and.b32 %r3, %r3, 0; st.global.u32 [%rd2], %r3;", []),
        ("shl.b32 %r3, %r1, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3; "
         "st.shared.u32 [%r4+4], %r2;", []),
    ],
)  # fmt: skip
def test_race_of_a_load_counts_if_its_value_is_used(use, found):
    assert set(check(kernel(_EARLY.replace("USE", use)), [words(80), np.uint32(0)])) == set(found)


@pytest.mark.parametrize("load_is_first", [False, True])
@pytest.mark.parametrize(("used", "found"), [("%r4", []), ("%r5", ["race"])])
def test_race_of_a_vector_load_counts_by_the_bytes_that_are_used(used, found, load_is_first):
    store = "@%p1 st.shared.u32 [tile+4], 6;"
    load = "@%p2 ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [tile];"
    racing = load + store if load_is_first else store + load
    # As nvcc joins the loads of a tree: thread 1 writes the second word, which thread 0 skips.
    text = f"""
        {OWN_PLACE}
        .shared .align 16 .b8 tile[512];
        shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
        st.shared.u32 [%r3], 5; bar.sync 0;
        setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 0;
        {racing}
        @%p2 st.global.u32 [%rd2], {used};
        bar.sync 0;
        ld.shared.u32 %r8, [tile+4]; st.global.u32 [%rd2+128], %r8;  // this one does not race
        ret;
    """
    assert set(check(kernel(text), [words(160), np.uint32(0)])) == set(found)


_CALLS = """
.extern .func (.param .b64 result) malloc (.param .b64 size);
.extern .func (.param .b32 result) vprintf (.param .b64 text, .param .b64 values);
.global .align 1 .b8 text[3] = {37, 100, 0};
.func f() { ret; }
"""
_BY_INDEX = "and.b32 %r2, %r2, 1; $list: .branchtargets $a, $a; brx.idx %r2, $list; $a:"
_ALLOCATE = """
    .param .b64 size; .param .b64 place;
    cvt.u64.u32 %rd3, %r2; st.param.b64 [size], %rd3; call.uni (place), malloc, (size);
"""
_PRINT = """
    .local .align 8 .b8 values[8]; .param .b64 a; .param .b64 b; .param .b32 c;
    st.local.u32 [values], %r2; mov.u64 %rd3, values; cvta.local.u64 %rd3, %rd3;
    mov.u64 %rd4, text; st.param.b64 [a], %rd4; st.param.b64 [b], %rd3;
    call.uni (c), vprintf, (a, b);
"""
_CALL = "mov.u64 %rd3, f; sub.u32 %r2, %r2, %r2; cvt.u64.u32 %rd4, %r2; add.u64 %rd3, %rd3, %rd4;"
_ONE = "setp.ne.u32 %p4, %r1, 1; @%p4 bra $end;"
_PHASES = ".shared .align 8 .b8 ready[8]; mbarrier.init.shared.b64 [ready], %r2;"
_BULK = """
    add.u32 %r2, %r2, 11; mov.u32 %r4, tile;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], %r2;
"""


@pytest.mark.parametrize(
    "use",
    [
        _BY_INDEX,
        "and.b32 %r2, %r2, 1; bar.sync %r2;",
        "max.u32 %r2, %r2, 64; bar.sync 1, %r2;",
        "setp.eq.u32 %p2, %r2, 7; bar.red.popc.u32 %r5, 0, %p2;",
        "sub.u32 %r2, %r2, 6; bar.warp.sync %r2;",
        "shfl.sync.idx.b32 %r5, %r1, %r2, 31, -1; st.global.u32 [%rd2], %r5;",
        _ALLOCATE,
        _PRINT,
        _CALL + "call %rd3, (), $to; $to: .callprototype ()_ ();",
        _ONE + _PHASES + "$end:",
        _ONE + _BULK + "$end:",
    ],
)
def test_value_that_decides_what_threads_do_is_used(use):
    text = kernel(_EARLY.replace("USE", use), before=_CALLS)
    assert set(check(text, [words(80), np.uint32(0)])) == {"race"}


def test_two_stores_race_whatever_is_loaded():
    text = _EARLY.replace("USE", "st.shared.u32 [tile], %r1;")
    assert "race" in check(kernel(text), [words(64), np.uint32(0)])


def test_stores_of_two_instructions_race():
    text = kernel("""
        .shared .align 4 .b8 tile[4];
        setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 1;
        @%p1 st.shared.u32 [tile], 5;
        @%p2 st.shared.u32 [tile], 6;
        ret;
    """)
    assert check(text, [words(1), np.uint32(0)]) == ["race"]


def test_memory_is_that_of_the_first_run():
    """The kernel counts its runs."""
    text = kernel(_EARLY.replace("USE", "@%p1 red.global.add.u32 [%rd1], 1;"))
    data = words(64)
    assert check(text, [data, np.uint32(0)]) == []
    assert data[0] == 1


_HEAP = """
    .param .b64 size; .param .b64 place;
    st.param.b64 [size], 300000;
    call.uni (place), malloc, (size);
    ld.param.b64 %rd3, [place];
    setp.eq.u64 %p3, %rd3, 0;
    @%p3 trap;
"""
_MALLOC = ".extern .func (.param .b64 result) malloc (.param .b64 size);\n"


def test_second_run_begins_with_the_heap_of_the_first():
    """Two threads fill the heap, so that a second run has room only if it gets the same memory."""
    gpu = EmulatedNvidiaGpu(size=1 << 20, hazards=True)
    loaded = gpu.load(kernel(_EARLY.replace("USE", _HEAP), before=_MALLOC))
    report = gpu.run(loaded, "k", (1, 1, 1), (2, 1, 1), [words(2), np.uint32(0)])
    assert report.findings == ()
    heap = [one for one in gpu.arena.allocations() if "malloc" in one.label]
    assert len(heap) == 2  # those of the first run, which no thread freed


def _stopping_second_run(stop, seen):
    """Run a launch that writes 1, and whose second run writes 2 and then stops."""
    arena = Arena(1 << 16, is_watched=True)
    place = arena.allocate(16, "data").address
    races = ThreadRaces()
    races.poisoning_observer = ThreadRaces

    def run(observers):
        seen.append(int(arena.read(place, 1)[0]))
        arena.write(place, bytes([len(seen)]))
        if len(seen) == 2:
            arena.allocate(16, "more")
            raise stop
        return ()

    return arena, place, lambda: confirmed_findings(arena, (races,), run)


@pytest.mark.parametrize("stop", [UserError("a trap"), Unsupported("a form"), MemoryError()])
def test_failed_second_run_confirms_nothing(stop):
    seen = []
    arena, place, confirm = _stopping_second_run(stop, seen)
    assert confirm() == ()
    assert seen == [0, 0]
    assert arena.read(place, 1)[0] == 1
    assert len(arena.allocations()) == 1


def test_memory_is_restored_after_an_internal_error():
    arena, place, confirm = _stopping_second_run(IndexError(), [])
    with pytest.raises(IndexError):
        confirm()
    assert arena.read(place, 1)[0] == 1

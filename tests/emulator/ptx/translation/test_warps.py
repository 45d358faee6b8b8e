"""Instructions of warps in translated kernels: shuffles, votes, reductions, and their members."""

import numpy as np
import pytest

from refcomp.emulator.code.findings import BARRIER
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.emulator.ptx.translation.warps import step_of
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds
from tests.emulator.ptx.translation.both import run_both

_LOAD = f"{OWN_PLACE} ld.global.u32 %r2, [%rd2]; setp.lt.s32 %p1, %r2, 7;"
_STORE = "st.global.u32 [%rd2], %r9; ret;"
_KEEP = "selp.u32 %r8, 1, 0, %p2; shl.b32 %r8, %r8, 20; xor.b32 %r9, %r9, %r8;"


def _run(body, threads=64, **options):
    data = np.random.default_rng(1).integers(-20, 20, threads).astype(np.int32).view(np.uint32)
    return run_both(kernel(body, ".param .u64 data"), [data], block=threads, **options)


@pytest.mark.llvm
def test_shuffles():
    steps = [_LOAD, "mov.u32 %r9, 0;"]
    for mode, amount, limits in (
        ("up", 3, 0),
        ("down", 5, 31),
        ("bfly", 17, 31),
        ("idx", 6, 31),
        ("idx", 2, 0x181F),
        ("down", 1, 0x1C1F),
    ):
        steps.append(f"shfl.sync.{mode}.b32 %r3|%p2, %r2, {amount}, {limits}, -1;")
        steps.append(f"mad.lo.u32 %r9, %r9, 31, %r3; {_KEEP}")
    found = _run("\n".join([*steps, _STORE]))
    assert (found.counts.blocks, found.counts.refused) == (1, {})


@pytest.mark.llvm
def test_votes_and_reductions():
    steps = [_LOAD, "mov.u32 %r9, 0;"]
    for mode in ("all", "any", "uni"):
        steps.append(f"vote.sync.{mode}.pred %p2, %p1, -1; {_KEEP} shl.b32 %r9, %r9, 1;")
    steps.append("vote.sync.ballot.b32 %r3, !%p1, -1; xor.b32 %r9, %r9, %r3;")
    for name in ("add.u32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32"):
        steps.append(f"redux.sync.{name} %r3, %r2, -1; mad.lo.u32 %r9, %r9, 31, %r3;")
    found = _run("\n".join([*steps, "bar.warp.sync -1;", _STORE]))
    assert (found.counts.blocks, found.counts.refused) == (1, {})


@pytest.mark.llvm
def test_threads_that_have_ended_are_not_waited_for():
    body = f"setp.gt.u32 %p3, %r1, 39; @%p3 ret; {_LOAD} redux.sync.add.u32 %r9, %r2, -1; {_STORE}"
    assert _run(body).counts.blocks == 1


@pytest.mark.llvm
def test_parts_of_a_warp_meet_by_their_masks():
    body = f"""{_LOAD} setp.lt.u32 %p3, %r1, 16; @%p3 bra L;
    redux.sync.add.u32 %r9, %r2, 0xFFFF0000; {_STORE}
    L: redux.sync.add.u32 %r9, %r2, 0x0000FFFF; {_STORE}"""
    assert _run(body, 32).counts.blocks == 1


@pytest.mark.llvm
@pytest.mark.parametrize(
    "body",
    [
        "redux.sync.add.u32 %r9, %r2, 0xFFFF;",  # most threads are not members
        "setp.lt.u32 %p3, %r1, 9; @%p3 redux.sync.add.u32 %r9, %r2, -1; @!%p3 bar.sync 0;",
    ],
)
def test_wrong_members_are_judged_by_the_interpreter(body):
    found = _run(f"mov.u32 %r9, 0; {_LOAD} {body} {_STORE}", 32)
    assert BARRIER in kinds(found.report) and found.counts.stops == 1


@pytest.mark.llvm
def test_a_warp_that_waits_for_another_warp_lets_it_run():
    # Warp 0 reads the flag until some thread of it sees that warp 1 has set it.
    body = f"""{OWN_PLACE} setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0;
    setp.gt.u32 %p2, %r1, 31; @%p2 bra W;
    L: atom.shared.or.b32 %r3, [s], 0; setp.ne.u32 %p3, %r3, 0;
    vote.sync.any.pred %p4, %p3, -1; @!%p4 bra L;
    st.global.u32 [%rd2], %r3; ret;
    W: setp.eq.u32 %p5, %r1, 32; @%p5 red.shared.or.b32 [s], 5; ret;"""
    text = kernel(body, ".param .u64 data", before=".shared .align 4 .b8 s[4];\n")
    found = run_both(text, [np.zeros(32, np.uint32)], block=64)
    assert found.arguments[0].tolist() == [5] * 32
    assert (found.counts.blocks, found.counts.stops) == (1, 0)


@pytest.mark.parametrize("text", ["activemask.b32 %r2", "shfl.down.b32 %r2, %r1, 1, 31"])
def test_what_depends_on_the_order_of_threads_is_not_translated(text):
    function = read_ptx(kernel(f"{text}; ret;")).functions["k"]
    with pytest.raises(NotTranslated):
        step_of(function.instructions[2])

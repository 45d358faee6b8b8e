"""The function of a kernel: where threads wait and go on, loops, and NaN that are made late."""

import numpy as np
import pytest

from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.emulator.ptx.translation.emitter import PlacedNames
from refcomp.emulator.ptx.translation.printer import print_kernel
from refcomp.emulator.ptx.translation.refusal import NotTranslated
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.texts import OWN_PLACE, kernel, words
from tests.emulator.ptx.translation.both import AT_ONCE, run_both

_SHARED = ".shared .align 16 .b8 s[1024];\n"


def _printed(body):
    function = read_ptx(kernel(body, ".param .u64 data")).functions["k"]
    return print_kernel(function, PlacedNames({}, {}, {}, 0, {"data": range(8)}), is_watched=True)


@pytest.mark.llvm
def test_a_thread_keeps_its_registers_at_a_barrier():
    # Each thread adds up what its right neighbours wrote, once more after each barrier.
    body = f"""{OWN_PLACE} mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r3, %r2, %r3;
    mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, %r1;
    L: st.shared.u32 [%r3], %r6;
    bar.sync 0;
    add.u32 %r7, %r1, 1; and.b32 %r7, %r7, 63; shl.b32 %r7, %r7, 2; add.u32 %r7, %r2, %r7;
    ld.shared.u32 %r6, [%r7];
    bar.sync 0;
    add.u32 %r4, %r4, %r6; add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 4; @%p1 bra L;
    st.global.u32 [%rd2], %r4; ret;"""
    found = run_both(kernel(body, ".param .u64 data", before=_SHARED), [words(64)], block=64)
    expected = [sum((i + k) % 64 for k in range(1, 5)) for i in range(64)]
    assert found.arguments[0].tolist() == expected
    assert found.counts.blocks == 1


@pytest.mark.llvm
def test_a_long_loop_gives_way_and_goes_on():
    # Of 1.2 million instructions. The interpreter would need a minute.
    body = f"""{OWN_PLACE} mov.u32 %r2, 0; mov.u32 %r3, 1;
    L: mad.lo.u32 %r3, %r3, 5, 3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 300000; @%p1 bra L;
    st.global.u32 [%rd2], %r3; ret;"""
    gpu = EmulatedNvidiaGpu(size=1 << 20, tools=AT_ONCE)
    loaded, data = gpu.load(kernel(body, ".param .u64 data")), words(1)
    report = gpu.run(loaded, "k", (1, 1, 1), (1, 1, 1), [data])
    expected = 1
    for _ in range(300000):
        expected = (5 * expected + 3) % 2**32
    assert data[0] == expected and loaded.runner.counts.blocks == 1
    assert report.steps == (5 + 2 + 4 * 300000 + 2) // 32


@pytest.mark.llvm
def test_a_nan_is_that_of_gpus_wherever_its_bits_are_seen():
    body = f"""{OWN_PLACE} ld.global.f32 %f1, [%rd2];
    add.f32 %f2, %f1, %f1; mov.f32 %f3, %f2; mul.f32 %f4, %f3, %f2; neg.f32 %f5, %f4;
    min.f32 %f6, %f4, %f4; mov.b32 %r2, %f5; mov.b32 %r3, %f6; xor.b32 %r2, %r2, %r3;
    st.global.f32 [%rd2+256], %f4; st.global.u32 [%rd2], %r2; st.global.f32 [%rd2+128], %f1; ret;"""
    data = np.array([0xFFC00001, 0x7F800001, 0x3F800000, 0x7F800000] * 24, np.uint32)
    found = run_both(kernel(body, ".param .u64 data"), [data])
    assert found.arguments[0][[64, 65]].tolist() == [0x7FFFFFFF] * 2
    assert found.arguments[0][[32, 33]].tolist() == [0xFFC00001, 0x7F800001]


@pytest.mark.llvm
def test_ends_that_some_threads_reach():
    body = f"""{OWN_PLACE} setp.lt.u32 %p1, %r1, 9; @%p1 exit; st.global.u32 [%rd2], %r1;
    setp.gt.u32 %p1, %r1, 20; @%p1 bra E; st.global.u32 [%rd2], 77; E:"""
    text = kernel(body.replace("E:", "E: ret;"), ".param .u64 data")
    assert run_both(text, [words(32)]).counts.blocks == 1


@pytest.mark.parametrize(
    "text",
    [
        "mov %r1, %r2",
        "mov.f32 %f1",
        "cvta %rd1, %rd2",
        "ld [%rd1]",
        "ld.global.xyz %r1, [%rd1]",
        "st.global.u32 [%rd1]",
        "atom.global.cas.b32 %r2, [%rd1], %r1",
        "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31",
        "vote.sync.any.pred %p1, %p2",
        "redux.sync.add.s32 %r1, %r2",
        "bar.warp.sync",
        "bra %r1",
        "brx.idx %r1",
    ],
)
def test_what_is_malformed_is_refused_with_its_line(text):
    with pytest.raises(NotTranslated, match=f"line 10: .*{text.partition(' ')[0]}"):
        _printed(f"{text}; ret;")


def test_registers_that_are_too_wide_and_missing_operands_are_refused():
    with pytest.raises(NotTranslated, match=r"line 10: a register of \.b128"):
        _printed(".reg .b128 %q; st.global.b64 [%rd1], %q; ret;")
    with pytest.raises(UserError, match="add has 0 operands"):
        _printed("add.f32; ret;")


def test_a_kernel_that_reads_what_it_updates_may_wait():
    assert _printed("atom.global.add.u32 %r2, [%rd1], 1; ret;").may_wait
    assert not _printed("red.global.add.u32 [%rd1], 1; ret;").may_wait


def test_only_what_lives_is_kept():
    few = _printed("mov.u32 %r2, 1; bar.sync 0; st.global.u32 [%rd1], %r1; ret;")
    more = _printed("mov.u32 %r2, 1; bar.sync 0; st.global.u32 [%rd1], %r2; bar.sync 0; ret;")
    assert few.frame_words == more.frame_words == _printed("bar.sync 0; ret;").frame_words + 2
    assert few.symbols == ("data",)


@pytest.mark.parametrize(
    "body",
    [
        "bar.sync 0, 32; ret;",
        "bar.arrive 0, 32; ret;",
        "mov.u32 %r2, %clock; ret;",
        "mov.u32 %r2, %tid; ret;",  # all three positions
        "mov.v4.u32 {%r2, %r3, %r4, %r5}, %tid; ret;",
        "mov.v2.u32 {%r2, %r3}, {%r4, %r5}; ret;",
        "mov.b64 %rd2, {%r2, %r3, %r4}; ret;",
        "mov.b128 {%rd2, %rd3}, %rd4; ret;",
    ],
)
def test_what_is_missing_is_refused(body):
    with pytest.raises(NotTranslated, match="line 10"):
        _printed(body)

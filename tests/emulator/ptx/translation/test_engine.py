"""Translated kernels: their findings, what is taken back, and when the interpreter runs instead."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator.code.findings import (
    BARRIER,
    ENDLESS,
    MISALIGNED,
    OUT_OF_BOUNDS,
    READ_ONLY,
    UNDEFINED,
)
from refcomp.emulator.ptx.execution.launch import LoadedPtx
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.emulator.ptx.translation.engine import translated
from refcomp.foundation.errors import ToolchainError, UserError
from tests.emulator.ptx.texts import OWN_PLACE, kernel, kinds, words
from tests.emulator.ptx.translation.both import AT_ONCE, run_both

_LLVM = pytest.mark.llvm
_TWICE = kernel(
    f"{OWN_PLACE} ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, %r2;st.global.u32 [%rd2], %r2; ret;",
    ".param .u64 data",
)


@_LLVM
@pytest.mark.parametrize("is_watched", [True, False])
def test_a_kernel_is_translated(is_watched):
    found = run_both(_TWICE, [np.arange(40, dtype=np.uint32)], block=40, is_watched=is_watched)
    assert found.arguments[0].tolist() == list(range(0, 80, 2))
    assert (found.counts.blocks, found.counts.stops, found.counts.refused) == (1, 0, {})


@_LLVM
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("ld.global.u32 %r2, [%rd2+4]; st.global.u32 [%rd2], %r2; ret;", OUT_OF_BOUNDS),
        ("st.global.u16 [%rd2+1], %rs1; ret;", MISALIGNED),
        ("st.shared.u32 [%r9], %r1; ret;", OUT_OF_BOUNDS),
        ("setp.eq.u32 %p1, %r8, 0; @%p1 st.global.u32 [%rd2], %r1; ret;", UNDEFINED),
        ("L: bra L;", ENDLESS),
        ("L: bar.warp.sync -1; bra L;", ENDLESS),
        ("setp.lt.u32 %p1, %r1, 9; @%p1 bar.sync 0; @!%p1 bar.sync 1; ret;", BARRIER),
    ],
)
def test_trouble_gives_the_findings_of_the_interpreter(body, kind):
    text = kernel(f"mov.u32 %r9, 0; mov.u16 %rs1, 0; {OWN_PLACE} {body}", ".param .u64 data")
    found = run_both(text, [words(32)], steps=2000)
    assert kinds(found.report) == [kind]
    assert (found.counts.blocks, found.counts.stops) == (0, 1)


@_LLVM
def test_memory_that_nothing_wrote_is_found():
    text = kernel(
        f"{OWN_PLACE} ld.shared.u32 %r2, [s]; setp.eq.u32 %p1, %r2, 1; "
        "@%p1 st.global.u32 [%rd2], %r2; ret;",
        ".param .u64 data",
        before=".shared .align 4 .b8 s[64];\n",
    )
    found = run_both(text, [words(32)])
    assert kinds(found.report) == [UNDEFINED]
    assert found.counts.stops == 1
    assert run_both(text, [words(32)], is_watched=False).counts.blocks == 1


@_LLVM
def test_what_a_block_wrote_is_taken_back():
    # Without that, the interpreter would double the first elements once more.
    text = _TWICE.replace("ret;", "st.global.u32 [%rd2+16], %r2; ret;")
    array = np.arange(8, dtype=np.uint32)
    found = run_both(text, [array], block=8)
    assert kinds(found.report) == [OUT_OF_BOUNDS]
    assert found.counts.stops == 1


@_LLVM
def test_blocks_before_one_in_trouble_stay_translated():
    text = kernel(
        "mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2; "
        "st.global.u32 [%rd2], %r2; ret;",
        ".param .u64 data",
    )
    found = run_both(text, [words(3)], grid=4, block=1)
    assert (found.counts.blocks, found.counts.stops) == (3, 1)


@_LLVM
def test_arrays_that_must_not_be_written_are_found():
    array = words(32)
    array.flags.writeable = False
    found = run_both(_TWICE, [array])
    assert kinds(found.report) == [READ_ONLY] and found.counts.stops == 1


@_LLVM
def test_a_quotient_by_zero_is_judged_by_the_interpreter():
    text = kernel(f"{OWN_PLACE} div.u32 %r2, 5, %r1; st.global.u32 [%rd2], %r2; ret;")
    arguments = [words(32), np.uint32(0)]
    assert run_both(text, arguments).counts.stops == 1
    assert run_both(text, arguments, is_watched=False).counts.blocks == 1


@_LLVM
@pytest.mark.parametrize("number", ["16", "-1", "%r2"])
def test_a_barrier_that_no_block_has_is_the_error_of_the_interpreter(number):
    gpu = EmulatedNvidiaGpu(size=1 << 20, tools=AT_ONCE)
    text = kernel(f"mov.u32 %r2, 100; bar.sync {number}; ret;", ".param .u64 data")
    with pytest.raises(UserError, match="barrier"):
        gpu.run(gpu.load(text), "k", (1, 1, 1), (32, 1, 1), [words(1)])


@_LLVM
def test_a_block_has_sixteen_barriers():
    found = run_both(kernel("bar.sync 15; bar.sync 0; ret;", ".param .u64 data"), [words(1)])
    assert (found.counts.blocks, found.counts.stops) == (1, 0)


@_LLVM
def test_a_trap_is_the_error_of_the_interpreter():
    gpu = EmulatedNvidiaGpu(size=1 << 20, tools=AT_ONCE)
    with pytest.raises(UserError, match="stopped by a trap"):
        gpu.run(gpu.load(kernel("trap;")), "k", (1, 1, 1), (1, 1, 1), [words(1), np.uint32(0)])


@_LLVM
def test_a_kernel_that_is_often_in_trouble_is_interpreted():
    gpu = EmulatedNvidiaGpu(size=1 << 20, tools=AT_ONCE)
    loaded = gpu.load(_TWICE)
    for _ in range(8):
        gpu.run(loaded, "k", (1, 1, 1), (32, 1, 1), [words(1)])
    assert loaded.runner.counts.stops == 5


def test_a_kernel_that_lacks_a_text_is_interpreted():
    text = _TWICE.replace("add.u32 %r2, %r2, %r2", "fns.b32 %r2, %r2, 0, 1")
    found = run_both(text, [words(32)])
    assert found.counts.refused == {"k": "line 10: fns.b32"}
    assert found.counts.blocks == 0


@pytest.mark.parametrize("text", ["mov %r3, %r2", "bra %r3"])
def test_malformed_code_that_does_not_run_changes_nothing(text):
    body = f"{OWN_PLACE} setp.lt.u32 %p1, %r1, 40; @%p1 bra L; {text}; L: "
    found = run_both(kernel(f"{body} st.global.u32 [%rd2], %r1; ret;"), [words(32), np.uint32(0)])
    assert found.arguments[0].tolist() == list(range(32))
    assert found.counts.refused == {"k": f"line 10: not foreseen: {text}"}


def test_races_are_looked_for_by_the_interpreter():
    gpu = EmulatedNvidiaGpu(size=1 << 20, hazards=True, tools=AT_ONCE)
    loaded = gpu.load(_TWICE)
    gpu.run(loaded, "k", (1, 1, 1), (32, 1, 1), [words(32)])
    assert loaded.runner.counts.blocks == 0


@_LLVM
def test_a_kernel_is_compiled_when_it_is_hot():
    gpu = EmulatedNvidiaGpu(size=1 << 20, tools=replace(AT_ONCE, hot=5e-6))
    loaded = gpu.load(_TWICE)
    for expected in (0, 1, 2):
        gpu.run(loaded, "k", (1, 1, 1), (1, 1, 1), [words(1)])
        assert loaded.runner.counts.blocks == expected


def test_without_a_tool_all_is_interpreted(caplog):
    def fails(text):
        raise ToolchainError("there is no opt")

    gpu = EmulatedNvidiaGpu(size=1 << 20, tools=replace(AT_ONCE, compile=fails))
    loaded = gpu.load(_TWICE)
    data = np.arange(2, dtype=np.uint32)
    for _ in range(2):
        gpu.run(loaded, "k", (1, 1, 1), (2, 1, 1), [data])
    assert data.tolist() == [0, 4] and loaded.runner.counts.blocks == 0
    assert caplog.text.count("all PTX is interpreted") == 1


def test_without_tools_a_file_stays_as_it_is():
    gpu = EmulatedNvidiaGpu(size=1 << 20)
    loaded = gpu.load(_TWICE)
    assert isinstance(loaded, LoadedPtx) and loaded.runner is None
    assert translated(loaded, None) is loaded

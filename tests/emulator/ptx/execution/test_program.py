"""Blocks of instructions, which are bound when they run."""

import numpy as np
import pytest

from refcomp.emulator.ptx.execution.program import BoundProgram
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.foundation.errors import Unsupported, UserError
from tests.emulator.ptx.texts import HEADER, OWN_PLACE, kernel, kinds, run, words

_TEXT = kernel(f"""
    {OWN_PLACE}
    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra $end;
    add.u32 %r2, %r1, 1; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; add.u32 %r4, %r3, 1;
    fence.acq_rel.gpu;
$end:
    ret;
""")


def test_blocks_end_before_labels_and_behind_branches():
    program = BoundProgram(read_ptx(_TEXT))
    found, number = [], 0
    while number < len(program.functions["k"].function.instructions):
        block = program.block(number)
        end = block.end.opcode if block.end is not None else ""
        found.append((block.count, end, block.together))
        number = block.next
    assert found == [(6, "bra", False), (1, "", False), (3, "", True), (1, "ret", False)]


def test_what_is_not_emulated_matters_only_where_it_runs():
    text = kernel(f"""
        {OWN_PLACE}
        setp.lt.u32 %p1, %r1, 100;
        @%p1 bra $end;
        wgmma.fence.sync.aligned;
    $end:
        st.global.u32 [%rd2], 4;
        ret;
    """)
    data = words(4)
    assert run(text, [data, np.uint32(0)], block=4).findings == ()
    assert data.tolist() == [4] * 4
    with pytest.raises(Unsupported, match="is not emulated"):
        run(text.replace("%r1, 100", "%r1, 2"), [data, np.uint32(0)], block=4)


def test_a_predicate_that_holds_nowhere_runs_nothing():
    text = kernel("setp.ne.u32 %p1, %r1, %r1; @%p1 st.global.u32 [%rd1+400], 1; ret;")
    assert run(text, [words(1), np.uint32(0)], block=4).findings == ()


_TWO_KERNELS = f"""{HEADER}
.shared .align 4 .b8 large[200000];
.shared .align 4 .b8 small[8];
.visible .entry k(.param .u64 data)
{{
    .shared .align 4 .b8 own[16];
    st.shared.u32 [small+PLACE], 1; st.shared.u32 [own], 2;
    ret;
}}
.visible .entry other(.param .u64 data)
{{
    .shared .align 4 .b8 own[64];
    st.shared.u32 [large], 1; st.shared.u32 [own+60], 2;
    ret;
}}
"""


def test_each_kernel_has_the_shared_memory_that_it_names():
    program = BoundProgram(read_ptx(_TWO_KERNELS.replace("PLACE", "4")))
    assert program.shared_of("k").offsets == {"small": 0, "k::own": 8}
    assert program.shared_of("k").bytes == 24
    assert program.shared_of("other").bytes == 200064


def test_a_kernel_does_not_reach_shared_memory_of_others():
    assert run(_TWO_KERNELS.replace("PLACE", "4"), [words(1)], block=1).findings == ()
    report = run(_TWO_KERNELS.replace("PLACE", "24"), [words(1)], block=1)
    assert kinds(report) == ["out of bounds"]
    assert "accesses 4 bytes at 24 of shared memory; a block has 24" in str(report.findings[0])


@pytest.mark.parametrize(
    "wrong",
    [
        "mov.u32 %r1;",
        "add.u32 %r1, %r2;",
        "ld [%rd1];",
        "ld.global.u32 %r1;",
        "ld.global.xyz %r1, [%rd1];",
        "ld.global.v2.u32 %r1, [%rd1];",
        "st.global.u32 [%rd1];",
        "st.global.v2.u32 [%rd1], %r1;",
        "atom.global.cas.b32 %r2, [%rd1], %r1;",
        "cvta %rd1, %rd2;",
        "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31;",
        "vote.sync.any.pred %p1, %p2;",
        "redux.sync.add.s32 %r1, %r2;",
        "bar.sync;",
        "bar.warp.sync;",
        "bar.red.popc.u32 %r1, 0;",
        "mbarrier.init.shared.b64 [%r1];",
        "cp.async.ca.shared.global [%r1], [%rd1];",
        "mov.b64 %rd1, {%r1, %r2, %r3};",
        "mov.b128 %q1, {%rd1, %rd2};",
        "mov.b128 {%rd1, %rd2}, %q1;",
        "add.u64 %rd1, %rd2, %q1;",
        "add.u64 %q1, %rd2, %rd1;",
    ],
)
def test_malformed_instruction_is_refused_with_its_line(wrong):
    text = kernel(f".reg .b128 %q<3>; setp.eq.u32 %p3, %r1, 99; @!%p3 bra $end; {wrong} $end: ret;")
    assert run(text, [words(1), np.uint32(0)]).findings == ()  # it is not reached
    with pytest.raises((Unsupported, UserError)) as caught:
        run(text.replace("@!%p3 bra", "@%p3 bra"), [words(1), np.uint32(0)])
    assert "line " in str(caught.value.where)
    assert caught.value.remedy

"""Blocks of instructions, which are bound when they run."""

import numpy as np
import pytest

from refcomp.emulator.ptx.execution.program import BoundProgram
from refcomp.emulator.ptx.text.parse import read_ptx
from refcomp.foundation.errors import Unsupported
from tests.emulator.ptx.texts import OWN_PLACE, kernel, run, words

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
        cp.async.bulk.commit_group;
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

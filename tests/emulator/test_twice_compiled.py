"""Operations of LLVM IR give on emulated GPUs what the same text gives on this machine."""

import pytest

from refcomp.emulator.generation import ARCHITECTURES, GFX942
from refcomp.emulator.operation import operation
from tests.emulator.ir_operations import operations
from tests.emulator.twice_compiled import ir_operations

pytestmark = pytest.mark.rocm


@pytest.mark.parametrize("gpu", ARCHITECTURES)
def test_both_agree_to_the_bit(gpu, record_property):
    outcome = ir_operations(1, gpu)
    assert not outcome.wrong, "\n".join(outcome.wrong[:20])
    told = f"{outcome.count} operations of LLVM IR on {gpu}, {len(outcome.seen)} instructions"
    record_property("summary", f"{told}, agree with this machine")
    assert outcome.count >= 400 and len(outcome.seen) >= 300


def test_a_wrong_row_is_noticed(monkeypatch):
    """The median of three, which takes the first operand for it."""
    names = [one.name for one in operations()]
    step = names.index("smed3_i32")
    wrong = operation("i32 = i32 i32 i32", lambda a, b, c: a + 0 * b)
    monkeypatch.setitem(GFX942.vector, "v_med3_i32", wrong)
    told = ir_operations.__wrapped__(step).wrong
    assert told and all(one.startswith("smed3_i32") for one in told)

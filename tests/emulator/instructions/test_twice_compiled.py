"""That a wrong instruction is noticed; that all agree, see tests/emulator/test_ledger.py."""

import pytest

from refcomp.emulator.generations.generation import GFX942
from refcomp.emulator.instructions.operation import operation
from tests.emulator.instructions.ir_operations import operations
from tests.emulator.instructions.twice_compiled import ir_operations

pytestmark = pytest.mark.rocm


def test_a_wrong_row_is_noticed(monkeypatch):
    """The median of three, which takes the first operand for it."""
    names = [one.name for one in operations()]
    step = names.index("smed3_i32")
    wrong = operation("i32 = i32 i32 i32", lambda a, b, c: a + 0 * b)
    monkeypatch.setitem(GFX942.vector, "v_med3_i32", wrong)
    told = ir_operations.__wrapped__(step).wrong
    assert told and all(one.startswith("smed3_i32") for one in told)

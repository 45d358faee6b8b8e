import numpy as np
import pytest

from refcomp.emulator.ptx.instructions.moves import packed_parts, unpacked_parts
from refcomp.foundation.errors import UserError
from tests.emulator.ptx.instructions.worded import bits, rule, run, undefined


def test_copy_keeps_all_bits() -> None:
    signalling = np.array([0x7F812345], np.uint32)
    assert bits(run("mov.f32 d, a", signalling)) == [0x7F812345]
    assert run("mov.pred d, a", [True, False]).tolist() == [True, False]


def test_first_part_is_the_lowest() -> None:
    assert bits(run("mov.b64 d, {a, b}", [1], [2])) == [2 << 32 | 1]
    assert bits(run("mov.b32 d, {a, b}", [1], [2])) == [2 << 16 | 1]
    assert bits(run("mov.b32 d, {a, b, c, e}", [1], [2], [3], [4])) == [0x04030201]
    low, high = run("mov.b64 {a, b}, d", [2 << 32 | 1])
    assert (low.tolist(), high.tolist()) == ([1], [2])
    parts = run("mov.b64 {a, b, c, e}, d", [0x0004000300020001])
    assert [part.tolist() for part in parts] == [[1], [2], [3], [4]]


def test_parts_without_axes_stay_so() -> None:
    assert packed_parts("b32", np.array(1, np.uint16), np.array(2, np.uint16)).shape == ()
    assert unpacked_parts("b32", 2, np.array(5, np.uint32))[0].shape == ()


def test_undefined_bits_move_along() -> None:
    assert undefined("mov.b32 d, {a, b}", [0, 0], [0, 0xFFFF]) == 0xFFFF0000
    assert undefined("mov.b32 {a, b}, d", [0], [0xFFFF0000]) == (0, 0xFFFF)
    assert undefined("mov.f32 d, a", [0], [5]) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mov.f32 d, {a, b}", "mov.f32 does not hold a vector of 2 parts"),
        ("mov.b16 d, {a, b, c}", "mov.b16 does not hold a vector of 3 parts"),
        ("mov.b32 d", "mov has 1 operand here, and needs 2"),
    ],
)
def test_forms_that_ptx_lacks_are_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule(text)

import numpy as np

from refcomp.emulator.instructions import spreads
from refcomp.emulator.ptx.instructions.undefined import (
    all_bits,
    any_or,
    of_selp,
    shadows_first,
)


def one(number: int) -> np.ndarray:
    return np.array([number], np.uint32)


def test_values_come_before_shadows() -> None:
    spread = shadows_first(spreads.of_and)
    assert spread(one(0), one(0xF0), one(0xFF), one(0)).tolist() == [0xF0]


def test_floats_are_seen_as_bits() -> None:
    number = np.array([1.0], np.float32)
    assert shadows_first(spreads.of_copy)(number, one(5)).tolist() == [5]


def test_unspecified_results_are_undefined() -> None:
    spread = any_or("u16", lambda a: a == 3)
    zero = np.zeros(2, np.uint16)
    assert spread(np.array([3, 4]), zero).tolist() == [0xFFFF, 0]
    assert spread(np.array([0, 0]), np.array([0, 1])).tolist() == [0, 0xFFFF]


def test_all_bits_of_a_predicate() -> None:
    assert all_bits("pred", np.array([True, False])).tolist() == [True, False]


def test_choice() -> None:
    zero = one(0)
    known = np.array([False])
    assert of_selp(one(1), one(3), known, zero, one(4), known).tolist() == [4]
    assert of_selp(one(1), one(3), known, zero, zero, ~known).tolist() == [2]

"""Operators on integers: signs, zero, shifts beyond the width, and results that wrap."""

import numpy as np
import pytest

from refcomp.foundation.dtype import BOOL, I64, as_dtype
from refcomp.foundation.integers import OPERATORS, shift_left, shift_right, wrap

PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (0, 5)]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_quotients_and_remainders_are_those_of_numpy(a: int, b: int) -> None:
    assert OPERATORS["floordiv"](a, b) == np.floor_divide(a, b)
    assert OPERATORS["floormod"](a, b) == np.remainder(a, b)
    assert OPERATORS["div"](a, b) == int(np.trunc(a / b))
    assert OPERATORS["mod"](a, b) == np.fmod(a, b)


@pytest.mark.parametrize("name", ["div", "mod", "floordiv", "floormod"])
def test_a_division_by_zero_gives_zero(name: str) -> None:
    assert [OPERATORS[name](a, 0) for a in (-3, 0, 3)] == [0, 0, 0]


def test_logic_takes_every_integer_but_zero_as_true() -> None:
    assert OPERATORS["and"](2, 1) == 1 and OPERATORS["or"](0, 2) == 1
    assert OPERATORS["bitand"](2, 1) == 0 and OPERATORS["bitxor"](3, 1) == 2


def test_shift_amounts_are_unsigned() -> None:
    i8 = as_dtype("i8")
    assert [shift_left(3, n, i8) for n in (0, 7, 8, -1)] == [3, 384, 0, 0]
    assert [shift_right(-3, n, i8) for n in (0, 1, 8, -1)] == [-3, -2, -1, -1]


@pytest.mark.parametrize("name", ["i8", "u8", "i32", "u64"])
def test_results_keep_their_low_bits(name: str) -> None:
    dtype = as_dtype(name)
    least, most, count = dtype.min_value, dtype.max_value, 1 << dtype.bits
    assert [wrap(value, dtype) for value in (least, most)] == [least, most]
    assert [wrap(least - 1, dtype), wrap(most + 1, dtype)] == [most, least]
    assert wrap(5 * count - 3, dtype) == wrap(-3, dtype)


def test_a_bool_is_one_unless_it_is_zero() -> None:
    assert [wrap(value, BOOL) for value in (-2, 0, 1, 2)] == [1, 0, 1, 1]
    assert wrap(1 << 63, I64) == -(1 << 63)

"""Logic and bits: special values and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.broadcast import bits
from tests.strategies.operands import assert_same, run_te, tensors


def both(name, *arrays, **attributes):
    """Return the result of the compute, which must be its meaning."""
    found = run_te(getattr(bits, name), *arrays, is_symbolic=False, **attributes)
    with np.errstate(all="ignore"):
        assert_same(getattr(bits, f"{name}_numpy")(*arrays, **attributes), found, 1e-6)
    return found


LOGICAL = ["logical_and", "logical_or", "logical_xor"]
OF_BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("logical_and", [True, False, False, False]),
        ("logical_or", [True, True, True, False]),
        ("logical_xor", [False, True, True, False]),
    ],
)
def test_truth_table(name, expected):
    found = both(name, np.array([[True], [False]]), np.array([True, False]))
    assert found.ravel().tolist() == expected


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("bitwise_and", [6, -1, -128], [3, 5, 127], [2, 5, 0]),
        ("bitwise_or", [6, -1, -128], [3, 5, 127], [7, -1, -1]),
        ("bitwise_xor", [6, -1, -128], [3, 5, 127], [5, -6, -1]),
        ("left_shift", [1, 1, 3, 1, 1], [0, 7, 7, 8, -1], [1, -128, -128, 0, 0]),
        ("right_shift", [64, -128, -1, 5, -5], [6, 7, 1, 8, -1], [1, -1, -1, 0, -1]),
    ],
)
def test_bits_of_special_integers(name, a, b, expected):
    assert both(name, np.int8(a), np.int8(b)).tolist() == expected


def test_unsigned_integers_are_filled_with_zeros():
    assert both("right_shift", np.uint8([255, 128]), np.uint8([1, 8])).tolist() == [127, 0]


@pytest.mark.parametrize("name", LOGICAL)
def test_ill_formed_calls_are_refused(name):
    operator = getattr(bits, name)
    with pytest.raises(UserError, match=f"{name} takes a tensor of bool, not i8"):
        operator(*tensors((3,), (3,), dtype="int8"))
    with pytest.raises(UserError, match=f"{name} cannot combine bool with i32"):
        operator(*tensors((3,), dtype="bool"), *tensors((3,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,), dtype="bool"))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(*tensors((3,), dtype="bool"), 3)


@pytest.mark.parametrize("name", OF_BITS)
def test_ill_formed_integer_calls_are_refused(name):
    operator = getattr(bits, name)
    with pytest.raises(UserError, match=f"{name} takes integer tensors, not bool"):
        operator(*tensors((3,), (3,), dtype="bool"))
    with pytest.raises(UserError, match=f"{name} cannot combine i32 with u8"):
        operator(*tensors((3,), dtype="int32"), *tensors((3,), dtype="uint8"))
    with pytest.raises(UserError, match=f"{name}: an extent of the second operand is 2"):
        operator(*tensors((3,), (2,), dtype="int32"))
    with pytest.raises(UserError, match=f"{name} is applied to a int, not to a tensor"):
        operator(*tensors((3,), dtype="int32"), 3)

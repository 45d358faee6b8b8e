"""Bits in words, and products by popcount: known answers, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.contraction.bitserial import (
    bitpack,
    bitpack_numpy,
    bitserial_dense,
    bitserial_dense_numpy,
)
from tests.strategies.operands import assert_same, run_te, tensors


def test_first_element_is_the_most_significant_bit() -> None:
    data = np.array([[1, 0, 0, 2, 3, 0, 0, 0, 1]], np.int8)
    expected = np.array([[[0b10001000, 0b10000000]], [[0b00011000, 0]]], np.uint8)
    how = {"bits": 2, "pack_axis": 1, "bit_axis": 0, "pack_dtype": "uint8"}
    assert_same(run_te(bitpack, data, **how), expected)
    assert_same(bitpack_numpy(data, **how), expected)
    wide = {**how, "pack_dtype": "uint32"}
    words = np.array([[[0b10001000 << 24 | 1 << 23]], [[0b00011000 << 24]]], np.uint32)
    assert_same(run_te(bitpack, data, **wide), words)
    assert_same(bitpack_numpy(data, **wide), words)


def test_packed_axis_may_be_the_first_and_empty() -> None:
    data = np.ones((3, 2), np.uint8)
    found = run_te(bitpack, data, is_symbolic=False, bits=1, pack_axis=0, pack_dtype="uint8")
    assert_same(found, np.full((1, 2, 1), 0b11100000, np.uint8))
    empty = np.ones((0, 2), np.uint8)
    found = run_te(bitpack, empty, is_symbolic=False, bits=1, pack_axis=0)
    assert_same(found, np.zeros((0, 2, 1), np.uint32))


@pytest.mark.parametrize(("unipolar", "expected"), [(True, 3 - 2 + 1), (False, 3 + 1)])
def test_bits_of_weights_mean_signs_or_numbers(unipolar: bool, expected: int) -> None:
    data, weight = np.array([[3, 2, 1]], np.uint8), np.array([[1, 0, 1]], np.uint8)
    how = {"data_bits": 2, "weight_bits": 1, "unipolar": unipolar}
    result = np.array([[expected]], np.int32)
    assert_same(run_te(bitserial_dense, data, weight, is_symbolic=False, **how), result)
    assert_same(bitserial_dense_numpy(data, weight, **how), result)


def test_higher_bits_are_dropped() -> None:
    data, weight = np.array([[-1]], np.int8), np.array([[7]], np.int8)
    how = {"data_bits": 2, "weight_bits": 2, "unipolar": False}
    found = run_te(bitserial_dense, data, weight, is_symbolic=False, **how)
    assert_same(found, np.array([[9]], np.int32))


def test_ill_formed_operands_are_refused() -> None:
    (data,) = tensors((2, 3), dtype="uint8")
    with pytest.raises(UserError, match="bitpack cannot take 9 bits of u8"):
        bitpack(data, bits=9)
    with pytest.raises(UserError, match="bitpack cannot take 0 bits of u8"):
        bitpack(data, bits=0)
    with pytest.raises(UserError, match="bitpack cannot take 1 bits of f32"):
        bitpack(*tensors((2, 3)), bits=1)
    with pytest.raises(UserError, match="bitpack cannot pack bits into i32"):
        bitpack(data, bits=1, pack_dtype="int32")
    with pytest.raises(UserError, match="bitpack: axis 2 is out of range for 2 dimensions"):
        bitpack(data, bits=1, pack_axis=2)
    with pytest.raises(UserError, match="bitpack: axis 3 is out of range for 3 dimensions"):
        bitpack(data, bits=1, bit_axis=3)
    with pytest.raises(UserError, match="bitpack: the data have rank 0"):
        bitpack(*tensors((), dtype="uint8"), bits=1)
    how = {"data_bits": 1, "weight_bits": 1}
    with pytest.raises(UserError, match="the weight's second extent is 4 instead of 3"):
        bitserial_dense(data, *tensors((2, 4), dtype="uint8"), **how)
    with pytest.raises(UserError, match="bitserial_dense: the weight has 1 dimensions"):
        bitserial_dense(data, *tensors((3,), dtype="uint8"), **how)
    with pytest.raises(UserError, match="bitserial_dense cannot add up counts of bits in f32"):
        bitserial_dense(data, data, out_dtype="float32", **how)

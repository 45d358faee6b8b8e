"""quantized_dense_pack: results of quantized_dense, ends of the range, odd sums, and refusals."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.te.operation import placeholder
from refcomp.te.tensor import var
from refcomp.topi.contraction.quantized import matmul_integer_numpy, quantized_dense
from refcomp.topi.contraction.quantized_packed_dense import (
    pack_pairs_numpy,
    quantized_dense_pack,
    quantized_dense_pack_numpy,
)
from tests.strategies.operands import assert_same, run_te


def _weights(dtype: str, *shape: int):
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(1).integers(limits.min, limits.max + 1, shape).astype(dtype)
    if drawn.size > 1:
        drawn.reshape(-1)[:2] = limits.min, limits.max
    return drawn


@pytest.mark.parametrize("depth", [0, 1, 4, 7])
@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("int8", "uint8")])
def test_sums_are_those_of_the_matrices(depth, dtypes) -> None:
    data, matrix = _weights(dtypes[0], 3, depth), _weights(dtypes[1], depth, 5)
    zero = np.array(np.iinfo(dtypes[0]).max, dtypes[0])
    zeros = _weights(dtypes[1], 5)
    panels = pack_pairs_numpy(matrix.astype(np.int32) - zeros, 4)
    assert panels.shape == (2, -(-depth // 2), 4) and panels.dtype == np.int32
    expected = matmul_integer_numpy(data, matrix, zero, zeros)
    operands = (data, panels, None, None, None, None, zero)
    assert_same(run_te(quantized_dense_pack, *operands, units=5, is_symbolic=False), expected)
    assert_same(quantized_dense_pack_numpy(*operands, units=5), expected)


def test_results_are_those_of_quantized_dense() -> None:
    data, weight = _weights("uint8", 2, 3, 9), _weights("int8", 6, 9)
    zeros = _weights("int8", 6)
    scales = [np.float32(0.3), np.linspace(0.01, 0.02, 6, dtype=np.float32), np.float32([0.7])]
    bias = np.arange(-3, 3, dtype=np.int32) * 1000
    point, y_point = np.array([7], np.uint8), np.array(9, np.uint8)
    layer = (data, weight, *scales, bias, point, zeros, y_point)
    expected = run_te(quantized_dense, *layer, is_symbolic=False)
    panels = pack_pairs_numpy(weight.T.astype(np.int32) - zeros, 3)
    packed = (data, panels, *scales, bias, point, y_point)
    assert_same(run_te(quantized_dense_pack, *packed, is_symbolic=False), expected)


def test_the_half_behind_an_odd_sum_is_not_read() -> None:
    panels = np.array([[[5 * 2**16 + 2]]], np.int32)
    data = np.array([[3]], np.int8)
    found = run_te(quantized_dense_pack, data, panels, is_symbolic=False)
    assert_same(found, np.array([[6]], np.int32))
    assert_same(quantized_dense_pack_numpy(data, panels), np.array([[6]], np.int32))


def test_a_vector_and_an_empty_sum() -> None:
    panels = np.array([[[-1, 2**16]]], np.int32)  # the columns -1, -1 and 0, 1
    data = np.array([3, 4], np.int8)
    found = run_te(quantized_dense_pack, data, panels, is_symbolic=False)
    assert_same(found, np.array([-7, 4], np.int32))
    empty = np.zeros((1, 0, 4), np.int32)
    found = run_te(quantized_dense_pack, np.zeros((2, 0), np.int8), empty, is_symbolic=False)
    assert_same(found, np.zeros((2, 4), np.int32))


def _refused(match: str, *operands, **attributes) -> None:
    with pytest.raises(UserError, match=match):
        quantized_dense_pack(*operands, **attributes)


def test_ill_formed_operands_are_refused() -> None:
    data, one = placeholder((2, 3), "int8"), placeholder(())
    panels = placeholder((2, 2, 4), "int32")
    _refused("the data is f32, not int8 or uint8", placeholder((2, 3)), panels)
    _refused("the data have rank 0", placeholder((), "int8"), panels)
    _refused("the panels has 2 dimensions instead of 3", data, placeholder((2, 3), "int32"))
    _refused("the panels are i8, not int32", data, placeholder((2, 2, 4), "int8"))
    _refused(
        "the reduced extent of the data must be a constant",
        placeholder((2, var("n")), "int8"),
        panels,
    )
    _refused(
        "the number of pairs in a column is 3 instead of 2", data, placeholder((2, 3, 4), "int32")
    )
    _refused("9 columns cannot lie in 2 panels of 4", data, panels, units=9)
    _refused("some of the three scales are missing", data, panels, one)
    point = placeholder((), "int8")
    _refused("a zero point of the result is given without scales", data, panels, y_zero_point=point)
    unsigned = placeholder((), "uint8")
    _refused("cannot combine i8 with u8", data, panels, data_zero_point=unsigned)
    rows = placeholder((2,), "int8")
    _refused("a zero point's extent is 2 instead of 1", data, panels, data_zero_point=rows)
    bias = placeholder((4,), "int32")
    _refused("the bias' extent is 4 instead of 8", data, panels, bias=bias)
    many = placeholder((8,))
    _refused("a scale's extent is 8 instead of 1", data, panels, many, one, one)
    assert quantized_dense_pack(data, panels, one, many, one).shape[-1].value == 8

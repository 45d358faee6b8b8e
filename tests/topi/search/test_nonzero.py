"""nonzero, argwhere and compress: special values, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.search.nonzero import argwhere, compress, nonzero
from tests.strategies.operands import tensors


def _evaluated(operator, *arrays, **attributes):
    inputs = [rc.placeholder(a.shape, a.dtype, name=f"p{k}") for k, a in enumerate(arrays)]
    outputs = operator(*inputs, **attributes)
    return rc.oracle.evaluate(outputs, dict(zip(inputs, arrays, strict=True)))


def test_nan_is_not_zero_and_negative_zero_is():
    data = np.array([[np.nan, -0.0], [0, -np.inf]], np.float32)
    indices, count = _evaluated(nonzero, data)
    assert count.tolist() == [2]
    assert indices.tolist() == [[0, 1, 0, 0], [0, 1, 0, 0]]
    indices, count = _evaluated(argwhere, data)
    assert indices.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize("value", [0, 3])
def test_a_tensor_of_rank_0_has_no_indices_but_a_count(value):
    indices, count = _evaluated(nonzero, np.array(value))
    assert indices.shape == (0, 1) and count.tolist() == [int(value != 0)]
    indices, count = _evaluated(argwhere, np.array(value))
    assert indices.shape == (1, 0) and count.tolist() == [int(value != 0)]


def test_compress_takes_slices_and_fills_with_zeros():
    data = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    condition = np.array([False, True, True])
    result, count = _evaluated(compress, data, condition, axis=-1)
    assert result.tolist() == [[2, 3, 0], [5, 6, 0]] and count.tolist() == [2]
    result, count = _evaluated(compress, data, condition)
    assert result.tolist() == [2, 3, 0] and count.tolist() == [2]
    result, count = _evaluated(compress, data > 1, condition, axis=1)
    assert result.tolist() == [[True, True, False], [True, True, False]]


def test_ill_formed_calls_are_refused():
    data, long = tensors((2, 3), (3,), dtype="int32")
    (floats,) = tensors((2,))
    for operator in (nonzero, argwhere):
        with pytest.raises(UserError, match=f"{operator.__name__} is applied to a float"):
            operator(1.0)
    with pytest.raises(UserError, match="the condition has 2 dimensions instead of 1"):
        compress(data, data)
    with pytest.raises(UserError, match="cannot select by conditions of the dtype f32"):
        compress(data, floats)
    with pytest.raises(UserError, match="the condition may be longer than the axis"):
        compress(data, long, axis=0)
    with pytest.raises(UserError, match="axis 2 is out of range"):
        compress(data, long, axis=2)
    symbolic = rc.placeholder((rc.var("n"),), "int32", name="C")
    with pytest.raises(UserError, match="the condition may be longer than the axis"):
        compress(data, symbolic)
    assert len(compress(symbolic, symbolic)) == 2

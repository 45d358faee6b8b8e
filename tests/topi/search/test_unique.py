"""unique: special values, long inputs, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.search.unique import unique, unique_numpy


def _agreed(data, **attributes):
    """Return the results on the interpreter, which must be those of numpy."""
    tensor = rc.placeholder(data.shape, data.dtype, name="data")
    found = rc.oracle.evaluate(unique(tensor, **attributes), {tensor: data})
    for one, other in zip(found, unique_numpy(data, **attributes), strict=True):
        np.testing.assert_array_equal(one, other)
    return [one.tolist() for one in found]


def test_nan_is_one_value_and_zeros_are_equal():
    data = np.array([np.nan, -0.0, 1, np.nan, 0.0], np.float32)
    values, firsts, inverse, sizes, count = _agreed(data)
    np.testing.assert_array_equal(values, [-0.0, 1, np.nan, 0, 0])
    assert np.signbit(values[0]) and count == [3]
    assert (firsts, inverse, sizes) == ([1, 2, 0, 0, 0], [2, 0, 1, 2, 0], [2, 1, 2, 0, 0])
    values, firsts, inverse, sizes, _ = _agreed(data, is_sorted=False)
    np.testing.assert_array_equal(values, [np.nan, -0.0, 1, 0, 0])
    assert (firsts, inverse, sizes) == ([0, 1, 2, 0, 0], [0, 1, 2, 0, 1], [2, 2, 1, 0, 0])


@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_scalar_and_nothing(is_sorted):
    assert _agreed(np.array(7), is_sorted=is_sorted) == [[7], [0], [0], [1], [1]]
    assert _agreed(np.zeros((2, 0)), is_sorted=is_sorted) == [[], [], [], [], [0]]


@pytest.mark.llvm
@pytest.mark.parametrize("is_sorted", [True, False])
def test_many_elements_on_the_host(is_sorted):
    data = np.random.default_rng(0).integers(-200, 200, 3000).astype("int32")
    tensor = rc.placeholder(data.shape, data.dtype, name="data")
    outputs = unique(tensor, is_sorted=is_sorted)
    built = rc.build(rc.topi.schedule_llvm(outputs), [tensor, *outputs], "llvm")
    expected = unique_numpy(data, is_sorted=is_sorted)
    found = [rc.array(np.full_like(one, 77)) for one in expected]
    built(rc.array(data), *found)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_what_is_not_a_tensor_is_refused():
    with pytest.raises(UserError, match="unique is applied to a list, not to a tensor"):
        unique([1, 2])

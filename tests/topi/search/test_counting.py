"""isin, bincount and histogram: special values, both forms, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.operator import find_operator
from refcomp.topi.search import counting
from refcomp.topi.search.counting import (
    bincount,
    bincount_numpy,
    histogram,
    histogram_numpy,
    isin,
    isin_numpy,
)
from tests.strategies.operands import run_te, tensors
from tests.topi.agreement import WAYS, check_on, make_case

NAN = np.nan


def test_nan_is_in_no_set_and_zeros_are_equal():
    data, values = np.array([NAN, 0.0, 1], np.float32), np.array([NAN, -0.0], np.float32)
    assert run_te(isin, data, values).tolist() == [False, True, False]
    assert isin_numpy(data, values).tolist() == [False, True, False]
    assert run_te(isin, data, values, invert=True).tolist() == [True, False, True]
    assert run_te(isin, data, values[:0]).tolist() == [False] * 3


@pytest.fixture
def sorted_values(monkeypatch):
    monkeypatch.setattr(counting, "MOST_COMPARED", 0)


def _cases():
    return [make_case(find_operator("isin"), seed) for seed in range(8)]


@pytest.mark.search
def test_sorted_values_agree_with_the_meaning(sorted_values):
    check_on(WAYS["interp"], _cases())


@pytest.mark.llvm
def test_sorted_values_on_the_host(sorted_values):
    check_on(WAYS["llvm"], _cases())


@pytest.mark.pocl
def test_sorted_values_in_opencl(sorted_values):
    check_on(WAYS["opencl"], _cases())


def test_numbers_out_of_range_are_not_counted():
    data = np.array([[-1, 0, 2], [2, 3, -3]], np.int32)
    for found in (run_te(bincount, data, length=3), bincount_numpy(data, length=3)):
        assert found.tolist() == [1, 0, 2]
    weights = np.array([[9, 1, 2], [3, 9, 9]], np.float32)
    numbers, added = tensors((2, 3), dtype="int32") + tensors((2, 3))
    counted = bincount(numbers, added, length=3)
    (found,) = rc.oracle.evaluate([counted], {numbers: data, added: weights})
    for result in (found, bincount_numpy(data, weights, length=3)):
        assert result.tolist() == [1, 0, 5] and result.dtype == np.float32
    big = np.array([2**64 - 1, 1], np.uint64)
    assert run_te(bincount, big, length=2).tolist() == [0, 1]
    assert run_te(bincount, data, length=0).tolist() == []


def test_the_last_bin_holds_its_upper_edge():
    data = np.array([NAN, -np.inf, 0, 0.5, 1, 2, 2.5, np.inf], np.float32)
    edges = np.array([0, 1, 2], np.float32)
    for found in (run_te(histogram, data, edges), histogram_numpy(data, edges)):
        assert found.tolist() == [2, 2]
    equal = np.array([1, 2, 2], np.float32)
    for found in (run_te(histogram, data, equal), histogram_numpy(data, equal)):
        assert found.tolist() == [1, 1]


def test_ill_formed_calls_are_refused():
    data, matrix, one = tensors((3,), (2, 3), (1,))
    integers, rows, four = tensors((3,), (2, 3), (4,), dtype="int32")
    with pytest.raises(UserError, match="isin cannot combine f32 with i32"):
        isin(data, integers)
    with pytest.raises(UserError, match="isin is applied to a int"):
        isin(3, data)
    with pytest.raises(UserError, match="bincount takes integers, not f32"):
        bincount(data, length=3)
    with pytest.raises(UserError, match="bincount cannot count -1 numbers"):
        bincount(integers, length=-1)
    with pytest.raises(UserError, match="the tensor of weights has 2 dimensions instead of 1"):
        bincount(integers, matrix, length=3)
    with pytest.raises(UserError, match="extent 0 of the weights is 4 instead of 3"):
        bincount(integers, four, length=3)
    with pytest.raises(UserError, match="bincount cannot add up bools"):
        bincount(integers, *tensors((3,), dtype="bool"), length=3)
    with pytest.raises(UserError, match="the tensor of edges has 2 dimensions instead of 1"):
        histogram(data, matrix)
    with pytest.raises(UserError, match="histogram cannot combine i32 with f32"):
        histogram(rows, data)
    with pytest.raises(UserError, match="histogram cannot make bins between 1 edges"):
        histogram(data, one)
    with pytest.raises(UserError, match="the number of edges must be a constant"):
        histogram(data, *tensors((rc.var("n"),)))

"""sort, argsort and topk: special values, and refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.search.sort import argsort, argsort_numpy, sort, sort_numpy, topk, topk_numpy
from tests.strategies.operands import run_te, tensors

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("values", "is_ascend", "expected", "positions"),
    [
        ([3, NAN, -INF, INF, 1], True, [-INF, 1, 3, INF, NAN], [2, 4, 0, 3, 1]),
        ([3, NAN, -INF, INF, 1], False, [NAN, INF, 3, 1, -INF], [1, 3, 0, 4, 2]),
        ([2, 1, 2, 1], True, [1, 1, 2, 2], [1, 3, 0, 2]),
        ([2, 1, 2, 1], False, [2, 2, 1, 1], [0, 2, 1, 3]),
        ([], True, [], []),
        ([7], False, [7], [0]),
    ],
)
def test_known_orders(values, is_ascend, expected, positions):
    data = np.array(values, np.float32)
    for found in (run_te(sort, data, is_ascend=is_ascend), sort_numpy(data, is_ascend=is_ascend)):
        np.testing.assert_array_equal(found, np.array(expected, np.float32))
    for found in (
        run_te(argsort, data, is_ascend=is_ascend),
        argsort_numpy(data, is_ascend=is_ascend),
    ):
        assert found.tolist() == positions


def test_zeros_of_both_signs_keep_their_order():
    data = np.array([0.0, -0.0, -1, 0.0], np.float32)
    assert np.signbit(run_te(sort, data)).tolist() == [True, False, True, False]


def test_topk_takes_the_first_of_equal_elements():
    (data,) = tensors((2, 4), dtype="int32")
    values = np.array([[5, 7, 7, 1], [2, 2, 2, 2]], np.int32)
    found = rc.oracle.evaluate(topk(data, k=2), {data: values})
    for one, other in zip(found, topk_numpy(values, k=2), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0].tolist() == [[7, 7], [2, 2]]
    assert found[1].tolist() == [[1, 2], [0, 1]]


def test_topk_of_no_elements():
    (data,) = tensors((2, 4))
    assert [output.shape[1].value for output in topk(data, k=0)] == [0, 0]


def test_ill_formed_calls_are_refused():
    (data,) = tensors((2, 3))
    (scalar,) = tensors(())
    for operator in (sort, argsort):
        with pytest.raises(UserError, match="axis 2 is out of range for 2 dimensions"):
            operator(data, axis=2)
        with pytest.raises(UserError, match="axis -1 is out of range for 0 dimensions"):
            operator(scalar)
        with pytest.raises(UserError, match=f"{operator.__name__} is applied to a int"):
            operator(3)
    for operator, attributes in ((argsort, {}), (topk, {"k": 1})):
        with pytest.raises(UserError, match="cannot give positions of the dtype f32"):
            operator(data, dtype="float32", **attributes)
    with pytest.raises(UserError, match="topk cannot find 4 of 3 elements"):
        topk(data, k=4)
    with pytest.raises(UserError, match="topk cannot find -1 of 3 elements"):
        topk(data, k=-1)
    with pytest.raises(UserError, match="the extent of the axis must be a constant"):
        topk(rc.placeholder((rc.var("n"),), name="data"), k=1)
    with pytest.raises(UserError, match="axis 2 is out of range for 2 dimensions"):
        topk(data, k=1, axis=2)


def test_only_the_first_elements_are_sorted():
    # The program of the classic tests, contrib.sort.argsort_nms.
    data = np.array(
        [
            [[1, 2, 3], [2, 4.5, 3.5], [1.1, 0.5, 1], [3.2, -5, 0.5], [1.5, 0, 0]],
            [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15]],
        ],
        np.float32,
    )
    counts = np.array([[1, 2, 3], [4, 5, 5]], np.int32)
    expected = [
        [[0, 1, 1], [1, 0, 0], [2, 2, 2], [3, 3, 3], [4, 4, 4]],
        [[3, 4, 4], [2, 3, 3], [1, 2, 2], [0, 1, 1], [4, 0, 0]],
    ]
    a = rc.placeholder(data.shape, name="A")
    n = rc.placeholder(counts.shape, "int32", name="N")
    order = argsort(a, n, axis=1, is_ascend=False)
    (found,) = rc.oracle.evaluate([order], {a: data, n: counts})
    assert found.tolist() == expected
    assert argsort_numpy(data, counts, axis=1, is_ascend=False).tolist() == expected


@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize("count", [-1, 0, 2, 3, 5, 9])
def test_equal_and_extreme_elements_keep_their_order_behind_the_count(is_ascend, count):
    for values in ([NAN, -INF, NAN, -INF, NAN], np.array([127, -128, 127, -128, 0], np.int8)):
        data = np.asarray(values)
        given = np.array(count)
        a = rc.placeholder((5,), data.dtype, name="A")
        n = rc.placeholder((), "int64", name="N")
        (found,) = rc.oracle.evaluate([argsort(a, n, is_ascend=is_ascend)], {a: data, n: given})
        assert found.tolist() == argsort_numpy(data, given, is_ascend=is_ascend).tolist()
        assert found.tolist()[max(count, 0) :] == list(range(5))[max(count, 0) :]


def test_counts_of_another_shape_are_refused():
    (data,) = tensors((2, 3))
    few, many = tensors((3,), (2, 3), dtype="int32")
    with pytest.raises(UserError, match="argsort: an extent of the counts is 3 instead of 2"):
        argsort(data, few)
    with pytest.raises(UserError, match="argsort: the tensor of counts has 2 dimensions inst"):
        argsort(data, many)
    with pytest.raises(UserError, match="argsort takes integer tensors, not f32"):
        argsort(data, data)


@pytest.mark.parametrize("count", [2**63 + 5, 2**64 - 1])
def test_large_unsigned_counts_sort_all(count):
    data, counts = np.array([3, 1, 2], np.float32), np.array(count, np.uint64)
    A, N = rc.placeholder((3,), name="A"), rc.placeholder((), "uint64", name="N")
    (found,) = rc.oracle.evaluate([rc.topi.argsort(A, N)], {A: data, N: counts})
    assert found.tolist() == [1, 2, 0]

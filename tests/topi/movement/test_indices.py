"""Indices that are elements: extreme ones of each dtype are clamped."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.movement.indices import (
    clamp_count,
    clamp_index,
    clamped_numpy,
    from_end,
    from_end_numpy,
    read_existing,
)

DTYPES = ["int8", "int32", "int64", "uint8", "uint64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_of_every_dtype_are_clamped(dtype):
    extreme = np.iinfo(dtype)
    given = np.array([extreme.min, 0, 2, 3, 4, extreme.max], dtype)
    data = rc.placeholder(given.shape, dtype, name="data")
    clamped = rc.compute(given.shape, lambda i: clamp_count(data[i], 3), name="clamped")
    (found,) = rc.oracle.evaluate([clamped], {data: given})
    assert found.tolist() == [0, 0, 2, 3, 3, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_negative_indices_count_from_the_end_and_are_clamped(dtype):
    extreme = np.iinfo(dtype)
    given = np.array([extreme.min, 0, 2, 3, extreme.max], dtype)
    meant = [0, 0, 2, 2, 2]
    if extreme.min < 0:
        given = np.append(given, np.array([-1, -3, -4], dtype))
        meant += [2, 0, 0]
    data = rc.placeholder(given.shape, dtype, name="data")
    clamped = rc.compute(
        given.shape, lambda i: clamp_index(from_end(data[i], 3), 3), name="clamped"
    )
    (found,) = rc.oracle.evaluate([clamped], {data: given})
    assert found.tolist() == clamped_numpy(given, 3).tolist() == meant
    if extreme.min < 0:
        assert from_end_numpy(given, 3)[-1] == -1


def test_an_axis_without_elements_is_read_as_zeros():
    n = rc.var("n")
    for extent in (0, n):
        data = rc.placeholder((extent, 2), name="data")
        first = rc.compute(
            (2,), lambda i, data=data: read_existing(data, (0, i), [0]), name="first"
        )
        feeds = {} if extent == 0 else {data: np.zeros((0, 2), np.float32)}
        assert rc.oracle.evaluate([first], feeds)[0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_index_without_axes_is_clamped(dtype):
    extreme = np.iinfo(dtype)
    assert clamped_numpy(np.dtype(dtype).type(extreme.max), 5) == 4
    assert clamped_numpy(np.array(extreme.max, dtype), 5) == 4
    assert clamped_numpy(np.dtype(dtype).type(extreme.min), 5) == 0

"""Indices that are elements: extreme ones of each dtype are clamped."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.movement.indices import clamp_count


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_counts_of_every_dtype_are_clamped(dtype):
    extreme = np.iinfo(dtype)
    given = np.array([extreme.min, 0, 2, 3, 4, extreme.max], dtype)
    data = rc.placeholder(given.shape, dtype, name="data")
    clamped = rc.compute(given.shape, lambda i: clamp_count(data[i], 3), name="clamped")
    (found,) = rc.oracle.evaluate([clamped], {data: given})
    assert found.tolist() == [0, 0, 2, 3, 3, 3]

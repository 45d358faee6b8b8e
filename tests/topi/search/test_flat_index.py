"""Row-major positions, and their indices."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.topi.search.flat_index import flat, index_at


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 3), (1, 1)])
def test_each_position_is_its_index(shape):
    data = rc.placeholder(shape, "int64", name="data")
    count = int(np.prod(shape))
    read = rc.compute((count,), lambda p: data[index_at(p, shape)], name="read")
    given = np.arange(count).reshape(shape)
    for tensor in (read, flat(data)):
        assert rc.oracle.evaluate([tensor], {data: given})[0].tolist() == list(range(count))


def test_no_elements_are_one_empty_dimension():
    data = rc.placeholder((2, 0, 3), name="data")
    assert [extent.value for extent in flat(data).shape] == [0]

"""The builder of operators that read one element, and their axes."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.topi.draws import Draws
from refcomp.topi.movement.rearrange import distinct_axes, rearrange, some_axes


def test_each_element_is_read_at_its_source():
    data = rc.placeholder((3,), "int32", name="data")
    result = rearrange(data, (2, 2), lambda index: [index[0] + index[1]], "sums")
    (found,) = rc.oracle.evaluate([result], {data: np.array([5, 6, 7], np.int32)})
    assert found.tolist() == [[5, 6], [6, 7]] and result.op.name == "sums"
    with pytest.raises(UserError, match="sums is applied to a list"):
        rearrange([1], (1,), lambda index: index, "sums")


def test_axes_keep_their_order():
    assert distinct_axes(None, 3, "flip") == (0, 1, 2)
    assert distinct_axes(-1, 3, "flip") == (2,)
    assert distinct_axes((2, -3), 3, "flip") == (2, 0)
    with pytest.raises(UserError, match=r"flip names an axis twice: \(0, -2\)"):
        distinct_axes((0, -2), 2, "flip")


@pytest.mark.parametrize("seed", range(8))
def test_drawn_axes_are_distinct(seed):
    assert len(set(distinct_axes(some_axes(Draws(seed), 3), 3, "flip"))) <= 3

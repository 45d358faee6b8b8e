"""Sorted positions: short axes by ranks, long ones by merges."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.te.operation import ExternOp, reachable_operations
from refcomp.topi.search.ordering import LONGEST_RANKED_AXIS, sorted_order, take_along


def _is_merged(order):
    return any(isinstance(op, ExternOp) for op in reachable_operations([order.op]))


def test_only_long_axes_are_merged():
    data = rc.placeholder((LONGEST_RANKED_AXIS, LONGEST_RANKED_AXIS + 1), name="data")
    assert not _is_merged(sorted_order(data, 0, is_ascend=True))
    assert _is_merged(sorted_order(data, 1, is_ascend=True))


def test_a_symbolic_axis_is_sorted_by_ranks_and_refused_beside_a_long_one():
    n = rc.var("n")
    data = rc.placeholder((n, LONGEST_RANKED_AXIS + 1), name="data")
    order = sorted_order(data, 0, is_ascend=True)
    assert order.shape == data.shape and not _is_merged(order)
    with pytest.raises(UserError, match="an extent beside an axis of more than 256 sorted"):
        sorted_order(data, 1, is_ascend=True)


def test_elements_are_taken_from_the_same_row():
    data = rc.placeholder((2, 3), name="data")
    order = rc.placeholder((2, 2), "int32", name="order")
    taken = take_along(data, order, 1, "taken")
    feeds = {
        data: np.arange(6, dtype="float32").reshape(2, 3),
        order: np.array([[2, 0], [1, 1]], "int32"),
    }
    assert rc.oracle.evaluate([taken], feeds)[0].tolist() == [[2, 0], [4, 4]]

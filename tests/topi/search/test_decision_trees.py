"""Decision trees: known walks, and the message of each refusal."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.search.decision_trees import TREE_MODES, tree_leaves, tree_leaves_numpy
from tests.strategies.operands import run_te, tensors

COLUMN = np.array([[1], [2], [3], [np.nan]], np.float32)


def leaves(data, thresholds, nodes, roots=(0,), depth=9):
    """What te gives, which is what numpy gives, one row for each tree."""
    operands = (
        np.asarray(data, np.float32),
        np.asarray(thresholds, np.float32),
        np.asarray(nodes, np.int32),
        np.asarray(roots, np.int32),
    )
    made = run_te(tree_leaves, *operands, is_symbolic=False, depth=depth)
    assert made.tolist() == tree_leaves_numpy(*operands, depth=depth).tolist()
    return made.T.tolist()


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("<=", [1, 1, 0, 0]),
        ("<", [1, 0, 0, 0]),
        (">=", [0, 1, 1, 0]),
        (">", [0, 0, 1, 0]),
        ("==", [0, 1, 0, 0]),
        ("!=", [1, 0, 1, 1]),
    ],
)
def test_each_mode_compares_with_the_threshold(mode, wanted):
    node = [0, TREE_MODES.index(mode), 0, -1, -2]
    assert leaves(COLUMN, [2], [node]) == [wanted]


def test_nan_goes_the_way_that_the_node_says():
    assert leaves(COLUMN, [2], [[0, 0, 1, -1, -2]]) == [[1, 1, 0, 1]]


def test_trees_share_nodes_and_a_root_may_be_a_leaf():
    nodes = [[0, 0, 0, 1, -2], [0, 0, 0, -3, -4]]
    assert leaves(COLUMN[:3], [1, 2], nodes, roots=(0, 1, -8)) == [[1, 3, 2], [3, 3, 2], [7] * 3]


def test_a_walk_that_reaches_no_leaf_ends_in_the_first():
    assert leaves(COLUMN, [2], [[0, 0, 0, 0, 0]], depth=5) == [[0] * 4]
    assert leaves(COLUMN, [2], [[0, 0, 0, -3, -3]], depth=0) == [[0] * 4]


def test_numbers_out_of_range_are_moved_into_range():
    assert leaves(COLUMN[:3], [2], [[7, 0, 0, 9, -2]], depth=3) == [[1, 1, 0]]


@pytest.mark.parametrize(
    ("shapes", "dtype", "depth", "message"),
    [
        (((2,), (1,), (1, 5), (1,)), "int32", 1, "the data"),
        (((2, 1), (2,), (1, 5), (1,)), "int32", 1, "the number of thresholds"),
        (((2, 1), (1,), (1, 4), (1,)), "int32", 1, "the number of entries of a node"),
        (((2, 1), (1,), (1, 5), (1,)), "int64", 1, "takes nodes and roots of i32, not i64"),
        (((2, 0), (1,), (1, 5), (1,)), "int32", 1, "at least one node and one feature"),
        (((2, 1), (1,), (1, 5), (1,)), "int32", -1, "cannot visit -1 nodes"),
    ],
)
def test_refusals(shapes, dtype, depth, message):
    given = [*tensors(*shapes[:2]), *tensors(*shapes[2:], dtype=dtype)]
    with pytest.raises(UserError, match=message):
        tree_leaves(*given, depth=depth)

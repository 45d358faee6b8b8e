import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from tests.frontend.onnx.converters.cases import NodeCase, check, graph_of, is_deferred

DEEP = np.arange(48, dtype=np.float32).reshape(1, 8, 2, 3)
WIDE = np.arange(48, dtype=np.float32).reshape(1, 2, 4, 6)
TWO = {"blocksize": 2}
# [n, c, h, b, w, b] -> [n, b, b, c, h, w], the order that versions before 28 have.
BLOCKS = WIDE.reshape(1, 2, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 8, 2, 3)
CASES = [
    NodeCase("DepthToSpace", 1, [DEEP], TWO),
    NodeCase("DepthToSpace", 11, [DEEP], {**TWO, "mode": "CRD"}),
    NodeCase("DepthToSpace", 13, [DEEP], TWO, shapes={0: ["N", 8, 2, 3]}),
    NodeCase("DepthToSpace", 28, [DEEP.astype("i8")], TWO),
    NodeCase("SpaceToDepth", 1, [WIDE], TWO, expected=[BLOCKS]),
    NodeCase("SpaceToDepth", 13, [WIDE], TWO, expected=[BLOCKS]),
    NodeCase("SpaceToDepth", 28, [WIDE], {**TWO, "mode": "CRD"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def test_blocks_of_symbolic_extents_are_moved_in_the_run():
    case = NodeCase("DepthToSpace", 13, [DEEP], TWO, shapes={0: [1, 8, "H", "W"]})
    assert is_deferred(case)
    check(case)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (NodeCase("DepthToSpace", 13, [DEEP], {"blocksize": 3}), "depth_to_space"),
        (NodeCase("SpaceToDepth", 13, [WIDE[0]], TWO), "space_to_depth"),
        (NodeCase("DepthToSpace", 13, [DEEP], {**TWO, "mode": "RDC"}), "'RDC'"),
    ],
    ids=str,
)
def test_mistakes_are_explained(case, message):
    with pytest.raises(UserError, match=message):
        graph_of(case)

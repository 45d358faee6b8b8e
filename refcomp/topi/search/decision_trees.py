"""Decision trees: the leaf of each row in each tree, in one parallel loop over both.

Reference: L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and Regression Trees",
1984; the ONNX operator TreeEnsemble.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir import builder
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.externs import extern
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    product,
    require_float,
    require_integer,
    require_one_dtype,
    require_rank,
)

# The number of a mode is its place.
TREE_MODES = ("<=", "<", ">=", ">", "==", "!=")


def tree_leaves(
    data: Tensor,
    thresholds: Tensor,
    nodes: Tensor,
    roots: Tensor,
    *,
    depth: int,
) -> Tensor:
    """Return the number of the leaf that each row of features reaches in each decision tree.

    A node compares one feature of the row with its threshold, and says where the walk goes next.
    The five numbers of a node are

        feature     the column of `data` that is compared, moved into range
        mode        0 to 5 for <=, <, >=, >, ==, !=
        missing     1 if NaN goes the way of a comparison that holds, else 0
        otherwise   where the walk goes next if the comparison does not hold
        then        where it goes next if the comparison holds

    A place to go is the number of a node, or -1 - k for leaf k. A comparison with NaN does not
    hold, but for !=. A walk that has reached no leaf after `depth` nodes ends in leaf 0. Each walk
    is serial; walks are divided among threads.

    Args:
        data: floats [rows, features], with at least one feature.
        thresholds: [nodes], of the dtype of `data`, at least one.
        nodes: i32 [nodes, 5].
        roots: i32 [trees]: the place where the walk through each tree begins.
        depth: the most nodes on a way to a leaf, at least 0.

    Returns:
        An i32 tensor [rows, trees].

    Raises:
        UserError: a rank, an extent or a dtype does not fit, or the depth is negative.

    Reference: ONNX TreeEnsemble, in ai.onnx.ml.

    Example::

        >>> A, T = rc.placeholder((3, 1), name="A"), rc.placeholder((1,), name="T")
        >>> N = rc.placeholder((1, 5), "int32", name="N")
        >>> R = rc.placeholder((1,), "int32", name="R")
        >>> B = rc.topi.tree_leaves(A, T, N, R, depth=1)
        >>> a, t = np.array([[1], [2], [3]], "float32"), np.array([2], "float32")
        >>> n, r = np.array([[0, 0, 0, -1, -2]], "int32"), np.array([0], "int32")
        >>> print(rc.oracle.evaluate([B], {A: a, T: t, N: n, R: r})[0].ravel())
        [1 1 0]
    """
    _check(data, thresholds, nodes, roots, depth)
    rows, features = extents(data)
    trees = extents(roots)[0]

    def statement(ins: Sequence[BufferView], outs: Sequence[BufferView]) -> Stmt:
        ib = builder.create()
        table, limits, parts, starts = (ib.buffer_ptr(view) for view in ins)
        found = ib.buffer_ptr(outs[0])
        last_node = _last(extents(nodes)[0])
        last_feature = _last(features)
        with ib.for_range(
            0, product((rows, trees)), name="walk", for_type="parallel"
        ) as walk:
            row = walk // trees
            tree = walk % trees
            place = ib.allocate("int32", 1, name="place", scope="local")
            place[0] = starts[tree]
            with ib.for_range(0, depth, name="step"), ib.if_scope(place[0] >= 0):
                node = ib.let("node", maths.minimum(place[0], last_node))
                column = maths.maximum(parts[node, 0], const(0, "int32"))
                feature = maths.minimum(column, last_feature)
                value = ib.let("value", table[row, feature])
                limit = ib.let("limit", limits[node])
                goes = _holds(ib.let("mode", parts[node, 1]), value, limit)
                is_missing = maths.all(parts[node, 2] != 0, maths.isnan(value))
                branch = maths.select(maths.any(goes, is_missing), 4, 3)
                place[0] = parts[node, branch]
            leaf = -1 - place[0]
            found[row, tree] = maths.maximum(leaf, const(0, "int32"))
        return ib.get()

    leaves: Tensor = extern(
        (rows, trees),
        [data, thresholds, nodes, roots],
        statement,
        name="tree_leaves",
        dtype="int32",
    )
    return leaves


def _last(extent: object) -> Expr:
    """Return the last index of an axis as an i32."""
    if isinstance(extent, int):
        return const(extent - 1, "int32")
    assert isinstance(extent, Expr)
    return extent.astype("int32") - 1


def _holds(mode: Expr, value: Expr, limit: Expr) -> Expr:
    """Return the condition that a comparison holds."""
    results = (
        value <= limit,
        value < limit,
        value >= limit,
        value > limit,
        value.equal(limit),
    )
    cases = [maths.all(mode.equal(k), result) for k, result in enumerate(results)]
    is_other = maths.all(mode >= len(results), ~value.equal(limit))
    return maths.any(*cases, is_other)


def _check(
    data: Tensor, thresholds: Tensor, nodes: Tensor, roots: Tensor, depth: int
) -> None:
    operator = "tree_leaves"
    require_rank(data, 2, operator, "the data")
    require_float(data, operator)
    require_rank(thresholds, 1, operator, "the tensor of thresholds")
    require_one_dtype(operator, data, thresholds)
    require_rank(nodes, 2, operator, "the tensor of nodes")
    require_rank(roots, 1, operator, "the tensor of roots")
    for tensor in (nodes, roots):
        require_integer(tensor, operator)
        if tensor.dtype.bits != 32:
            raise UserError(
                f"{operator} takes nodes and roots of i32, not {tensor.dtype}",
                remedy='convert them: x[i].astype("int32")',
                earlier=[tensor.declaration()],
            )
    size, numbers = extents(nodes)
    what = "the number of thresholds"
    pair = (thresholds, nodes)
    require_extent(extents(thresholds)[0], size, operator, what, tensors=pair)
    require_extent(
        numbers, 5, operator, "the number of entries of a node", tensors=(nodes,)
    )
    if size == 0 or extents(data)[1] == 0:
        raise UserError(
            f"{operator} needs at least one node and one feature",
            remedy="give a node that goes to the same leaf both ways",
        )
    if depth < 0:
        raise UserError(
            f"{operator} cannot visit {depth} nodes", remedy="give a depth >= 0"
        )


def _sample_tree_leaves(draws: Draws) -> Sample:
    size = draws.integer(1, 5)
    features = draws.integer(1, 3)
    dtype = draws.float_dtype()
    data = draws.array((draws.extent(0), features), dtype)
    thresholds = draws.array((size,), dtype)
    # Some thresholds are equal to a feature.
    shared = min(size, data.size)
    thresholds[:shared] = data.reshape(-1)[:shared]
    nodes = np.stack(
        [
            draws.integers((size,), -1, features, "int32"),
            draws.integers((size,), 0, 5, "int32"),
            draws.integers((size,), 0, 1, "int32"),
            draws.integers((size,), -4, size, "int32"),
            draws.integers((size,), -4, size, "int32"),
        ],
        axis=1,
    )
    roots = draws.integers((draws.extent(0),), -2, size - 1, "int32")
    return Sample((data, thresholds, nodes, roots), {"depth": draws.integer(0, 6)})


@meaning_of(tree_leaves, pattern="opaque", sample=_sample_tree_leaves)
def tree_leaves_numpy(
    data: Array, thresholds: Array, nodes: Array, roots: Array, *, depth: int
) -> Array:
    compare = [
        np.less_equal,
        np.less,
        np.greater_equal,
        np.greater,
        np.equal,
        np.not_equal,
    ]
    found = np.zeros((len(data), len(roots)), np.int32)
    for row, tree in np.ndindex(found.shape):
        place = int(roots[tree])
        for _ in range(depth):
            if place < 0:
                break
            node = min(place, len(nodes) - 1)
            feature, mode, missing, otherwise, then = nodes[node].tolist()
            value = data[row, min(max(feature, 0), data.shape[1] - 1)]
            holds = bool(compare[mode](value, thresholds[node]))
            holds = holds or bool(missing and np.isnan(value))
            place = then if holds else otherwise
        found[row, tree] = max(-1 - place, 0)
    return found

"""The operator `narrow`: the part of a tensor whose extent only a run determines.

Operators such as `nonzero` return a tensor with room for everything, and a count. A `narrow` node
keeps as many elements along an axis as the count says. That extent is a symbol, which no input of
the graph determines::

    indices: i64[2, 12], count: i64[1] = nonzero(x)
    found: i64[2, kept] = narrow(indices, count) {axis=1, symbol="kept"}

An executor stops before the node, reads the count, and plans the nodes behind it for this extent
(`refcomp.graph.plan`). So the node is never fused with others.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Array, GraphNode, Value, spell
from refcomp.te.extents import extents
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, var
from refcomp.topi.operator import AttributeSpec, Operator, register_operator
from refcomp.topi.shapes import normalize_axis

NARROW = "narrow"


def is_narrow(node: GraphNode) -> bool:
    """Return True if a run has to read a count before this node."""
    return node.operator == NARROW


def narrowed_symbol(node: GraphNode) -> str:
    """Return the symbol whose value a `narrow` node determines."""
    return str(node.attributes["symbol"])


def narrowed_axis(node: GraphNode) -> int:
    """Return the axis of the data that a `narrow` node shortens, counted from 0."""
    axis = node.attributes.get("axis", 0)
    data = node.inputs[0]
    assert isinstance(axis, int) and data is not None
    return axis % len(data.shape)


def count_of(node: GraphNode) -> Value:
    """Return the value that holds the count of a `narrow` node."""
    value = node.inputs[1]
    assert value is not None
    return value


def checked_count(count: Array, most: int, node: str) -> int:
    """Return the count that a run found; UserError if it is not in 0 ... most."""
    kept = int(count.reshape(()))
    if not 0 <= kept <= most:
        raise UserError(
            f"node {spell(node)} cannot keep {kept} of {most} elements",
            why=f"its count is {kept}",
            remedy=f"let the count be from 0 to {most}",
        )
    return kept


def _narrow(data: Tensor, count: Tensor, *, axis: int = 0, symbol: str) -> Tensor:
    """Return the first elements of `data` along `axis`, as many as `symbol` says."""
    place = normalize_axis(axis, len(data.shape), NARROW)
    sizes = extents(count)
    if not count.dtype.is_int or any(size != 1 for size in sizes):
        raise UserError(
            f"narrow takes one integer as its count, not {count.dtype}{list(sizes)}",
            remedy="give the count that operators such as nonzero return",
            earlier=[count.declaration()],
        )
    shape = list(data.shape)
    shape[place] = var(symbol)
    return compute(shape, lambda *index: data[tuple(index)], name=NARROW, tag=INJECTIVE)


def _narrow_numpy(data: Array, count: Array, *, axis: int = 0, symbol: str) -> Array:
    kept = checked_count(count, data.shape[axis], symbol)
    return np.take(data, range(kept), axis)


register_operator(
    Operator(
        NARROW,
        inputs=("data", "count"),
        compute=_narrow,
        numpy=_narrow_numpy,
        attributes=(
            AttributeSpec("axis", (int,), 0),
            AttributeSpec("symbol", (str,), required=True),
        ),
    )
)

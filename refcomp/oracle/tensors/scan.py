"""A scan by numpy: row by row, all that a row needs before it.

Needs that what a row needs of the scan's own computes is the row itself: `T[t, i]` for row t.
Refuses (Unsupported) scans of another form, which are right, but not evaluated here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.ir.rewrite import walk
from refcomp.te.operation import ComputeOp
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import Tensor, TensorRead

# The values of a compute's tensors in one row, each of one row.
_ComputeRow = Callable[[ComputeOp, int], list[Any]]


def run_scan(
    op: ScanOp,
    known: dict[Tensor, Any],
    compute_row: _ComputeRow,
    zeros_like: Callable[[Any], Any] = np.zeros_like,
) -> None:
    """Adds the results of the scan to `known`, which has its inits, and room for its computes:
    arrays, or what is read and written as arrays are, and made by `zeros_like`."""
    body: list[Any] = op.body_operations()
    for inner in body:
        _check_rows(op, inner, {tensor for other in body for tensor in other.outputs})
    for init, update, state, result in zip(
        op.init, op.update, op.state, op.outputs, strict=True
    ):
        known[state] = known[result] = zeros_like(known[update])
        rows = min(len(known[init]), len(known[result]))
        known[result][:rows] = known[init][:rows]
    for row in range(len(known[op.init[0]]), len(known[op.outputs[0]])):
        for inner in body:
            for tensor, values in zip(
                inner.outputs, compute_row(inner, row), strict=True
            ):
                known[tensor][row : row + 1] = values
        for update, result in zip(op.update, op.outputs, strict=True):
            known[result][row] = known[update][row]


def _check_rows(op: ScanOp, inner: ComputeOp, made: set[Tensor]) -> None:
    row = inner.axis[0].var if inner.axis else None
    for node in (node for body in inner.body for node in walk(body)):
        if (
            isinstance(node, TensorRead)
            and node.tensor in made
            and node.indices[0] is not row
        ):
            raise Unsupported(
                f"{inner.name} reads another row of {node.tensor.name} than its own",
                why=f"scan {op.name} is evaluated row by row",
                remedy="read the row that is computed, at the compute's own first index",
            )

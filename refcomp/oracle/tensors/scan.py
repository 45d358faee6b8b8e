"""Computes a scan by numpy, row by row, each row after all that it needs.

A row may need only the same row of the scan's own computes: `T[t, i]` for row t. Scans of another
form are legal, but refused here (Unsupported).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.foundation.errors import Unsupported
from refcomp.ir.rewrite import walk
from refcomp.te.operation import ComputeOp, ScanOp
from refcomp.te.tensor import Tensor, TensorRead

_Rows = Any  # values of a tensor: an array, or what is indexed, sliced and assigned like one


def run_scan(
    op: ScanOp,
    known: dict[Tensor, _Rows],
    compute_row: Callable[[ComputeOp, int], list[_Rows]],
    zeros_like: Callable[[_Rows], _Rows] = np.zeros_like,
) -> None:
    """Add the states and the outputs of the scan to `known`.

    Args:
        op: the scan.
        known: values of tensors. Has those of `op.init`, and memory for the scan's own computes.
        compute_row: computes one row of the outputs of an operation, each of one row.
        zeros_like: makes values of the same shape and dtype.
    """
    body = [inner for inner in op.body_operations() if isinstance(inner, ComputeOp)]
    own = {tensor for inner in body for tensor in inner.outputs}
    for inner in body:
        _check_rows(op, inner, own)
    tensors = zip(op.init, op.update, op.state, op.outputs, strict=True)
    for init, update, state, output in tensors:
        values = zeros_like(known[update])
        known[state] = values
        known[output] = values
        rows = min(len(known[init]), len(values))
        values[:rows] = known[init][:rows]
    first_row = len(known[op.init[0]])
    for row in range(first_row, len(known[op.outputs[0]])):
        for inner in body:
            computed = compute_row(inner, row)
            for tensor, values in zip(inner.outputs, computed, strict=True):
                known[tensor][row : row + 1] = values
        for update, output in zip(op.update, op.outputs, strict=True):
            known[output][row] = known[update][row]


def _check_rows(op: ScanOp, inner: ComputeOp, own: set[Tensor]) -> None:
    """Raise Unsupported if `inner` reads another row of `own` tensors than the one it computes."""
    row = inner.axis[0].var if inner.axis else None
    nodes = (node for body in inner.body for node in walk(body))
    for read in (node for node in nodes if isinstance(node, TensorRead)):
        if read.tensor in own and read.indices[0] is not row:
            raise Unsupported(
                f"{inner.name} reads another row of {read.tensor.name} than its own",
                why=f"scan {op.name} is evaluated row by row",
                remedy="read the row that is computed, at the compute's own first index",
            )

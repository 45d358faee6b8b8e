"""Tensors of vectors as tensors of scalars, with one more axis: the lanes.

The evaluations of te know scalars only. Each lane of a vector is computed as the operations say
that are defined lane by lane. The statements of extern operations are those of `expand_statement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from refcomp.foundation.dtype import I64, DType
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Broadcast, Call, Cast, Expr, IntImm, Var
from refcomp.ir.lanes import expand_statement, scalar_buffer, with_lane_axis
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, with_fields
from refcomp.ir.stmt import Stmt
from refcomp.oracle.tensors.rebuilt_operations import RebuiltOperations
from refcomp.te.operation import ComputeOp, ExternOp, ScanOp, reachable_operations
from refcomp.te.tensor import (
    DATA_PARALLEL,
    OPAQUE,
    AxisKind,
    IterVar,
    Tensor,
    TensorRead,
)

_T = TypeVar("_T")


def with_lane_axes(
    outputs: Sequence[Tensor], feeds: Mapping[Tensor, _T]
) -> tuple[Sequence[Tensor], Mapping[Tensor, _T]]:
    """Return tensors of scalars for `outputs`, and `feeds` of tensors of scalars.

    Both are unchanged if no operation that `outputs` need has vectors.
    """
    rebuilt = scalar_tensors(outputs)
    if not rebuilt:
        return outputs, feeds
    fed = {rebuilt.get(tensor, tensor): value for tensor, value in feeds.items()}
    return [rebuilt[tensor] for tensor in outputs], fed


def scalar_tensors(outputs: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """Return a tensor of scalars for each tensor that `outputs` need; none without vectors."""
    operations = reachable_operations(tensor.op for tensor in outputs)
    tensors = [tensor for op in operations for tensor in op.outputs]
    if all(tensor.dtype.lanes == 1 for tensor in tensors):
        return {}
    made = _LaneAxes()
    made.rebuild(outputs)
    return made.tensors


class _LaneAxes(RebuiltOperations):
    """Operations on scalars."""

    def __init__(self) -> None:
        super().__init__()
        # The lane that each compute computes. Only one compute is evaluated at a time.
        self._lane = Var("lane", I64)
        self._variables: dict[Var, Var] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def var(self, var: Var) -> Var:
        if var.dtype.lanes == 1:
            return var
        return self._variables.setdefault(var, Var(var.name, var.dtype.element))

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.setdefault(buffer, scalar_buffer(buffer))

    def dtype(self, dtype: DType) -> DType:
        return dtype.element

    def shape(self, tensor: Tensor) -> tuple[Expr, ...]:
        return with_lane_axis(tensor.shape, tensor.dtype.lanes)

    def axes(self, op: ComputeOp | ScanOp | ExternOp) -> tuple[IterVar, ...]:
        if isinstance(op, ScanOp):
            return self._scan_axes(op)
        lanes = op.outputs[0].dtype.lanes
        if lanes == 1:
            return op.axis
        kind = DATA_PARALLEL if isinstance(op, ComputeOp) else OPAQUE
        return (*op.axis, self._lane_axis(lanes, kind))

    def _scan_axes(self, op: ScanOp) -> tuple[IterVar, ...]:
        axes = [op.scan_axis]
        for number, state in enumerate(op.state):
            axes += op.row_axes(number)
            if state.dtype.lanes > 1:
                axes.append(self._lane_axis(state.dtype.lanes, OPAQUE))
        return tuple(axes)

    def _lane_axis(self, lanes: int, kind: AxisKind) -> IterVar:
        return IterVar(self._lane, IntImm(0, I64), IntImm(lanes, I64), kind)

    def statement(self, op: ExternOp) -> Stmt:
        wide = {b: self.buffer(b) for b in op.buffers if b.dtype.lanes > 1}
        return expand_statement(op.body, wide)

    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        if isinstance(node, Var):
            return self.var(node)
        if isinstance(node, Broadcast):
            return recurse(node.value)
        if isinstance(node, Cast | Call):
            node = map_children(node, recurse)
            return with_fields(node, dtype=node.dtype.element)
        if isinstance(node, TensorRead) and node.tensor.dtype.lanes > 1:
            indices = (*map(recurse, node.indices), self._lane)
            return TensorRead(self.tensors[node.tensor], indices)
        return super().visit_node(recurse, node)

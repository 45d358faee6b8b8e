"""Makes the operations of a computation anew, of what becomes of their expressions and statements.

A class of its own says what becomes of variables, buffers, dtypes and nodes; here is what holds for
all: each operation is made once, and reads of tensors follow to those that take their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from refcomp.foundation.dtype import DType
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter
from refcomp.te.extern import ExternOp
from refcomp.te.operation import (
    ComputeOp,
    Operation,
    PlaceholderOp,
    reachable_operations,
)
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import Tensor, TensorRead


class RebuiltOperations:
    """Operations made anew so far: `tensors` has what takes the place of each tensor. `visit` is
    what becomes of an expression or a statement: `visit_node` says that of one node."""

    def __init__(self) -> None:
        self.tensors: dict[Tensor, Tensor] = {}
        self.visit = rewriter(self.visit_node)

    def var(self, var: Var) -> Var:
        """What takes the place of a variable that something binds: itself."""
        return var

    def buffer(self, buffer: Buffer) -> Buffer:
        """What takes the place of a buffer: itself."""
        return buffer

    def dtype(self, dtype: DType) -> DType:
        """The dtype of what takes the place of a tensor of `dtype`: the same."""
        return dtype

    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        """What becomes of `node`; `recurse` says that of its children."""
        if isinstance(node, TensorRead):
            return TensorRead(
                self.tensors[node.tensor], tuple(map(recurse, node.indices))
            )
        return map_children(node, recurse)

    def rebuild(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """What takes the place of `outputs`, once all that they need is made anew."""
        for op in reachable_operations(tensor.op for tensor in outputs):
            self._add(op)
        return [self.tensors[tensor] for tensor in outputs]

    def _add(self, op: Operation) -> None:
        fresh: Any = self._made(op)
        fresh.outputs = tuple(
            Tensor(fresh, k, old.shape, self.dtype(old.dtype))
            for k, old in enumerate(op.outputs)
        )
        self.tensors.update(zip(op.outputs, fresh.outputs, strict=True))

    def _made(self, op: Operation) -> Operation:
        if isinstance(op, ComputeOp):
            body = tuple(self._bodies(op))
            return ComputeOp(op.name, op.line, op.axis, body, op.tag, op.waits_for_scan)
        if isinstance(op, ScanOp):
            return self._scan(op)
        if isinstance(op, ExternOp):
            return self._extern(op)
        assert isinstance(op, PlaceholderOp)
        return PlaceholderOp(op.name, op.line)

    def _scan(self, op: ScanOp) -> ScanOp:
        for state in op.state:
            if state not in self.tensors:  # no update reads it
                self._add(state.op)
        return ScanOp(
            *(op.name, op.line, op.axis),
            init=self._instead(op.init),
            update=self._instead(op.update),
            state=self._instead(op.state),
            given=self._instead(op.given),
            tag=op.tag,
        )

    def _instead(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(self.tensors[tensor] for tensor in tensors)

    def _extern(self, op: ExternOp) -> ExternOp:
        reads = self._instead(op.reads)
        ins, outs = (
            tuple(map(self.buffer, each)) for each in (op.in_buffers, op.out_buffers)
        )
        return ExternOp(
            op.name, op.line, op.axis, reads, ins, outs, self.visit(op.body), op.tag
        )

    def _bodies(self, op: ComputeOp) -> Iterator[Expr]:
        reduce = op.reduction
        if reduce is None:
            yield from map(self.visit, op.body)
            return
        reducer, sources = (
            self._reducer(reduce.reducer),
            tuple(map(self.visit, reduce.sources)),
        )
        condition = self.visit(reduce.condition)
        for k in range(len(op.body)):
            yield Reduce(reducer, sources, reduce.axes, condition, k)

    def _reducer(self, reducer: CommReducer) -> CommReducer:
        return CommReducer(
            reducer.name,
            tuple(map(self.var, reducer.lhs)),
            tuple(map(self.var, reducer.rhs)),
            tuple(map(self.visit, reducer.results)),
            tuple(map(self.visit, reducer.identities)),
        )

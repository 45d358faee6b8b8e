"""Rebuilds the operations of a computation from rewritten expressions and statements.

Each operation is rebuilt once, and reads of tensors follow to the rebuilt tensors. Subclasses
define how variables, buffers, dtypes and nodes are rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from refcomp.foundation.dtype import DType
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter
from refcomp.ir.stmt import Stmt
from refcomp.te.operation import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    reachable_operations,
)
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.tensor import IterVar, Tensor, TensorRead


class RebuiltOperations:
    """The operations that have been rebuilt so far."""

    def __init__(self) -> None:
        self.tensors: dict[Tensor, Tensor] = {}  # old -> rebuilt
        self.visit = rewriter(self.visit_node)  # rewrites an expression or a statement

    def var(self, var: Var) -> Var:
        """Return the replacement of a variable where it is bound: itself."""
        return var

    def buffer(self, buffer: Buffer) -> Buffer:
        """Return the replacement of a buffer: itself."""
        return buffer

    def dtype(self, dtype: DType) -> DType:
        """Return the dtype of the replacement of a tensor of `dtype`: the same."""
        return dtype

    def shape(self, tensor: Tensor) -> tuple[Expr, ...]:
        """Return the shape of the replacement of a tensor: the same."""
        return tensor.shape

    def axes(self, op: ComputeOp | ScanOp | ExternOp) -> tuple[IterVar, ...]:
        """Return the axes of the replacement of an operation: the same."""
        return op.axis

    def statement(self, op: ExternOp) -> Stmt:
        """Return the statement of the replacement of an extern operation."""
        return self.visit(op.body)

    def visit_node(self, recurse: Rewrite, node: Node) -> Node:
        """Return the replacement of `node`; `recurse` rewrites its children."""
        if isinstance(node, TensorRead):
            indices = tuple(map(recurse, node.indices))
            return TensorRead(self.tensors[node.tensor], indices)
        return map_children(node, recurse)

    def rebuild(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Rebuild all operations that `outputs` need, and return the rebuilt outputs."""
        for op in reachable_operations(tensor.op for tensor in outputs):
            self._add(op)
        return [self.tensors[tensor] for tensor in outputs]

    def _add(self, op: Operation) -> None:
        rebuilt = self._rebuilt(op)
        rebuilt.outputs = tuple(
            Tensor(rebuilt, k, self.shape(old), self.dtype(old.dtype))
            for k, old in enumerate(op.outputs)
        )
        self.tensors.update(zip(op.outputs, rebuilt.outputs, strict=True))

    def _rebuilt(self, op: Operation) -> Operation:
        if isinstance(op, ComputeOp):
            return ComputeOp(
                name=op.name,
                line=op.line,
                axis=self.axes(op),
                body=self._body(op),
                tag=op.tag,
                waits_for_scan=op.waits_for_scan,
            )
        if isinstance(op, ScanOp):
            return self._scan(op)
        if isinstance(op, ExternOp):
            # Not `ExternOp`: a hybrid function keeps its loops.
            return replace(
                op,
                axis=self.axes(op),
                reads=self._replacements(op.reads),
                in_buffers=tuple(map(self.buffer, op.in_buffers)),
                out_buffers=tuple(map(self.buffer, op.out_buffers)),
                body=self.statement(op),
            )
        assert isinstance(op, PlaceholderOp)
        return PlaceholderOp(op.name, op.line)

    def _body(self, op: ComputeOp) -> tuple[Expr, ...]:
        reduce = op.reduction
        if reduce is None:
            return tuple(map(self.visit, op.body))
        old = reduce.reducer
        # One reducer and one tuple of sources for all results, as `te` has them.
        reducer = CommReducer(
            name=old.name,
            lhs=tuple(map(self.var, old.lhs)),
            rhs=tuple(map(self.var, old.rhs)),
            results=tuple(map(self.visit, old.results)),
            identities=tuple(map(self.visit, old.identities)),
        )
        sources = tuple(map(self.visit, reduce.sources))
        condition = self.visit(reduce.condition)
        ranges = tuple(map(self.visit, reduce.ranges))
        return tuple(
            Reduce(
                reducer=reducer,
                sources=sources,
                axes=reduce.axes,
                condition=condition,
                value_index=k,
                ranges=ranges,
            )
            for k in range(len(op.body))
        )

    def _scan(self, op: ScanOp) -> ScanOp:
        for state in op.state:
            if state not in self.tensors:  # no update reads it
                self._add(state.op)
        return ScanOp(
            name=op.name,
            line=op.line,
            axis=self.axes(op),
            init=self._replacements(op.init),
            update=self._replacements(op.update),
            state=self._replacements(op.state),
            given=self._replacements(op.given),
            tag=op.tag,
        )

    def _replacements(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(self.tensors[tensor] for tensor in tensors)

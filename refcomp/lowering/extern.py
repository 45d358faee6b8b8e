"""Lowers an extern operation: its own statement, on the buffers of its tensors.

Before (te):    C = extern((n,), [A], lambda ins, outs: call_packed("f", ins[0], outs[0]))
After:          packed f(read(A), write(C))

Refuses to pass memory that is longer than its tensor to a function.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.provenance import declared_at
from refcomp.ir.buffer import AddressOf, Buffer
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.node import Node
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    replace_buffers,
    rewriter,
    walk,
    with_fields,
)
from refcomp.ir.stmt import Origin, Stmt
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.scheduled_statement import scheduled_statement
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ExternOp
from refcomp.te.tensor import Tensor, TensorRead


def reads_of_extern(op: ExternOp) -> list[Expr]:
    """Return one read of each input.

    The reads show which tensors are read, and that no loop surrounds the operation.
    """
    zero = IntImm(0, I64)
    return [TensorRead(tensor, (zero,) * tensor.ndim) for tensor in op.inputs]


def lower_extern(stage: Stage, op: ExternOp, buffers: Mapping[Tensor, Buffer]) -> Stmt:
    """Return the statement of `op`, the operation of `stage`, on `buffers`."""
    name = stage.name
    for node in walk(op.body):
        if not isinstance(node, AddressOf) or node.buffer not in op.buffers:
            continue
        # The callee sees the tensor's shape, and finds the elements by it.
        tensor = op.buffers[node.buffer]
        shape = buffers[tensor].shape
        if not all(map(structurally_equal, shape, tensor.shape)):
            raise UserError(
                f"cannot call a function with the memory of {tensor.name}",
                where=f"stage {name}",
                why="the memory is longer than the tensor (by storage_align, or as local "
                "memory of no elements), which the function cannot know",
                remedy=f"keep {tensor.name} global and not aligned, "
                f"or let {name} read a copy",
                at=declared_at(op.line, f"stage {name}"),
                earlier=[declared_at(tensor.op.line, tensor.name)],
            )
    memory = {buffer: buffers[tensor] for buffer, tensor in op.buffers.items()}
    body = op.body if stage.loops.statement is None else scheduled_statement(stage)
    return with_origin(replace_buffers(body, memory), Origin(name, line=op.line))


def with_origin(stmt: Stmt, origin: Origin) -> Stmt:
    """Return `stmt` with `origin` in each statement of it that has none."""

    def visit(recurse: Rewrite, node: Node) -> Node:
        if not isinstance(node, Stmt):
            return node
        node = map_children(node, recurse)
        return node if node.origin is not None else with_fields(node, origin=origin)

    return rewriter(visit)(stmt)

"""An extern operation becomes its own statement, on the memory that its tensors have here.

Before (te):    C = extern((n,), [A], lambda ins, outs: call_packed("f", ins[0], outs[0]))
After:          packed f(read(A), write(C))

Refuses (UserError) to call functions with memory that storage_align has made longer.
"""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
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
from refcomp.te.extern import ExternOp
from refcomp.te.tensor import Tensor, TensorRead


def reads_of_extern(op: ExternOp) -> list[Expr]:
    """One read of each input, which stands for all of them: that they are read, and in no loop."""
    zero = IntImm(0, I64)
    return [TensorRead(tensor, (zero,) * tensor.ndim) for tensor in op.inputs]


def lower_extern(op: ExternOp, name: str, places: Mapping[Tensor, Buffer]) -> Stmt:
    """The statement of the operation, which is stage `name`; `places` are the tensors' buffers."""
    _check_addresses(op, name, places)
    memory = {buffer: places[tensor] for buffer, tensor in op.buffers.items()}
    return with_origin(replace_buffers(op.body, memory), Origin(name, line=op.line))


def _check_addresses(op: ExternOp, name: str, places: Mapping[Tensor, Buffer]) -> None:
    for node in walk(op.body):
        tensor = op.buffers.get(node.buffer) if isinstance(node, AddressOf) else None
        if tensor is not None and _is_longer(places[tensor], tensor):
            raise UserError(
                f"cannot call a function with the memory of {tensor.name}",
                where=f"stage {name}, at {op.line}",
                why="it is longer than the tensor (storage_align, or local memory of no elements), "
                "which the function cannot know",
                remedy=f"keep {tensor.name} global and not aligned, or let {name} read a copy",
            )


def _is_longer(place: Buffer, tensor: Tensor) -> bool:
    pairs = zip(place.shape, tensor.shape, strict=True)
    return not all(structurally_equal(mine, own) for mine, own in pairs)


def with_origin(stmt: Stmt, origin: Origin) -> Stmt:
    """`stmt`, all parts of which come from `origin` unless they say from where."""

    def visit(recurse: Rewrite, node: Node) -> Node:
        if not isinstance(node, Stmt):
            return node
        node = map_children(node, recurse)
        return node if node.origin is not None else with_fields(node, origin=origin)

    return rewriter(visit)(stmt)

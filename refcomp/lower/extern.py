"""An extern operation becomes its own statement, on the memory that its tensors have here.

Before (te):    C = extern((n,), [A], lambda ins, outs: call_packed("f", ins[0], outs[0]))
After:          packed f(read(A), write(C))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from refcomp.dtype import I64
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.rewrite import map_children, memoised, replace_buffers, with_fields
from refcomp.ir.stmt import Origin, Stmt
from refcomp.te.extern import ExternOp
from refcomp.te.tensor import Tensor, TensorRead


def reads_of_extern(op: ExternOp) -> list[Expr]:
    """One read of each input, which stands for all of them: that they are read, and in no loop."""
    zero = IntImm(0, I64)
    return [TensorRead(tensor, (zero,) * tensor.ndim) for tensor in op.inputs]


def lower_extern(op: ExternOp, name: str, places: Mapping[Tensor, Buffer]) -> Stmt:
    """The statement of the operation, which is stage `name`; `places` are the tensors' buffers."""
    memory = {buffer: places[tensor] for buffer, tensor in op.buffers.items()}
    return with_origin(replace_buffers(op.body, memory), Origin(name, line=op.line))


def with_origin(stmt: Stmt, origin: Origin) -> Stmt:
    """`stmt`, all parts of which come from `origin` unless they say from where."""

    def visit(recurse: Any, node: Any) -> Any:
        if isinstance(node, Expr):
            return node
        node = map_children(node, recurse)
        return node if node.origin is not None else with_fields(node, origin=origin)

    result: Stmt = memoised(visit)(stmt)
    return result

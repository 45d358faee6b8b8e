"""Expressions of tensors as expressions of loads.

Computes without memory are written out where they are read.

The kernels that a builder writes (`refcomp.topi.schedules.matrix_cores`) read computes this way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from refcomp.arith import simplify
from refcomp.ir.builder import BufferPointer
from refcomp.ir.expr import Expr
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, substitute
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import Tensor, TensorRead

Pointers = Mapping[Tensor, BufferPointer]


def element_of(tensor: Tensor, indices: Sequence[Expr], pointers: Pointers) -> Expr:
    """Return an element of a tensor as an expression of loads.

    Args:
        tensor: a tensor with a pointer, or a compute of such tensors.
        indices: one for each dimension.
        pointers: where tensors are stored.

    Example::

        >>> ib = rc.ir_builder.create()
        >>> A = rc.placeholder((4,), name="A")
        >>> pointers = {A: ib.buffer_ptr(rc.decl_buffer((4,), name="A"))}
        >>> from refcomp.topi.schedules.computed_reads import element_of
        >>> i = rc.var("i", "int64")
        >>> print(element_of(rc.topi.negative(A), (i,), pointers))
        A[i] * -1.0f32
    """
    return as_loads(TensorRead(tensor, tuple(indices)), pointers, {})


def as_loads(value: Expr, pointers: Pointers, known: Mapping[Tensor, Expr]) -> Expr:
    """Return `value` with loads for its reads of tensors.

    Args:
        value: an expression of tensors that have a pointer or a value, or are computes of such.
        pointers: where tensors are stored.
        known: tensor -> the value that replaces each of its reads, whatever the indices.
    """

    def visit(recurse: Rewrite, node: Node) -> Node:
        if not isinstance(node, TensorRead):
            return map_children(node, recurse)
        tensor = node.tensor
        if tensor in known:
            return known[tensor]
        if tensor in pointers:
            return pointers[tensor][tuple(map(simplify, node.indices))]
        op = tensor.op
        assert isinstance(op, ComputeOp)
        axes = (axis.var for axis in op.axis)
        at = dict(zip(axes, node.indices, strict=True))
        return recurse(substitute(op.body[0], at))

    made = rewriter(visit)(value)
    assert isinstance(made, Expr)
    return made

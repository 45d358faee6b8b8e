"""Turns accesses by dimension into accesses by element offset.

Before::

    func copy(A: f32[n, 8], B: f32[n, 8] out) {
      for i in range(n) {
        B[i, 3] = A[i, 4]
      }
    }

After::

    func copy(A: f32[n, 8], B: f32[n, 8] out) {
      for i in range(n) {
        B@[i * 8 + 3] = A@[i * 8 + 4]
      }
    }

Requires: nothing before it. Ensures: only Load and Store are left, and updates by one
offset. Buffers keep their shapes, which determine their sizes. Level: nested to flat. It
refuses nothing.

Offsets are i64 and row-major, ((i0 * n1) + i1) * n2 + i2. Only constants are simplified.
A rank-0 buffer has offset 0.
"""

from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, with_fields
from refcomp.ir.stmt import AtomicUpdate, BufferStore, Prefetch, Store


def flatten_storage(func: PrimFunc) -> PrimFunc:
    """Return `func` with each access at one element offset."""
    flatten = rewriter(_flatten)
    return func.with_body(flatten(func.body))


def _flatten(recurse: Rewrite, node: Node) -> Node:
    node = map_children(node, recurse)
    match node:
        case BufferLoad():
            offset = _offset(node.buffer, node.indices)
            return Load(node.buffer, offset)
        case BufferStore():
            offset = _offset(node.buffer, node.indices)
            return Store(
                node.buffer,
                offset,
                node.value,
                predicate=None,
                origin=node.origin,
            )
        case AddressOf(indices=()):
            return node  # the address of the whole buffer
        case AddressOf() | AtomicUpdate() | Prefetch():
            offset = _offset(node.buffer, node.indices)
            return with_fields(node, indices=(offset,))
    return node


def _offset(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    if not indices:
        return IntImm(0, I64)
    # In i64 from the first index on: a product of narrower indices may wrap.
    offset = cast(I64, indices[0])
    inner_extents = buffer.shape[1:]
    for extent, index in zip(inner_extents, indices[1:], strict=True):
        rows = offset
        width = cast(I64, extent)
        if isinstance(rows, IntImm) and isinstance(width, IntImm):
            offset = IntImm(rows.value * width.value, I64)
        else:
            offset = rows * width
        offset = offset + cast(I64, index)
    return offset

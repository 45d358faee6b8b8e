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
    return func.with_body(rewriter(_flatten)(func.body))


def _flatten(recurse: Rewrite, node: Node) -> Node:
    node = map_children(node, recurse)
    if isinstance(node, BufferLoad):
        return Load(node.buffer, _offset(node.buffer, node.indices))
    if isinstance(node, AddressOf) and node.indices:
        return with_fields(node, indices=(_offset(node.buffer, node.indices),))
    if isinstance(node, BufferStore):
        offset = _offset(node.buffer, node.indices)
        return Store(node.buffer, offset, node.value, None, node.origin)
    if isinstance(node, AtomicUpdate | Prefetch):
        return with_fields(node, indices=(_offset(node.buffer, node.indices),))
    return node


def _offset(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    if not indices:
        return IntImm(0, I64)
    offset = cast(I64, indices[0])
    for extent, index in zip(buffer.shape[1:], indices[1:], strict=True):
        offset = _multiply(offset, cast(I64, extent)) + cast(I64, index)
    return offset


def _multiply(a: Expr, b: Expr) -> Expr:
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return IntImm(a.value * b.value, I64)
    return a * b

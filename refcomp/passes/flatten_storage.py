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

Offsets are i64 and row-major, ((i0 * n1) + i1) * n2 + i2. A rank-0 buffer has offset 0. Two kinds
of offsets are simplified: constants, and those of a quotient and a remainder. The offset of
(i // 8, i % 8) becomes i, so that `vectorize_loops` recognises neighbours.
"""

from collections.abc import Callable
from typing import TypeVar

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.ir.buffer import AddressOf, Buffer, BufferLoad, Load
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import replacer, walk, with_fields
from refcomp.ir.stmt import AtomicUpdate, BufferStore, Prefetch, Store

_Other = TypeVar("_Other", AddressOf, AtomicUpdate, Prefetch)


def flatten_storage(func: PrimFunc) -> PrimFunc:
    """Return `func` with each access at one element offset."""
    return func.with_body(replacer(_FLATTENED)(func.body))


def _load(load: BufferLoad) -> Load:
    return Load(load.buffer, _offset(load.buffer, load.indices))


def _store(store: BufferStore) -> Store:
    offset = _offset(store.buffer, store.indices)
    return Store(
        store.buffer,
        offset,
        store.value,
        predicate=None,
        origin=store.origin,
    )


def _other_access(node: _Other) -> _Other:
    offset = _offset(node.buffer, node.indices)
    return with_fields(node, indices=(offset,))


def _address(address: AddressOf) -> AddressOf:
    # Without indices, it is the address of the whole buffer.
    return _other_access(address) if address.indices else address


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
    return simplify(offset) if _divides_twice(indices) else offset


def _divides_twice(indices: tuple[Expr, ...]) -> bool:
    """Return True if the indices have a quotient and a remainder."""
    found = {type(node) for index in indices for node in walk(index)}
    return {FloorDiv, FloorMod} <= found


_FLATTENED: dict[type[Node], Callable[..., Node]] = {
    BufferLoad: _load,
    BufferStore: _store,
    AddressOf: _address,
    AtomicUpdate: _other_access,
    Prefetch: _other_access,
}

"""Memory: the Buffer that names it and the two expressions that read it.

Grammar (ASDL, continuing `refcomp.ir.expr`)::

    buffer = Buffer(str name, dtype dtype, expr* shape, str scope, int alignment)
    expr = BufferLoad(buffer buffer, expr* indices)
         | Load(buffer buffer, expr index, expr? predicate)
         | AddressOf(buffer buffer, expr* indices, str access, dtype element)

`BufferLoad` belongs to the nested level, where a buffer is indexed by dimension; `Load` to the flat
level, where the index counts elements from the buffer's start. `AddressOf` stands among the
arguments of a call that has effects (`refcomp.ir.stmt`), and nowhere else.
"""

from __future__ import annotations

from refcomp.foundation.dtype import HANDLE, DType
from refcomp.ir.expr import Derived, Expr
from refcomp.ir.node import Bindable, node

READ, WRITE, UPDATE = "read", "write", "update"
ACCESSES = (READ, WRITE, UPDATE)


@node
class Buffer(Bindable):
    """Memory for elements of `dtype`; a binding, not an expression. Identity is the object.

    Element (i0, ..., ik) of `shape` lies at row-major position. `scope` is `global` (heap or
    argument), `local` (a stack array of constant shape, one thread's own) or `shared` (one for
    each group of a kernel's threads). `alignment` is in bytes; arguments
    are only known to be aligned to one element (alignment 0).
    """

    by_identity = True
    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    scope: str = "global"
    alignment: int = 0


@node
class BufferLoad(Derived):
    """The element of `buffer` at `indices`, one per dimension; out of range is an error."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    def _derive_dtype(self) -> DType:
        lanes = max((index.dtype.lanes for index in self.indices), default=1)
        return self.buffer.dtype.with_lanes(lanes)


@node
class Load(Derived):
    """The element at `index` elements from the start of `buffer`; a vector index loads lane by
    lane. Where `predicate` (bool, as many lanes) is false nothing is read and the lane is 0."""

    buffer: Buffer
    index: Expr
    predicate: Expr | None = None

    def _derive_dtype(self) -> DType:
        return self.buffer.dtype.with_lanes(self.index.dtype.lanes)


@node
class AddressOf(Derived):
    """Where `buffer` begins, or, with indices, where the element at these lies: an argument.

    `access` says what the callee does there: `read`, `write` (any of it; what was not written
    before holds anything) or `update` (both). The indices are those of a BufferLoad, or, from the
    flat level on, one offset in elements. `element` is the dtype that the callee sees, as wide as
    the buffer's.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    access: str
    element: DType

    def _derive_dtype(self) -> DType:
        return HANDLE

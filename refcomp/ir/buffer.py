"""Memory: the Buffer that names it, and the expressions that read it or take its address.

Grammar (ASDL, continuing `refcomp.ir.expr`)::

    buffer = Buffer(str name, dtype dtype, expr* shape, scope scope, int alignment)
    scope = global | local | shared
    expr = BufferLoad(buffer buffer, expr* indices)
         | Load(buffer buffer, expr index, expr? predicate)
         | AddressOf(buffer buffer, expr* indices, access access, dtype element)
    access = read | write | update

`BufferLoad` belongs to the nested level, where a buffer has one index for each dimension. `Load`
belongs to the flat level, where the index counts elements from the buffer's start. `AddressOf` is
an argument of a call that has effects (`refcomp.ir.stmt`), and stands nowhere else.
"""

from __future__ import annotations

from refcomp.foundation.choices import Choice
from refcomp.foundation.dtype import HANDLE, DType
from refcomp.ir.expr import Derived, Expr
from refcomp.ir.node import Bindable, node


class StorageScope(Choice):
    """The memory of a buffer."""

    GLOBAL = "global"  # on the heap, or an argument
    LOCAL = "local"  # an array of constant shape on the stack, one for each thread
    SHARED = "shared"  # one for each group of a kernel's threads


class BufferAccess(Choice):
    """The use that a callee makes of the memory at an address."""

    READ = "read"
    WRITE = "write"  # the old contents are undefined
    UPDATE = "update"  # reads and writes


# Python 3.11 looks up members by a slow property, so passes compare with these names.
GLOBAL = StorageScope.GLOBAL
LOCAL = StorageScope.LOCAL
SHARED = StorageScope.SHARED
READ = BufferAccess.READ
WRITE = BufferAccess.WRITE
UPDATE = BufferAccess.UPDATE


def memory_scope(name: object, where: str | None = None) -> StorageScope:
    """Return the scope that a user names.

    `warp`, memory that the threads of a warp exchange by instructions in the classic API, is shared
    memory: its values are the same.
    """
    if name == "warp":
        return SHARED
    return StorageScope.parse(name, "scope", where=where)


@node
class Buffer(Bindable):
    """Memory for elements of `dtype`, in row-major order. It is bound like a variable.

    Only user's programs have elements that are vectors: see `refcomp.ir.lanes`.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]  # i64
    scope: StorageScope = GLOBAL
    alignment: int = 0  # in bytes; 0: aligned to one element, as all arguments are


@node
class BufferLoad(Derived):
    """The element of `buffer` at `indices`, one per dimension; out of range is an error."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    def _derive_dtype(self) -> DType:
        lanes = max((index.dtype.lanes for index in self.indices), default=1)
        held = self.buffer.dtype
        return held if lanes == 1 else held.with_lanes(lanes)


@node
class Load(Derived):
    """The element at `index` elements from the start of `buffer`.

    A vector index loads lane by lane. Where the predicate is false, nothing is read, and the lane
    is 0.
    """

    buffer: Buffer
    index: Expr
    predicate: Expr | None = None  # bool, with as many lanes as the index

    def _derive_dtype(self) -> DType:
        return self.buffer.dtype.with_lanes(self.index.dtype.lanes)


@node
class AddressOf(Derived):
    """The address of an element of `buffer`, as an argument of a call."""

    buffer: Buffer
    # Empty for the first element. From the flat level on, one offset.
    indices: tuple[Expr, ...]
    access: BufferAccess  # what the callee does from this address on
    element: DType  # the dtype that the callee sees, as wide as that of the buffer

    def _derive_dtype(self) -> DType:
        return HANDLE

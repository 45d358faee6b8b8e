"""BufferView: a buffer in the code of a user who writes loop IR statements.

A view adds what the user declares about the memory: strides, offset of the first element,
alignment. It is not a node of the loop IR; its methods return loads, stores and addresses.
"""

from __future__ import annotations

from typing import Final

from refcomp.foundation.dtype import I64, DType, as_dtype
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.records import record
from refcomp.ir.buffer import (
    READ,
    UPDATE,
    WRITE,
    AddressOf,
    Buffer,
    BufferAccess,
    BufferLoad,
    StorageScope,
)
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.stmt import BufferStore

# The classic API also knows the masks as numbers: 1 is read, 2 is write.
_MASKS: Final[dict[object, BufferAccess]] = {
    "r": READ,
    "w": WRITE,
    "rw": UPDATE,
    1: READ,
    2: WRITE,
    3: UPDATE,
}

_ZERO = IntImm(0, I64)


@record(eq=False)
class BufferView:
    """A buffer, with the user's declarations about its memory."""

    buffer: Buffer
    strides: tuple[Expr, ...] = ()  # in elements; none: row-major memory without gaps
    elem_offset: Expr = _ZERO  # of the first element, in elements
    data_alignment: int = 0  # in bytes; 0: not declared
    offset_factor: int = 0  # a divisor of `elem_offset`; 0: not declared
    # How a callee uses the memory if the view itself is an argument.
    access: BufferAccess = UPDATE

    @property
    def name(self) -> str:
        """Return the name of the buffer."""
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        """Return the dtype of the elements."""
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Return the extent of each dimension, i64."""
        return self.buffer.shape

    @property
    def scope(self) -> StorageScope:
        """Return the storage scope of the memory."""
        return self.buffer.scope

    @property
    def data(self) -> AddressOf:
        """Return the address of the first element, as an argument of a call."""
        return AddressOf(self.buffer, (), self.access, self.dtype)

    def access_ptr(self, access_mask: object, offset: object = 0) -> AddressOf:
        """Return the address of an element, as an argument of a call.

        Args:
            access_mask: what the callee does: "r" reads, "w" writes, "rw" does both.
            offset: of the element, in elements from the first one.
        """
        if access_mask not in _MASKS:
            raise UserError(
                f"{access_mask!r} is not a way to use {self.name}",
                remedy='one of "r", "w", "rw"',
            )
        # No indices mean the whole buffer, which a Python callee (CallPacked) needs.
        is_whole = isinstance(offset, int) and offset == 0
        indices = () if is_whole else flat_indices(self.buffer, offset)
        return AddressOf(self.buffer, indices, _MASKS[access_mask], self.dtype)

    def __getitem__(self, indices: object) -> BufferLoad:
        """Return the element at one index per dimension, or at one offset in elements."""
        return BufferLoad(self.buffer, element_indices(self.buffer, indices))

    def vload(self, begin: object, dtype: object = None) -> BufferLoad:
        """Return the element at `begin`, one index per dimension. Vectors are refused."""
        self._refuse_vector(self.dtype if dtype is None else as_dtype(dtype))
        return self[begin]

    def vstore(self, begin: object, value: object) -> BufferStore:
        """Return a statement that writes `value` to the element at `begin`.

        The value is converted to the dtype of the elements. Vectors are refused.
        """
        stored = as_expr(value)
        self._refuse_vector(stored.dtype)
        indices = element_indices(self.buffer, begin)
        return BufferStore(self.buffer, indices, cast(self.dtype, stored))

    def _refuse_vector(self, dtype: DType) -> None:
        if dtype.lanes > 1:
            raise Unsupported(
                f"a vector of {dtype} is read from or written to {self.name}",
                why="the nested level has scalars only; vectors are made of loops",
                remedy='access one element in a loop: for_range(0, 4, for_type="vectorize")',
            )

    def __repr__(self) -> str:
        return f"BufferView({self.name}: {self.dtype}, rank {len(self.shape)})"


def element_indices(buffer: Buffer, indices: object) -> tuple[Expr, ...]:
    """Return one i64 index per dimension for `indices`: as many indices, or one flat offset."""
    given = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
    if len(given) == len(buffer.shape):
        return tuple(_index(index) for index in given)
    if len(given) == 1:
        return flat_indices(buffer, given[0])
    raise UserError(
        f"{buffer.name} has {len(buffer.shape)} dimensions and is indexed with {len(given)}",
        remedy="give one index per dimension, or one offset in elements",
    )


def flat_indices(buffer: Buffer, offset: object) -> tuple[Expr, ...]:
    """Return the indices of the element at `offset` elements from the start of `buffer`."""
    rest = _index(offset)
    indices: list[Expr] = []
    for extent in reversed(buffer.shape[1:]):
        indices.insert(0, FloorMod(rest, extent))
        rest = FloorDiv(rest, extent)
    return (rest, *indices) if buffer.shape else ()


def _index(value: object) -> Expr:
    index = as_expr(value)
    if not index.dtype.is_int:
        raise UserError(f"an index must be an integer, not {index.dtype}")
    return cast(I64, index)

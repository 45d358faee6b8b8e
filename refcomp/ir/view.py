"""BufferView: a buffer in the code of a user who writes loop IR statements.

A view adds what the user declares about the memory: strides, offset of the first element,
alignment. It is not a node of the loop IR; its methods return loads, stores and addresses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from refcomp.foundation.dtype import I64, DType, as_dtype
from refcomp.foundation.errors import UserError
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
from refcomp.ir.constants import as_int, as_ints
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm, Ramp
from refcomp.ir.promotion import as_expr, binary, cast
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


class Addressable:
    """Memory whose addresses are arguments of calls: a view, or a pointer of a builder."""

    __slots__ = ()
    buffer: Buffer

    def access_ptr(
        self,
        access_mask: object,
        offset: object = 0,
        *,
        ptr_type: object = "handle",
        content_lanes: int = 1,
        extent: object = None,
    ) -> AddressOf:
        """Return the address of an element, as an argument of a call.

        Args:
            access_mask: the accesses of the callee: "r", "w" or "rw".
            offset: the number of elements from the first one.
            ptr_type: accepted for the classic API, and ignored: an address has no type.
            content_lanes: the lanes of the vectors that the callee accesses. They begin at
                multiples of their size, so a constant offset must be a multiple of it.
            extent: the number of elements that the callee accesses; None for all that follow.

        Raises:
            UserError: the mask is unknown, or constants show that the callee would access memory
                beyond the buffer, or parts of vectors.
        """
        if isinstance(access_mask, str):
            # The order of the letters means nothing.
            access_mask = "".join(sorted(access_mask))
        if access_mask not in _MASKS:
            raise UserError(
                f"{access_mask!r} is not a way to use {self.buffer.name}",
                remedy='one of "r", "w", "rw"',
            )
        if isinstance(offset, str):
            raise UserError(
                f"access_ptr of {self.buffer.name} is given the offset {offset!r}",
                why="its second argument is the offset, not the type of the pointer",
                remedy=f'access_ptr("{access_mask}", offset=0); an address has no type',
            )
        self._check_range(offset, content_lanes, extent)
        # No indices mean the whole buffer, which a Python callee (CallPacked) needs.
        is_whole = isinstance(offset, int) and offset == 0
        indices = () if is_whole else flat_indices(self.buffer, offset)
        return AddressOf(self.buffer, indices, _MASKS[access_mask], self.buffer.dtype)

    def _check_range(self, offset: object, lanes: object, extent: object) -> None:
        """Refuse an address whose constants show a wrong access."""
        if not isinstance(lanes, int) or isinstance(lanes, bool) or lanes < 1:
            raise UserError(
                f"content_lanes of {self.buffer.name} cannot be {lanes!r}",
                remedy="pass the number of lanes of a vector, 1 for scalars",
            )
        start = as_int(_index(offset))
        count = 0 if extent is None else as_int(_index(extent))
        sizes = as_ints(self.buffer.shape)
        if start is None:
            return
        if start % lanes or (count or 0) % lanes:
            raise UserError(
                f"vectors of {lanes} lanes cannot begin at element {start} of {self.buffer.name}",
                where=f"extent {count}" if count else None,
                why="the offset and the extent of vectors are multiples of their lanes",
                remedy="pass such multiples, or content_lanes=1",
            )
        if sizes is None or count is None or 0 <= start <= math.prod(sizes) - count:
            return
        raise UserError(
            f"{count} elements from element {start} on are not within {self.buffer.name}",
            why=f"{self.buffer.name} has {math.prod(sizes)} elements",
            remedy="pass an offset and an extent that lie within the buffer",
        )


@record(eq=False)
class BufferView(Addressable):
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

    def __getitem__(self, indices: object) -> BufferLoad:
        """Return the element at one index per dimension, or at one offset in elements."""
        return BufferLoad(self.buffer, element_indices(self.buffer, indices))

    def vload(self, begin: object, dtype: object = None) -> BufferLoad:
        """Return the element at `begin`, or a vector of elements that lie one behind the other.

        Args:
            begin: the indices of the first element, one for each dimension. Elements behind the
                last one of a row are those of the next row.
            dtype: the dtype of the elements, perhaps with lanes: `"float32x4"` reads four. None
                reads one.

        Raises:
            UserError: the buffer holds another dtype, or there are too few indices for a vector.
        """
        read = self.dtype if dtype is None else as_dtype(dtype)
        if read.element != self.dtype.element:
            raise UserError(
                f"{self.name} holds {self.dtype} and is read as {read}",
                remedy=f"read {self.dtype.element.with_lanes(read.lanes)}, and convert it: "
                f".astype({str(read)!r})",
            )
        return BufferLoad(self.buffer, self._place(begin, read.lanes))

    def vstore(self, begin: object, value: object) -> BufferStore:
        """Return a statement that writes a value, or the lanes of a vector one behind the other.

        Args:
            begin: the indices of the first element, as for `vload`.
            value: a scalar or a vector. It is converted to the dtype of the elements.

        Raises:
            UserError: there are too few indices for a vector.
        """
        stored = as_expr(value)
        lanes = max(stored.dtype.lanes, self.dtype.lanes)
        place = self._place(begin, lanes)
        held = cast(self.dtype.element.with_lanes(lanes), stored)
        return BufferStore(self.buffer, place, held)

    def _place(self, begin: object, lanes: int) -> tuple[Expr, ...]:
        """Return the indices of `lanes` elements, vectors if the buffer holds scalars."""
        if lanes == self.dtype.lanes:
            return element_indices(self.buffer, begin)
        if self.dtype.lanes > 1:
            raise UserError(
                f"{self.name} holds vectors of {self.dtype} and is accessed by {lanes} lanes",
                remedy=f"access whole elements: {self.name}[i]",
            )
        given = tuple(begin) if isinstance(begin, tuple | list) else (begin,)
        if not given or len(given) != len(self.shape):
            raise UserError(
                f"a vector of {self.name} begins at {len(given)} indices, "
                f"but {self.name} has {len(self.shape)} dimensions",
                remedy="give one index per dimension",
            )
        return _vector_indices(self.buffer, tuple(map(_index, given)), lanes)

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


def _vector_indices(
    buffer: Buffer, begin: Sequence[Expr], lanes: int
) -> tuple[Expr, ...]:
    """Return the indices of `lanes` elements from `begin` on, in the order of memory."""
    indices: list[Expr] = list(begin)
    first = as_int(begin[-1])
    indices[-1] = Ramp(begin[-1], IntImm(1, I64), lanes)
    for dim in range(len(indices) - 1, 0, -1):
        extent = as_int(buffer.shape[dim])
        # Within one row. If its length is not a constant, a check of bounds must show that.
        if extent is None or (first is not None and first + lanes <= extent):
            break
        index = indices[dim]
        indices[dim] = binary(FloorMod, index, extent)
        indices[dim - 1] = indices[dim - 1] + binary(FloorDiv, index, extent)
        first = None
    return tuple(indices)


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
    if not index.dtype.is_int or index.dtype.lanes > 1:
        raise UserError(f"an index must be an integer, not {index.dtype}")
    return cast(I64, index)

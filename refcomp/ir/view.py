"""BufferView: a buffer as the user's own code sees it, who reads and writes it by statements.

Beside the buffer it says what is declared of its memory: strides, the offset of the first element,
alignment. A view lives above the loop IR; what it gives are loads, stores and addresses of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refcomp.foundation.dtype import I64, DType, as_dtype
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import READ, UPDATE, WRITE, AddressOf, Buffer, BufferLoad
from refcomp.ir.expr import Expr, FloorDiv, FloorMod, IntImm
from refcomp.ir.promotion import as_expr, cast
from refcomp.ir.stmt import BufferStore

_MASKS: dict[Any, str] = {
    "r": READ,
    "w": WRITE,
    "rw": UPDATE,
    1: READ,
    2: WRITE,
    3: UPDATE,
}

_ZERO = IntImm(0, I64)


@dataclass(frozen=True, slots=True, eq=False)
class BufferView:
    """`buffer`, and what is declared of its memory.

    `strides` are in elements, none for row-major memory without gaps; `elem_offset` is where the
    first element lies. `data_alignment` is in bytes, `offset_factor` divides the offset. `access`
    is how a function that is given the view itself uses it.
    """

    buffer: Buffer
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr = _ZERO
    data_alignment: int = 0
    offset_factor: int = 0
    access: str = UPDATE

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Elements per dimension, i64."""
        return self.buffer.shape

    @property
    def scope(self) -> str:
        """Where the memory lies."""
        return self.buffer.scope

    @property
    def data(self) -> AddressOf:
        """The address of the first element, for a function that is called."""
        return AddressOf(self.buffer, (), self.access, self.dtype)

    def access_ptr(self, access_mask: Any, offset: Any = 0) -> AddressOf:
        """The address of the first element, for a callee that reads ("r"), writes ("w") or does
        both ("rw"); with an offset, in elements, that of a later one."""
        if access_mask not in _MASKS:
            raise UserError(
                f"{access_mask!r} is no way to use {self.name}",
                remedy='one of "r", "w", "rw"',
            )
        is_whole = isinstance(offset, int) and offset == 0
        at = () if is_whole else flat_indices(self.buffer, offset)
        return AddressOf(self.buffer, at, _MASKS[access_mask], self.dtype)

    def __getitem__(self, indices: Any) -> BufferLoad:
        """The element at one index per dimension, or at one offset in elements."""
        return BufferLoad(self.buffer, element_indices(self.buffer, indices))

    def vload(self, begin: Any, dtype: Any = None) -> BufferLoad:
        """The element at `begin`, one index per dimension."""
        self._refuse_vector(self.dtype if dtype is None else as_dtype(dtype))
        return self[begin]

    def vstore(self, begin: Any, value: Any) -> BufferStore:
        """A statement that writes `value`, converted to the dtype, to the element at `begin`."""
        stored = as_expr(value)
        self._refuse_vector(stored.dtype)
        at = element_indices(self.buffer, begin)
        return BufferStore(self.buffer, at, cast(self.dtype, stored))

    def _refuse_vector(self, dtype: DType) -> None:
        if dtype.lanes > 1:
            raise Unsupported(
                f"a vector of {dtype} is read from or written to {self.name}",
                why="the nested level has scalars only; vectors are made of loops",
                remedy='access one element in a loop: for_range(0, 4, for_type="vectorize")',
            )

    def __repr__(self) -> str:
        return f"BufferView({self.name}: {self.dtype}, rank {len(self.shape)})"


def element_indices(buffer: Buffer, indices: Any) -> tuple[Expr, ...]:
    """One i64 index per dimension: `indices` as they are, or one offset taken apart."""
    given = tuple(indices) if isinstance(indices, tuple | list) else (indices,)
    if len(given) == len(buffer.shape):
        return tuple(_index(index) for index in given)
    if len(given) == 1:
        return flat_indices(buffer, given[0])
    raise UserError(
        f"{buffer.name} has {len(buffer.shape)} dimensions and is indexed with {len(given)}",
        remedy="give one index per dimension, or one offset in elements",
    )


def flat_indices(buffer: Buffer, offset: Any) -> tuple[Expr, ...]:
    """The indices of the element `offset` elements from the start of row-major memory."""
    rest = _index(offset)
    indices = list[Expr]()
    for extent in reversed(buffer.shape[1:]):
        indices.insert(0, FloorMod(rest, extent))
        rest = FloorDiv(rest, extent)
    return (rest, *indices) if buffer.shape else ()


def _index(value: Any) -> Expr:
    index = as_expr(value)
    if not index.dtype.is_int:
        raise UserError(f"an index must be an integer, not {index.dtype}")
    return cast(I64, index)

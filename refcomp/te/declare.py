"""decl_buffer: declare a buffer for extern operations, builders and intrinsics."""

from __future__ import annotations

from typing import Any

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.type_rules import SCOPES
from refcomp.ir.view import BufferView
from refcomp.te.tensor import as_dim, as_shape, scalar_dtype


# house: allow-long (a manual page)
def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    name: str = "buffer",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    data_alignment: int = -1,
    offset_factor: int = 0,
) -> BufferView:
    """Declare a buffer whose memory is bound later, for extern operations and tensor intrinsics.

    Args:
        shape: the extents: ints, int64 variables, and expressions of them.
        dtype: a scalar dtype of the elements.
        name: the name in the loop IR.
        data: memory of the user's, which is refused.
        strides: elements between neighbours, one for each dimension; row-major by default. A
            variable is bound at each use; anything else is a requirement.
        elem_offset: elements before the first one, like `strides` a variable or a requirement.
        scope: the memory: `"global"`, `"shared"` or `"local"`.
        data_alignment: bytes, a power of two, on which the declaring code relies; -1 for none.
        offset_factor: a factor of the offset on which the declaring code relies; 0 for none.

    Returns:
        A view of the buffer. `view[i, j]` reads an element, `view.vstore` writes one, and
        `view.access_ptr("r")` is its address for a function that reads.

    Raises:
        UserError: an argument is not as described.
        Unsupported: `data` is given.

    Source: TVM, tir.decl_buffer.

    Example::

        >>> ld = rc.var("ld")
        >>> tile = rc.decl_buffer((4, 4), "float32", "tile", strides=[ld, 1], offset_factor=4)
        >>> tile.shape, tile.strides, tile.elem_offset
        ((4, 4), (ld, 1), tile.elem_offset)
        >>> tile[1, 2], tile.vstore((1, 2), 0.0)
        (tile[1, 2], tile[1, 2] = 0.0f32)
    """
    if data is not None:
        raise Unsupported(
            f"buffer {name} is declared on memory of its own",
            why="a buffer of the loop IR has its memory by itself",
            remedy="pass the buffer where its memory is needed",
        )
    dims = as_shape(shape)
    if scope not in SCOPES:
        raise UserError(
            f"buffer {name} cannot lie in {scope!r}",
            remedy=f"use one of {', '.join(SCOPES)}",
        )
    alignment = _alignment(data_alignment, name)
    buffer = Buffer(
        checked_name(name, "a buffer"),
        scalar_dtype(dtype, f"buffer {name}"),
        dims,
        scope,
    )
    offset = _offset(elem_offset, offset_factor, name)
    return BufferView(
        buffer, _strides(strides, dims, name), offset, alignment, offset_factor
    )


def _alignment(given: int, name: str) -> int:
    if given == -1:
        return 0
    if isinstance(given, int) and given > 0 and given & (given - 1) == 0:
        return given
    raise UserError(
        f"buffer {name} cannot be aligned to {given!r} bytes",
        remedy="use a power of two, as 64",
    )


def _strides(given: Any, dims: tuple[Expr, ...], name: str) -> tuple[Expr, ...]:
    if given is None or (isinstance(given, tuple | list) and not given):
        return ()
    strides = tuple(
        as_dim(s) for s in (given if isinstance(given, tuple | list) else (given,))
    )
    if len(strides) != len(dims):
        raise UserError(
            f"buffer {name} has {len(dims)} dimensions and {len(strides)} strides",
            remedy="give one stride per dimension, in elements",
        )
    return strides


def _offset(given: Any, factor: int, name: str) -> Expr:
    if not isinstance(factor, int) or factor < 0:
        raise UserError(
            f"the offset factor of buffer {name} is {factor!r}", remedy="a count >= 0"
        )
    if given is None:
        return Var(f"{name}.elem_offset", I64) if factor else IntImm(0, I64)
    return as_dim(given)

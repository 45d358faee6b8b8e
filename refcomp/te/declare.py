"""decl_buffer: declare a buffer for extern operations, builders and intrinsics."""

from __future__ import annotations

from refcomp.foundation.dtype import I64, as_dtype
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.names import checked_name
from refcomp.ir.buffer import GLOBAL, Buffer, memory_scope
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.view import BufferView
from refcomp.te.tensor import (
    DTypeLike,
    ExprLike,
    ShapeLike,
    as_dim,
    as_shape,
)


def decl_buffer(
    shape: ShapeLike,
    dtype: DTypeLike = "float32",
    name: str = "buffer",
    data: object = None,
    strides: ShapeLike | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = GLOBAL,
    data_alignment: int = -1,
    offset_factor: int = 0,
) -> BufferView:
    """Declare a buffer whose memory is bound later, for extern operations and tensor intrinsics.

    Args:
        shape: the extents: ints, int64 variables, and expressions of them.
        dtype: the dtype of the elements: a number, a bool, or a vector such as `float32x4`.
        name: the name in the loop IR.
        data: memory of the user's, which is refused.
        strides: elements between neighbours, one for each dimension; row-major by default. A
            variable is bound at each use; anything else is a requirement.
        elem_offset: elements before the first one, like `strides` a variable or a requirement.
        scope: the memory: `"global"`, `"shared"`, `"warp"` (which is shared memory) or `"local"`.
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
            why="a buffer of the loop IR cannot use the memory of other data",
            remedy="pass the buffer where its memory is needed",
        )
    dims = as_shape(shape)
    memory = memory_scope(scope, f"buffer {name}")
    is_count = isinstance(data_alignment, int) and data_alignment > 0
    is_power_of_two = is_count and data_alignment & (data_alignment - 1) == 0
    if data_alignment != -1 and not is_power_of_two:
        raise UserError(
            f"buffer {name} cannot be aligned to {data_alignment!r} bytes",
            remedy="use a power of two, as 64",
        )
    element = as_dtype(dtype)
    buffer = Buffer(checked_name(name, "a buffer"), element, dims, memory)
    return BufferView(
        buffer,
        strides=_strides(strides, dims, name),
        elem_offset=_offset(elem_offset, offset_factor, name),
        data_alignment=max(0, data_alignment),
        offset_factor=offset_factor,
    )


def _strides(
    given: ShapeLike | None, dims: tuple[Expr, ...], name: str
) -> tuple[Expr, ...]:
    if given is None or (isinstance(given, tuple | list) and not given):
        return ()
    listed = given if isinstance(given, tuple | list) else (given,)
    strides = tuple(as_dim(stride) for stride in listed)
    if len(strides) != len(dims):
        raise UserError(
            f"buffer {name} has {len(dims)} dimensions and {len(strides)} strides",
            remedy="give one stride per dimension, in elements",
        )
    return strides


def _offset(given: ExprLike | None, factor: int, name: str) -> Expr:
    if not isinstance(factor, int) or factor < 0:
        raise UserError(
            f"the offset factor of buffer {name} is {factor!r}", remedy="a count >= 0"
        )
    if given is None:
        # A promised factor means a block within larger memory, whose offset each use binds.
        return Var(f"{name}.elem_offset", I64) if factor else IntImm(0, I64)
    return as_dim(given)

"""Images stored with their borders, so that the loops of a convolution need no conditions.

`store_border` makes an extern operation, whose statement is a whole kernel. Each thread stores four
neighbours of the last axis: elements of the image, or the border's value. A group's threads have
the same rows of pixels, so that most of the position is the same for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from refcomp.foundation.dtype import F32, I64
from refcomp.ir import builder
from refcomp.ir.constants import as_int
from refcomp.ir.expr import And, Expr, FloatImm, IfThenElseExpr, Var
from refcomp.ir.promotion import const
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te.externs import extern
from refcomp.te.operation import ComputeOp, PlaceholderOp, reachable_operations
from refcomp.te.tensor import Tensor, TensorRead, thread_axis
from refcomp.topi.schedules.computed_reads import Pointers, as_loads
from refcomp.topi.tags import PAD

PIXEL = 4  # channels of a stored pixel, see `store_pixels`
_LANES = 4  # f32 of an access of 128 bits
_THREADS = 256  # of a group, at most
_ROWS = 4  # of pixels, of a group


def is_padded(tensor: Tensor) -> bool:
    """Return True if `tensor` is a copy with a border."""
    return isinstance(tensor.op, ComputeOp) and tensor.op.tag == PAD


def has_border(tensor: Tensor) -> bool:
    """Return True if `tensor` is an f32 image with a border, which `store_border` can store.

    Its extents are constant, its last extent is a multiple of 4, and that axis has no border.
    """
    return is_padded(tensor) and _is_plain(tensor) and _shape(tensor)[-1] % _LANES == 0


def has_pixels(tensor: Tensor) -> bool:
    """Return True if `tensor` is an f32 image that `store_pixels` can store.

    Its extents are constant, it has at most four channels, and a border of zeros or none.
    """
    if not _is_plain(tensor) or _shape(tensor)[-1] > PIXEL:
        return False
    return not is_padded(tensor) or _border_value(tensor) == 0.0


def _is_plain(tensor: Tensor) -> bool:
    """Return True for constant extents and f32, without a border along the last axis."""
    shape = [as_int(extent) for extent in tensor.shape]
    if tensor.dtype != F32 or None in shape or len(shape) < 2:
        return False
    if not is_padded(tensor):
        return True
    op = tensor.op
    assert isinstance(op, ComputeOp)
    body = op.body[0]
    if _border_value(tensor) is None or not isinstance(body, IfThenElseExpr):
        return False
    return op.axis[-1].var not in set(variables_in(body.condition))


def _border_value(tensor: Tensor) -> float | None:
    """Return the value of a border; None if it is not a constant."""
    assert isinstance(tensor.op, ComputeOp)
    body = tensor.op.body[0]
    if isinstance(body, IfThenElseExpr) and isinstance(body.false_value, FloatImm):
        return float(body.false_value)
    return None


def store_border(tensor: Tensor) -> Tensor:
    """Return the elements of an image with a border, as one row, stored by a kernel of its own.

    Args:
        tensor: an image for which `has_border` is true.

    Returns:
        An f32 tensor of one dimension, in the order of `tensor`.

    Example::

        >>> from refcomp.topi.schedules.stored_borders import store_border
        >>> A = rc.placeholder((1, 2, 2, 4), name="A")
        >>> y = rc.topi.conv2d_nhwc(
        ...     A, rc.placeholder((3, 3, 4, 4), name="w"), padding=(1, 1, 1, 1)
        ... )
        >>> padded, _ = y.op.inputs
        >>> [int(extent.value) for extent in store_border(padded).shape]
        [64]
    """
    return _store_row(tensor, _shape(tensor))


def pixels_shape(shape: Sequence[int]) -> list[int]:
    """Return the extents of an image of `shape` as `store_pixels` stores it."""
    return [*shape[:-2], shape[-2] + 1, PIXEL]


def store_pixels(tensor: Tensor) -> Tensor:
    """Return an image of few channels as `store_border` does, with zeros as further channels.

    Each pixel has four channels. Behind each row of pixels is one more, of zeros.

    Args:
        tensor: an f32 image of constant extents, with channels last, at most four.

    Example::

        >>> from refcomp.topi.schedules.stored_borders import store_pixels
        >>> A = rc.placeholder((1, 2, 2, 3), name="A")
        >>> [int(extent.value) for extent in store_pixels(A).shape]
        [24]
    """
    return _store_row(tensor, pixels_shape(_shape(tensor)))


def _store_row(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the elements of `tensor`, which is stored with the extents `shape`, as one row."""
    found = reachable_operations([tensor.op])
    inputs = [t for op in found if isinstance(op, PlaceholderOp) for t in op.outputs]

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        pointers = {t: ib.buffer_ptr(v) for t, v in zip(inputs, ins, strict=True)}
        target = ib.buffer_ptr(outs[0])
        vectors = shape[-2] * shape[-1] // _LANES  # of a row of pixels
        threads = min(_THREADS, vectors)
        rows = math.prod(shape[:-2])
        several = _bound(ib, -(-rows // _ROWS), "blockIdx.y") * _ROWS
        group = _bound(ib, -(-vectors // threads), "blockIdx.x")
        vector = group * threads + _bound(ib, threads, "threadIdx.x")
        width = shape[-1] // _LANES
        is_partial = vectors % threads != 0
        with (
            ib.if_scope(vector < vectors) if is_partial else ib.scope(),
            ib.for_range(0, min(_ROWS, rows), "several") as number,
        ):
            row = several + number
            pixel = [vector // width, vector % width * _LANES]
            first = (row * vectors + vector) * _LANES
            with ib.if_scope(row < rows) if rows % _ROWS else ib.scope():
                at = [*_digits(row, shape[:-2]), *pixel]
                _store(ib, tensor, at, pointers, target, first)
        return ib.get()

    made: Tensor = extern(
        (math.prod(shape),), inputs, statement, name=tensor.name, dtype=F32
    )
    return made


def _shape(tensor: Tensor) -> list[int]:
    return [as_int(extent) or 0 for extent in tensor.shape]


def _bound(ib: builder.IRBuilder, extent: int, tag: str) -> Var:
    axis = thread_axis((0, extent), tag)
    ib.scope_attr(axis, "thread_extent", extent)
    return axis.var


def _digits(number: Expr, extents: Sequence[int]) -> list[Expr]:
    """Return the indices of element `number` of an array, in the order of its dimensions."""
    digits: list[Expr] = []
    for extent in reversed(extents[1:]):
        digits.insert(0, number % extent)
        number = number // extent
    return [number, *digits] if extents else []


def _store(
    ib: builder.IRBuilder,
    tensor: Tensor,
    at: Sequence[Expr],
    pointers: Pointers,
    target: builder.BufferPointer,
    first: Expr,
) -> None:
    """Store four neighbours, the first of which is at the indices `at`."""
    *_, width, channels = _shape(tensor)
    *before, last = at
    channel = Var("channel", I64)
    body: Expr = TensorRead(tensor, (*before, channel))
    inside: Expr = before[-1] < width  # but for the pixel behind each row
    outside = FloatImm(0.0, F32)
    if is_padded(tensor):
        body = _body(tensor, (*before, channel))
        assert isinstance(body, IfThenElseExpr)
        assert isinstance(body.false_value, FloatImm)
        inside = And(inside, body.condition)
        outside = body.false_value
        body = body.true_value
    value = as_loads(body, pointers, {})
    with ib.if_scope(inside):
        if channels % _LANES:
            for n in range(PIXEL):
                element = substitute(value, {channel: const(n, "int64")})
                target[first + n] = element if n < channels else outside
        else:
            with ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
                target[first + v] = substitute(value, {channel: last + v})
    with ib.else_scope(), ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
        target[first + v] = outside


def _body(tensor: Tensor, at: Sequence[Expr]) -> Expr:
    op = tensor.op
    assert isinstance(op, ComputeOp)
    return substitute(
        op.body[0], dict(zip((axis.var for axis in op.axis), at, strict=True))
    )

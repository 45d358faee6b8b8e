"""Images stored with their borders, so that the loops of a convolution need no conditions.

`store_border` makes an extern operation, whose statement is a whole kernel. Each thread stores four
neighbours of the last axis: those of the image, or the border's value. A group's threads have one
row of pixels, so that most of the position is the same for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from refcomp.foundation.dtype import F32
from refcomp.ir import builder
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, FloatImm, IfThenElseExpr, Var
from refcomp.ir.rewrite import substitute, variables_in
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te.externs import extern
from refcomp.te.operation import ComputeOp, PlaceholderOp, reachable_operations
from refcomp.te.tensor import Tensor, thread_axis
from refcomp.topi.schedules.computed_reads import Pointers, as_loads
from refcomp.topi.tags import PAD

_LANES = 4  # f32 of an access of 128 bits
_THREADS = 256  # of a group, at most


def is_padded(tensor: Tensor) -> bool:
    """Return True if `tensor` is a copy with a border."""
    return isinstance(tensor.op, ComputeOp) and tensor.op.tag == PAD


def has_border(tensor: Tensor) -> bool:
    """Return True if `tensor` is an f32 image with a border, which `store_border` can store.

    Its extents are constant, its last extent is a multiple of 4, and that axis has no border.
    """
    op = tensor.op
    if not isinstance(op, ComputeOp) or op.tag != PAD or tensor.dtype != F32:
        return False
    body = op.body[0]
    if not isinstance(body, IfThenElseExpr) or not isinstance(
        body.false_value, FloatImm
    ):
        return False
    if op.axis[-1].var in set(variables_in(body.condition)):
        return False
    shape = [as_int(extent) for extent in tensor.shape]
    return None not in shape and len(shape) > 1 and (shape[-1] or 0) % _LANES == 0


def store_border(tensor: Tensor) -> Tensor:
    """Return the elements of an image with a border, as one row, stored by a kernel of its own.

    Args:
        tensor: an image for which `has_border` is true.

    Returns:
        An f32 tensor of one dimension, in the order of `tensor`.

    Example::

        >>> from refcomp.topi.schedules.stored_borders import store_border
        >>> A = rc.placeholder((1, 2, 2, 4), name="A")
        >>> padded = rc.topi.pad(A, (0, 1, 1, 0), (0, 1, 1, 0))
        >>> [int(extent.value) for extent in store_border(padded).shape]
        [64]
    """
    shape = _shape(tensor)
    found = reachable_operations([tensor.op])
    inputs = [t for op in found if isinstance(op, PlaceholderOp) for t in op.outputs]

    def statement(ins: list[BufferView], outs: list[BufferView]) -> Stmt:
        ib = builder.create()
        pointers = {t: ib.buffer_ptr(v) for t, v in zip(inputs, ins, strict=True)}
        target = ib.buffer_ptr(outs[0])
        vectors = shape[-2] * shape[-1] // _LANES  # of a row of pixels
        threads = min(_THREADS, vectors)
        row = _bound(ib, math.prod(shape[:-2]), "blockIdx.y")
        group = _bound(ib, -(-vectors // threads), "blockIdx.x")
        vector = group * threads + _bound(ib, threads, "threadIdx.x")
        width = shape[-1] // _LANES
        at = [*_digits(row, shape[:-2]), vector // width, vector % width * _LANES]
        first = (row * vectors + vector) * _LANES
        is_partial = vectors % threads != 0
        with ib.if_scope(vector < vectors) if is_partial else ib.scope():
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
    op = tensor.op
    assert isinstance(op, ComputeOp)
    body = op.body[0]
    assert isinstance(body, IfThenElseExpr)
    axes = dict(zip((axis.var for axis in op.axis), at, strict=True))
    last = op.axis[-1].var
    with (
        ib.if_scope(substitute(body.condition, axes)),
        ib.for_range(0, _LANES, "v", for_type="vectorize") as v,
    ):
        value = substitute(body.true_value, {**axes, last: at[-1] + v})
        target[first + v] = as_loads(value, pointers, {})
    with ib.else_scope(), ib.for_range(0, _LANES, "v", for_type="vectorize") as v:
        target[first + v] = body.false_value

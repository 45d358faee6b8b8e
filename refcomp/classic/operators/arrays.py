"""Classic operators that move, reduce and combine elements, such as `topi.transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from typing import SupportsInt

from refcomp.classic.operators.arguments import (
    Operand,
    Sizes,
    chosen,
    size_of,
    sizes_of,
    tensor_of,
)
from refcomp.foundation.errors import UserError
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.broadcast import (
    arithmetic,
    bits,
    choice,
    comparison,
    division,
    powers,
    repetition,
    variadic,
)
from refcomp.topi.contraction import dense as products
from refcomp.topi.contraction import einsum
from refcomp.topi.conversion import casts
from refcomp.topi.elementwise import activations
from refcomp.topi.movement import (
    axes as axes_of_tensors,
)
from refcomp.topi.movement import (
    constants,
    gather,
    layouts,
    masks,
    shape_of,
    slices,
    transform,
)
from refcomp.topi.movement import gather_nd as coordinates
from refcomp.topi.movement import repetition as copies
from refcomp.topi.reduction import extrema, logical, sums
from refcomp.topi.search import sort
from refcomp.topi.shapes import normalize_axis

Axes = int | Sequence[int] | None


def _binary(
    operator: Callable[[Tensor, Tensor], Tensor],
) -> Callable[[Operand, Operand], Tensor]:
    """Return an operator that also takes numbers and expressions in place of tensors."""

    @wraps(operator)
    def combine(lhs: Operand, rhs: Operand) -> Tensor:
        return operator(tensor_of(lhs, rhs), tensor_of(rhs, lhs))

    return combine


add = _binary(arithmetic.add)
subtract = _binary(arithmetic.subtract)
multiply = _binary(arithmetic.multiply)
divide = _binary(arithmetic.divide)
floor_divide = _binary(division.floor_divide)
mod = _binary(division.mod)
floor_mod = _binary(division.floor_mod)
power = _binary(powers.power)
maximum = _binary(choice.maximum)
minimum = _binary(choice.minimum)
left_shift = _binary(bits.left_shift)
right_shift = _binary(bits.right_shift)
greater = _binary(comparison.greater)
less = _binary(comparison.less)
equal = _binary(comparison.equal)
not_equal = _binary(comparison.not_equal)
greater_equal = _binary(comparison.greater_equal)
less_equal = _binary(comparison.less_equal)


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return x where the condition is not 0, else y, by `topi.where`.

    A vector chooses along the first axis of x.
    """
    if condition.dtype != "bool":
        condition = comparison.not_equal(condition, tensor_of(0, condition))
    if len(condition.shape) == 1 < len(x.shape):
        axes = tuple(range(1, len(x.shape)))
        condition = axes_of_tensors.expand_dims(condition, axis=axes)
    return choice.where(condition, x, y)


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """Return the sum of a list of tensors, by `topi.add_n`."""
    return variadic.add_n(*xs)


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Permute the axes, by `topi.transpose`. Without `axes`, reverse them."""
    order = range(len(a.shape))[::-1] if axes is None else axes
    return transform.transpose(a, axes=sizes_of(order, "the order of the axes"))


def reshape(a: Tensor, newshape: Sequence[SupportsInt]) -> Tensor:
    """Return the elements in another shape, by `topi.reshape`."""
    return transform.reshape(a, shape=sizes_of(newshape, "the new shape"))


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join a list of tensors along an axis, by `topi.concatenate`."""
    return transform.concatenate(*a_tuple, axis=axis)


def stack(a: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join a list of tensors along a new axis, by `topi.stack`."""
    return axes_of_tensors.stack(*a, axis=axis)


def split(ary: Tensor, indices_or_sections: Sizes, axis: int = 0) -> list[Tensor]:
    """Cut a tensor along an axis, by `topi.split`.

    Args:
        ary: the tensor, of a constant extent along the axis.
        indices_or_sections: the number of equal parts; or the position where each part begins,
            except for the first part.
        axis: the axis.

    Raises:
        UserError: the extent is not a multiple of the number of parts.
    """
    place = normalize_axis(axis, len(ary.shape), "split")
    extent = size_of(ary.shape[place], "the axis")
    if isinstance(indices_or_sections, Sequence):
        begins = [0, *sizes_of(indices_or_sections, "the list of positions"), extent]
        parts = [end - begin for begin, end in pairwise(begins)]
        return transform.split(ary, axis=axis, sizes=parts)
    count = size_of(indices_or_sections, "the number of parts")
    if count < 1 or extent % count:
        raise UserError(
            f"an axis of {extent} elements cannot be split into {count} equal parts",
            remedy="give a divisor of the extent, or the list of positions to cut at",
        )
    return transform.split(ary, axis=axis, sizes=[extent // count] * count)


def squeeze(a: Tensor, axis: Axes = None) -> Tensor:
    """Remove axes of one element, by `topi.squeeze`."""
    return axes_of_tensors.squeeze(a, axis=axis)


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """Insert axes of one element before an axis, by `topi.expand_dims`."""
    place = size_of(axis, "the axis")
    first = place if place >= 0 else len(a.shape) + 1 + place
    places = tuple(range(first, first + num_newaxis))
    return axes_of_tensors.expand_dims(a, axis=places)


def expand_like(a: Tensor, shape_like: Tensor, axis: Sequence[int]) -> Tensor:
    """Insert axes, and repeat the elements along them up to the shape of another tensor.

    `topi.expand_dims` inserts the axes, and `topi.broadcast_like` repeats.

    Args:
        a: the tensor. If `axis` names all axes of the result, it holds a single number.
        shape_like: the tensor that has the shape of the result.
        axis: the positions of the inserted axes in the result.
    """
    if len(axis) == len(shape_like.shape) and len(a.shape) == 1:
        return repetition.broadcast_like(a, shape_like)
    expanded = axes_of_tensors.expand_dims(a, axis=tuple(axis))
    return repetition.broadcast_like(expanded, shape_like)


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """Reverse an axis, by `topi.flip`."""
    return slices.flip(a, axis=axis)


def strided_slice(
    a: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Take the elements from `begin` to before `end` in steps of `strides`.

    The operator is `topi.strided_slice`. Each list has a number for each of the first axes.
    """
    first = sizes_of(begin, "the list of begins")
    steps = sizes_of(strides, "the list of strides") if strides else None
    return slices.strided_slice(
        a,
        begin=first,
        end=sizes_of(end, "the list of ends"),
        strides=steps,
        axes=tuple(range(len(first))),
    )


def take(
    a: Tensor, indices: Tensor, axis: int | None = None, mode: str = "clip"
) -> Tensor:
    """Take slices at indices, by `topi.take`.

    The mode "fast" is refused, since it reads at indices that are out of range.
    """
    return gather.take(a, indices, axis=axis, mode=mode)


def gather_nd(a: Tensor, indices: Tensor) -> Tensor:
    """Take slices at points. The first axis of `indices` holds the coordinates of a point.

    The operator is `topi.gather_nd`, where the last axis holds the coordinates.
    """
    rank = len(indices.shape)
    moved = transform.transpose(indices, axes=(*range(1, rank), 0))
    return coordinates.gather_nd(a, moved)


def repeat(a: Tensor, repeats: int, axis: int) -> Tensor:
    """Repeat each element along an axis, by `topi.repeat`."""
    return copies.repeat(a, repeats=repeats, axis=axis)


def tile(a: Tensor, reps: Sequence[int]) -> Tensor:
    """Repeat the whole tensor along its axes, by `topi.tile`."""
    return copies.tile(a, reps=sizes_of(reps, "the list of repetitions"))


def broadcast_to(data: Tensor, shape: Sequence[SupportsInt]) -> Tensor:
    """Repeat a tensor up to a shape, by `topi.broadcast_to`."""
    return repetition.broadcast_to(data, shape=sizes_of(shape, "the shape"))


def layout_transform(array: Tensor, src_layout: str, dst_layout: str) -> Tensor:
    """Change the layout, by `topi.layout_transform`."""
    return layouts.layout_transform(array, src_layout=src_layout, dst_layout=dst_layout)


def shape(array: Tensor, dtype: DTypeLike = "int32") -> Tensor:
    """Return the extents as a tensor, by `topi.shape_of` and a cast."""
    return casts.cast(shape_of.shape_of(array), dtype=dtype)


def full(shape: Sequence[SupportsInt], dtype: DTypeLike, fill_value: float) -> Tensor:
    """Return a tensor of equal elements, by `topi.full`."""
    extents = sizes_of(shape, "the shape")
    return constants.full(shape=extents, fill_value=fill_value, dtype=dtype)


def full_like(x: Tensor, fill_value: float) -> Tensor:
    """Return equal elements in the shape and dtype of `x`, by `topi.full_like`."""
    return constants.full_like(x, fill_value=fill_value)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return evenly spaced numbers, by `topi.arange`.

    A single number is `stop`, and `start` is then 0.
    """
    if stop is None:
        start, stop = 0, start
    return constants.arange(start=start, stop=stop, step=step, dtype=dtype)


def one_hot(
    indices: Tensor,
    on_value: float,
    off_value: float,
    depth: int,
    axis: int,
    dtype: DTypeLike,
) -> Tensor:
    """Return a vector for each index, by `topi.one_hot`.

    The element at the index is `on_value`. The others are `off_value`.
    """
    return masks.one_hot(
        indices,
        depth=depth,
        axis=axis,
        on_value=on_value,
        off_value=off_value,
        dtype=dtype,
    )


def sequence_mask(
    data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0
) -> Tensor:
    """Replace the elements behind the end of each sequence, by `topi.sequence_mask`."""
    return masks.sequence_mask(data, valid_length, mask_value=mask_value, axis=axis)


def cast(x: Tensor, dtype: DTypeLike) -> Tensor:
    """Convert elements to a dtype, by `topi.cast`."""
    return casts.cast(x, dtype=dtype)


def reinterpret(x: Tensor, dtype: DTypeLike) -> Tensor:
    """Return elements of the same bits in another dtype, by `topi.bitcast`."""
    return casts.bitcast(x, dtype=dtype)


def clip(x: Tensor, a_min: float, a_max: float) -> Tensor:
    """Bound elements from both sides, by `topi.clip`."""
    return activations.clip(x, a_min, a_max)


def sum(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Add up elements along axes, by `topi.sum`."""
    return sums.sum(data, axis=axis, keepdims=keepdims)


def prod(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Multiply elements along axes, by `topi.prod`."""
    return sums.prod(data, axis=axis, keepdims=keepdims)


def max(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the greatest element along axes, by `topi.max`."""
    return extrema.max(data, axis=axis, keepdims=keepdims)


def min(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the least element along axes, by `topi.min`."""
    return extrema.min(data, axis=axis, keepdims=keepdims)


def all(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return True where all elements along axes are true, by `topi.all`."""
    return logical.all(data, axis=axis, keepdims=keepdims)


def any(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return True where any element along axes is true, by `topi.any`."""
    return logical.any(data, axis=axis, keepdims=keepdims)


def argmax(data: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the greatest element as int32, by `topi.argmax` and a cast."""
    found = extrema.argmax(data, axis=axis, keepdims=keepdims)
    return casts.cast(found, dtype="int32")


def argmin(data: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the least element as int32, by `topi.argmin` and a cast."""
    found = extrema.argmin(data, axis=axis, keepdims=keepdims)
    return casts.cast(found, dtype="int32")


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: bool = True,
    dtype: DTypeLike = "float32",
) -> Tensor:
    """Return the positions of the elements in sorted order, by `topi.argsort` and a cast.

    float32 rounds positions above 2**24. Give `dtype="int32"` to avoid it.
    """
    found = sort.argsort(data, valid_count, axis=axis, is_ascend=bool(is_ascend))
    return casts.cast(found, dtype=dtype)


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: DTypeLike = "int64",
) -> Tensor | list[Tensor]:
    """Return the k greatest elements, by `topi.topk`.

    `ret_type` asks for the "values", for their "indices", or for "both" in this order.
    """
    count = size_of(k, "k")
    values, indices = sort.topk(
        data, k=count, axis=axis, is_ascend=is_ascend, dtype=dtype
    )
    results: dict[str, Tensor | list[Tensor]] = {
        "both": [values, indices],
        "values": values,
        "indices": indices,
    }
    return chosen(ret_type, results, "the type of the results of topk")


def matmul(
    a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False
) -> Tensor:
    """Multiply matrices, by `topi.matmul`."""
    return products.matmul(a, b, trans_a=transp_a, trans_b=transp_b)


def tensordot(
    a: Tensor, b: Tensor, axes: int | Sequence[int] | Sequence[Sequence[int]]
) -> Tensor:
    """Add up products along pairs of axes, by `topi.tensordot`.

    Args:
        a: a tensor.
        b: a tensor.
        axes: the number of last axes of `a` that are paired with the first axes of `b`; or the
            paired axes: one of `a` and one of `b`, or a list of each.
    """
    if isinstance(axes, int):
        rank = len(a.shape)
        axes = [range(rank - axes, rank), range(axes)]
    if isinstance(axes, str) or len(axes) != 2:
        raise UserError(
            f"tensordot cannot pair the axes {axes!r}",
            remedy="give a count, or the axes of both tensors: ((1, 2), (0, 1))",
        )
    axes_a, axes_b = (
        (each,) if isinstance(each, int) else sizes_of(each, "the list of axes")
        for each in axes
    )
    return einsum.tensordot(a, b, axes_a=axes_a, axes_b=axes_b)

"""Operators that take a part of a tensor, or reverse it: slices, flip, reverse_sequence.

They take tensors of any dtype and keep each element to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import ExprLike, Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.movement.indices import clamp_count
from refcomp.topi.movement.rearrange import (
    distinct_axes,
    one_operand_of,
    rearrange,
    some_axes,
)
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    require_constant,
    require_integer,
    require_rank,
)


def strided_slice(
    data: Tensor,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """Take the elements begin, begin + stride, ... before end along axes.

    The rules are those of a Python slice. A negative position counts from the end, and positions
    outside are moved to the nearest bound. If the stride is negative, elements are taken backwards.
    A large negative `end`, such as -2**63, then includes element 0.

    Args:
        data: a tensor of any dtype. The sliced axes have constant extents.
        begin: the first position for each axis.
        end: the position for each axis before which the slice ends.
        strides: the step for each axis, not 0; 1 if none are given.
        axes: the axes that are sliced; the first ones if none are given.

    Raises:
        UserError: a stride is 0, an axis does not exist or is named twice, the lengths of the lists
            differ, or a sliced extent is symbolic.

    Reference: ONNX Slice; TVM strided_slice.

    Example::

        >>> A = rc.placeholder((6,), "int32", name="A")
        >>> B = rc.topi.strided_slice(A, begin=[-1], end=[0], strides=[-2])
        >>> print(*rc.oracle.evaluate([B], {A: np.arange(6, dtype="int32")}))
        [5 3 1]
    """
    require_tensor(data, "strided_slice")
    steps = [1] * len(begin) if strides is None else list(strides)
    named = range(len(begin)) if axes is None else axes
    places = distinct_axes(tuple(named), data.ndim, "strided_slice")
    if not len(begin) == len(end) == len(steps) == len(places):
        raise UserError(
            f"strided_slice has {len(begin)} begins, {len(end)} ends, "
            f"{len(steps)} strides and {len(places)} axes",
            remedy="give one of each for every axis that is sliced",
        )
    if 0 in steps:
        raise UserError(
            "strided_slice has a stride of 0", remedy="use strides other than 0"
        )
    shape = list(extents(data))
    ranges = {}  # axis -> the positions that are taken
    for place, first, last, step in zip(places, begin, end, steps, strict=True):
        what = f"strided_slice: the extent of axis {place}"
        size = require_constant(shape[place], what)
        taken = range(*slice(first, last, step).indices(size))
        ranges[place] = taken
        shape[place] = len(taken)

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        whole = list(index)
        for place, taken in ranges.items():
            whole[place] = index[place] * taken.step + taken.start
        return whole

    return rearrange(data, shape, source, "strided_slice")


def _sample_strided_slice(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 4), draws.number_dtype())
    axes = some_axes(draws, data.ndim)
    far = draws.choice((3, 7, 2**31 - 1))
    attributes = {
        "begin": tuple(draws.integer(-far, far) for _ in axes),
        "end": tuple(draws.integer(-far, far) for _ in axes),
        "strides": tuple(draws.choice((1, 2, 3, -1, -2)) for _ in axes),
        "axes": axes,
    }
    if draws.flag():
        del attributes["axes"]
    if draws.flag():
        del attributes["strides"]
    return Sample((data,), attributes)


@meaning_of(strided_slice, sample=_sample_strided_slice, pattern="injective")
def strided_slice_numpy(
    data: Array,
    *,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Array:
    steps = [1] * len(begin) if strides is None else strides
    slices = [slice(None)] * data.ndim
    for k, axis in enumerate(range(len(begin)) if axes is None else axes):
        slices[axis] = slice(begin[k], end[k], steps[k])
    return data[tuple(slices)].copy()


def slice_like(
    data: Tensor, shape_like: Tensor, *, axes: Sequence[int] | None = None
) -> Tensor:
    """Take the first elements along axes, as many as another tensor has there.

    Args:
        data: a tensor of any dtype.
        shape_like: a tensor of any dtype whose extents are used; its elements are not read. None of
            its constant extents may exceed that of `data`.
        axes: the axes that are cut; all axes of `shape_like` if none are given. A negative axis
            counts from the end of `data`.

    Raises:
        UserError: an axis does not exist in one of the tensors, or an extent is too large.

    Reference: MXNet slice_like; TVM slice_like.

    Example::

        >>> A, B = rc.placeholder((4, 6), name="A"), rc.placeholder((2, 3), name="B")
        >>> rc.topi.slice_like(A, B, axes=[1]).shape
        (4, 3)
    """
    require_tensor(data, "slice_like")
    require_tensor(shape_like, "slice_like")
    given = tuple(range(shape_like.ndim)) if axes is None else tuple(axes)
    shape = list(extents(data))
    for place in distinct_axes(given, data.ndim, "slice_like"):
        normalize_axis(place, shape_like.ndim, "slice_like")
        wanted = require_constant(
            extents(shape_like)[place], f"slice_like: extent {place} of shape_like"
        )
        size = require_constant(shape[place], f"slice_like: extent {place} of data")
        if wanted > size:
            raise UserError(
                f"slice_like cannot take {wanted} of the {size} elements of axis {place}",
                remedy="name only axes along which shape_like is not longer",
                earlier=[data.declaration(), shape_like.declaration()],
            )
        shape[place] = wanted
    return rearrange(data, shape, lambda index: index, "slice_like")


def _sample_slice_like(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 4), draws.number_dtype())
    smaller = tuple(draws.integer(0, extent) for extent in data.shape)
    axes = some_axes(draws, data.ndim)
    if draws.flag():
        cut = smaller[: draws.integer(0, data.ndim)]
        return Sample((data, draws.array(cut)))
    return Sample((data, draws.array(smaller)), {"axes": axes})


@meaning_of(slice_like, sample=_sample_slice_like, pattern="injective")
def slice_like_numpy(
    data: Array, shape_like: Array, *, axes: Sequence[int] | None = None
) -> Array:
    slices = [slice(None)] * data.ndim
    for axis in range(shape_like.ndim) if axes is None else axes:
        slices[axis] = slice(shape_like.shape[axis])
    return data[tuple(slices)].copy()


def flip(data: Tensor, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Reverse the order of the elements along axes.

    Args:
        data: a tensor of any dtype.
        axis: the axes that are reversed; None for all.

    Raises:
        UserError: an axis does not exist, or is named twice.

    Reference: numpy.flip; TVM topi.flip.

    Example::

        >>> A = rc.placeholder((3,), "int32", name="A")
        >>> print(*rc.oracle.evaluate([rc.topi.flip(A)], {A: np.arange(3, dtype="int32")}))
        [2 1 0]
    """
    require_tensor(data, "flip")
    places = distinct_axes(axis, data.ndim, "flip")
    sizes = extents(data)

    def source(index: tuple[Expr, ...]) -> list[Expr]:
        whole = list(index)
        for place in places:
            whole[place] = sizes[place] - 1 - index[place]
        return whole

    return rearrange(data, sizes, source, "flip")


def _sample_flip(draws: Draws) -> Sample:
    sample = one_operand_of(draws)
    (data,) = sample.operands
    assert data is not None
    axes = some_axes(draws, data.ndim)
    axis = draws.choice((None, axes, axes[0] if axes else None))
    return Sample((data,), {} if axis is None else {"axis": axis})


@meaning_of(flip, sample=_sample_flip, pattern="injective")
def flip_numpy(data: Array, *, axis: int | Sequence[int] | None = None) -> Array:
    axes = axis if axis is None or isinstance(axis, int) else tuple(axis)
    return np.flip(data, axes).copy()


def reverse_sequence(
    data: Tensor, seq_lengths: Tensor, *, seq_axis: int = 1, batch_axis: int = 0
) -> Tensor:
    """Reverse the first elements of each sequence of a batch; the others stay.

    Args:
        data: a tensor of any dtype with two or more axes.
        seq_lengths: integers [batch]: the number of elements of each sequence that are reversed. A
            length below 0 counts as 0. One that is too large counts as the sequence's extent.
        seq_axis: the axis along which a sequence runs.
        batch_axis: the axis that numbers the sequences.

    Raises:
        UserError: an axis does not exist, both are the same, or `seq_lengths` is not a vector of
            integers with an element for each sequence.

    Reference: ONNX ReverseSequence; TVM reverse_sequence.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> L = rc.placeholder((2,), "int32", name="L")
        >>> B = rc.topi.reverse_sequence(A, L)
        >>> a = np.arange(6, dtype="int32").reshape(2, 3)
        >>> print(*rc.oracle.evaluate([B], {A: a, L: np.array([2, 3], "int32")}))
        [[1 0 2]
         [5 4 3]]
    """
    require_tensor(data, "reverse_sequence")
    require_integer(seq_lengths, "reverse_sequence")
    require_rank(seq_lengths, 1, "reverse_sequence", "seq_lengths")
    along = normalize_axis(seq_axis, data.ndim, "reverse_sequence")
    batch = normalize_axis(batch_axis, data.ndim, "reverse_sequence")
    if along == batch:
        raise UserError(
            f"reverse_sequence has axis {along} both for batches and along sequences",
            remedy="name two axes",
        )
    sizes = extents(data)
    require_extent(
        extents(seq_lengths)[0],
        sizes[batch],
        "reverse_sequence",
        "the number of seq_lengths",
        tensors=[seq_lengths, data],
    )

    def element(*index: Expr) -> Expr:
        i = index[along]
        length = clamp_count(seq_lengths[index[batch]], sizes[along])
        mirrored = maths.minimum(length - 1 - i, sizes[along] - 1)
        whole: list[ExprLike] = list(index)
        whole[along] = maths.select(i < length, maths.maximum(mirrored, 0), i)
        return data[tuple(whole)]

    return compute(sizes, element, name="reverse_sequence", tag=INJECTIVE)


def _sample_reverse_sequence(draws: Draws) -> Sample:
    data = draws.array(draws.shape(2, 4), draws.number_dtype())
    along, batch = draws.order(data.ndim)[:2]
    lengths = draws.array((data.shape[batch],), draws.integer_dtype())
    axes = {"seq_axis": along, "batch_axis": batch - data.ndim}
    return Sample((data, lengths), axes)


@meaning_of(reverse_sequence, sample=_sample_reverse_sequence, pattern="injective")
def reverse_sequence_numpy(
    data: Array, seq_lengths: Array, *, seq_axis: int = 1, batch_axis: int = 0
) -> Array:
    result = data.copy()
    sequences = np.moveaxis(result, (batch_axis, seq_axis), (0, 1))
    for sequence, given in zip(sequences, seq_lengths, strict=True):
        length = min(max(int(given), 0), len(sequence))
        sequence[:length] = sequence[:length][::-1].copy()
    return result

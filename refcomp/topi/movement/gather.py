"""Operators that read elements at indices that come at run time: take, gather and their kin.

Indices are integers of any dtype. One that is out of range is brought into range as the operator's
page says, so nothing outside is read. Along an axis without elements, the result is 0.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.extents import Extent, extents, is_same, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor, as_dim
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.movement.indices import (
    clamp_count,
    clamp_index,
    clamped_numpy,
    from_end,
    read_existing,
)
from refcomp.topi.movement.transform import reshape
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    normalize_axis,
    replace_entry,
    require_integer,
    require_rank,
)

_MODES = ("clip", "wrap")


def take(
    data: Tensor, indices: Tensor, *, axis: int | None = None, mode: str = "clip"
) -> Tensor:
    """Take slices of a tensor at indices along an axis.

    The mode clip moves an index to the nearest one that exists; each negative index becomes 0. The
    mode wrap takes the remainder, so that -1 is the last element. It agrees with ONNX Gather.

    Args:
        data: a tensor of any dtype.
        indices: integers of any shape. If the axis has no elements, the result is 0.
        axis: the axis along which slices are taken; None takes elements in row-major order.
        mode: clip or wrap.

    Returns:
        A tensor of the dtype of `data`. The shape of `indices` stands in place of the axis.

    Raises:
        UserError: the axis does not exist, `indices` are not integers, or the mode is unknown.

    Reference: numpy.take; ONNX Gather; TVM topi.take.

    Example::

        >>> A, I = rc.placeholder((3,), name="A"), rc.placeholder((4,), "int32", name="I")
        >>> B = rc.topi.take(A, I, axis=0, mode="wrap")
        >>> a, i = np.array([5, 6, 7], "float32"), np.array([0, -1, 3, 1], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, I: i}))
        [5. 7. 5. 6.]
    """
    require_choice(mode, _MODES, "take", "mode")
    return _take(data, indices, axis, mode == "wrap", "take")


def _take(
    data: Tensor, indices: Tensor, axis: int | None, wraps: bool, name: str
) -> Tensor:
    require_tensor(data, name)
    require_integer(indices, name)
    if axis is None:
        return _take(reshape(data, shape=(-1,)), indices, 0, wraps, name)
    place = normalize_axis(axis, data.ndim, name)
    sizes = extents(data)
    size = sizes[place]
    end = place + indices.ndim

    def element(*index: Expr) -> Expr:
        given = indices[index[place:end]]
        if not wraps:
            position = clamp_index(clamp_count(given, size), size)
        elif is_same(size, 0):
            position = as_dim(0)
        else:
            position = _wrapped(given, size)
        whole = (*index[:place], position, *index[end:])
        return read_existing(data, whole, [place])

    shape = (*sizes[:place], *extents(indices), *sizes[place + 1 :])
    return compute(shape, element, name=name, tag=INJECTIVE)


def _wrapped(index: Expr, size: Extent) -> Expr:
    """Return the remainder of an index of any integer dtype."""
    # An i64 does not hold each u64. A symbolic size may be 0; then nothing is read.
    wide = "uint64" if index.dtype.min_value == 0 else "int64"
    divisor = as_dim(size) if isinstance(size, int) else maths.maximum(size, 1)
    remainder = maths.floormod(index.astype(wide), divisor.astype(wide))
    return remainder.astype("int64")


def _sample_take(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    indices = draws.array(draws.shape(0, 2), draws.integer_dtype())
    attributes: dict[str, object] = {"mode": draws.choice(_MODES)}
    if data.ndim and draws.flag():
        attributes["axis"] = draws.axis(data.ndim)
    return Sample((data, indices), attributes)


@meaning_of(take, sample=_sample_take, pattern="injective")
def take_numpy(
    data: Array, indices: Array, *, axis: int | None = None, mode: str = "clip"
) -> Array:
    flat = data.reshape(-1) if axis is None else data
    place = (axis or 0) % flat.ndim
    size = flat.shape[place]
    if size == 0:
        shape = (*flat.shape[:place], *indices.shape, *flat.shape[place + 1 :])
        return np.zeros(shape, data.dtype)
    exact = indices.astype(object)
    wanted = exact % size if mode == "wrap" else np.clip(exact, 0, size - 1)
    return np.asarray(flat.take(np.asarray(wanted, np.int64), place), data.dtype)


def index_select(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Take slices of a tensor at a vector of indices along an axis.

    A negative index counts from the end. One that is still out of range is moved to the nearest.

    Args:
        data: a tensor of any dtype with one or more dimensions.
        indices: integers [count].
        axis: the axis along which slices are taken. If it has no elements, the result is 0.

    Returns:
        A tensor of the dtype of `data`, with `count` elements along the axis.

    Raises:
        UserError: the axis does not exist, or `indices` is not a vector of integers.

    Reference: torch.index_select.

    Example::

        >>> A, I = rc.placeholder((3,), name="A"), rc.placeholder((2,), "int32", name="I")
        >>> B = rc.topi.index_select(A, I)
        >>> a, i = np.array([5, 6, 7], "float32"), np.array([-1, 0], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, I: i}))
        [7. 5.]
    """
    require_tensor(data, "index_select")
    require_integer(indices, "index_select")
    require_rank(indices, 1, "index_select", "indices")
    place = normalize_axis(axis, data.ndim, "index_select")
    size = extents(data)[place]

    def element(*index: Expr) -> Expr:
        position = clamp_index(from_end(indices[index[place]], size), size)
        return read_existing(data, replace_entry(index, place, position), [place])

    shape = replace_entry(extents(data), place, extents(indices)[0])
    return compute(shape, element, name="index_select", tag=INJECTIVE)


def _sample_index_select(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 3), draws.number_dtype())
    indices = draws.array((draws.extent(0),), draws.integer_dtype())
    return Sample((data, indices), {"axis": draws.axis(data.ndim)})


@meaning_of(index_select, sample=_sample_index_select, pattern="injective")
def index_select_numpy(data: Array, indices: Array, *, axis: int = 0) -> Array:
    size = data.shape[axis]
    if not size:
        place = axis % data.ndim
        return np.zeros(replace_entry(data.shape, place, len(indices)), data.dtype)
    return data.take(clamped_numpy(indices, size), axis)


def embedding(indices: Tensor, weight: Tensor) -> Tensor:
    """Return the row of a table for each index.

    An index that is out of range is moved to the nearest row.

    Args:
        indices: integers of any shape.
        weight: [rows, columns] of any dtype. Without rows, the result is 0.

    Returns:
        A tensor [*shape of indices, columns] of the dtype of `weight`.

    Raises:
        UserError: `indices` are not integers, or `weight` is not a matrix.

    Reference: torch.nn.functional.embedding; MXNet Embedding.

    Example::

        >>> I, W = rc.placeholder((2,), "int32", name="I"), rc.placeholder((3, 2), name="W")
        >>> B = rc.topi.embedding(I, W)
        >>> w = np.arange(6, dtype="float32").reshape(3, 2)
        >>> print(*rc.oracle.evaluate([B], {I: np.array([2, 0], "int32"), W: w}))
        [[4. 5.]
         [0. 1.]]
    """
    require_rank(weight, 2, "embedding", "weight")
    return _take(weight, indices, 0, wraps=False, name="embedding")


def _sample_embedding(draws: Draws) -> Sample:
    indices = draws.array(draws.shape(0, 3), draws.integer_dtype())
    shape = (draws.extent(0), draws.extent(0))
    return Sample((indices, draws.array(shape, draws.number_dtype())))


@meaning_of(embedding, sample=_sample_embedding, pattern="injective")
def embedding_numpy(indices: Array, weight: Array) -> Array:
    if not len(weight):
        return np.zeros((*indices.shape, weight.shape[1]), weight.dtype)
    rows = np.clip(indices.astype(object), 0, len(weight) - 1)
    return weight[np.asarray(rows, np.int64)]


def gather(data: Tensor, indices: Tensor, *, axis: int) -> Tensor:
    """Take for each element of the result an element at an index along one axis.

    Element (i, j) of the result is data[indices[i, j], j] for axis 0. A negative index counts from
    the end. One that is still out of range is moved to the nearest.

    Args:
        data: a tensor of any dtype with one or more dimensions.
        indices: integers of the same rank. Their extents are at most those of `data`, except along
            the axis.
        axis: the axis that the indices count. If it has no elements, the result is 0.

    Returns:
        A tensor of the dtype of `data` and the shape of `indices`.

    Raises:
        UserError: a rank or extent does not fit, `indices` are not integers, or the axis does not
            exist.

    Reference: torch.gather; TVM topi.gather.

    Example::

        >>> A, I = rc.placeholder((2, 2), name="A"), rc.placeholder((2, 2), "int32", name="I")
        >>> B = rc.topi.gather(A, I, axis=1)
        >>> a, i = np.array([[1, 2], [3, 4]], "float32"), np.array([[0, 0], [1, 0]], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, I: i}))
        [[1. 1.]
         [4. 3.]]
    """
    return _gather(data, indices, axis, "gather")


def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    """Take for each element of the result an element at an index along one axis, by ONNX's name.

    It is `gather`, whose page says what becomes of indices, but the axis may be left out.

    Args:
        data: a tensor of any dtype with one or more dimensions.
        indices: integers of the same rank. Their extents are at most those of `data`, except along
            the axis.
        axis: the axis that the indices count.

    Raises:
        UserError: a rank or extent does not fit, `indices` are not integers, or the axis does not
            exist.

    Reference: ONNX GatherElements.

    Example::

        >>> A, I = rc.placeholder((3,), name="A"), rc.placeholder((2,), "int32", name="I")
        >>> B = rc.topi.gather_elements(A, I)
        >>> a, i = np.array([5, 6, 7], "float32"), np.array([-1, 1], "int32")
        >>> print(*rc.oracle.evaluate([B], {A: a, I: i}))
        [7. 6.]
    """
    return _gather(data, indices, axis, "gather_elements")


def _gather(data: Tensor, indices: Tensor, axis: int, name: str) -> Tensor:
    require_tensor(data, name)
    require_integer(indices, name)
    require_rank(indices, data.ndim, name, "indices")
    place = normalize_axis(axis, data.ndim, name)
    size = extents(data)[place]
    for other, (own, most) in enumerate(
        zip(extents(indices), extents(data), strict=True)
    ):
        is_shorter = isinstance(own, int) and isinstance(most, int) and own <= most
        if other != place and not is_shorter:
            what = f"extent {other} of indices"
            require_extent(own, most, name, what, tensors=[indices, data])

    def element(*index: Expr) -> Expr:
        position = clamp_index(from_end(indices[index], size), size)
        return read_existing(data, replace_entry(index, place, position), [place])

    return compute(extents(indices), element, name=name, tag=INJECTIVE)


def _sample_gather(draws: Draws) -> Sample:
    data = draws.array(draws.shape(1, 3), draws.number_dtype())
    axis = draws.axis(data.ndim)
    shape = [draws.choice((extent, draws.integer(0, extent))) for extent in data.shape]
    shape[axis] = draws.extent(0)
    indices = draws.array(shape, draws.integer_dtype())
    return Sample((data, indices), {"axis": axis})


def _meant(data: Array, indices: Array, axis: int) -> Array:
    size = data.shape[axis]
    if not size:
        return np.zeros(indices.shape, data.dtype)
    kept = [slice(extent) for extent in indices.shape]
    kept[axis] = slice(None)
    return np.take_along_axis(data[tuple(kept)], clamped_numpy(indices, size), axis)


@meaning_of(gather, sample=_sample_gather, pattern="injective")
def gather_numpy(data: Array, indices: Array, *, axis: int) -> Array:
    return _meant(data, indices, axis)


@meaning_of(gather_elements, sample=_sample_gather, pattern="injective")
def gather_elements_numpy(data: Array, indices: Array, *, axis: int = 0) -> Array:
    return _meant(data, indices, axis)

"""Maxima of windows with their places, and the way back.

Places are indices into all elements of the data in row-major order, as in ONNX.

Reference: ONNX MaxPool and MaxUnpool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.pooling.windows import (
    LAYOUTS,
    PoolWindows,
    check_numbers,
    make_windows,
    max_windows,
    of_array,
    pad_windows,
    sample_images,
    sample_windows,
    windows_numpy,
)
from refcomp.topi.shapes import Array, require_constant, require_rank
from refcomp.topi.tags import REDUCTION


def _rank_of(kernel: Sequence[int], operator: str) -> int:
    """Return the number of spatial axes. Raise UserError unless it is 1, 2 or 3."""
    if len(kernel) not in LAYOUTS:
        raise UserError(
            f"{operator} cannot have the kernel {tuple(kernel)}",
            remedy="give one, two or three numbers: one for each spatial axis",
        )
    return len(kernel)


def _channels_first(rank: int) -> str:
    return next(layout for layout, first in LAYOUTS[rank].items() if first == 2)


def flat_index(index: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """Return the row-major position of `index` in a tensor of these extents, as i64."""
    position = const(0, I64)
    for i, size in zip(index, sizes, strict=True):
        position = position * cast(I64, size) + cast(I64, i)
    return position


def places_of_maxima(data: Tensor, greatest: Tensor, windows: PoolWindows) -> Tensor:
    """Return the place of the first greatest element of each window; -1 without elements."""
    padded = pad_windows(data, windows, maths.min_value(data.dtype))
    steps = windows.steps()
    beyond = maths.max_value(I64)

    def candidate(*index: Expr) -> Expr:
        source = windows.source(index, steps)
        value = padded[source]
        own = list(source)
        # `!=` finds a NaN, which equals nothing.
        conditions = [maths.any(value == greatest[index], value != value)]
        for k, before in enumerate(windows.before):
            axis = windows.axis + k
            own[axis] = source[axis] - before
            conditions += [own[axis] >= 0, own[axis] < data.shape[axis]]
        place = flat_index(own, data.shape)
        found = maths.select(maths.all(*conditions), place, beyond)
        return reducer.min(found, axis=steps)

    first = compute(greatest.shape, candidate, name="first", tag=REDUCTION)

    def place(*index: Expr) -> Expr:
        found = first[index]
        return maths.select(found == beyond, const(-1, I64), found)

    return compute(greatest.shape, place, name="places", tag=INJECTIVE)


def max_pool_with_indices(
    data: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> list[Tensor]:
    """Return the maximum of each window, and the place of its first greatest element.

    A NaN is greater than all numbers. Padding is never the maximum. A window of nothing but padding
    gives minus infinity, or the least integer, and the place -1.

    Args:
        data: [n, c, ...] with one to three spatial axes, of any numeric dtype.
        kernel: the extents of a window, with a number for each spatial axis.
        strides: elements along each axis, from one window to the next.
        padding: elements added at the beginnings, then at the ends, each less than a window.
        dilation: elements along each axis, from one element of a window to the next.
        ceil_mode: True for a last window that reaches beyond the padding, if it starts before it.

    Returns:
        The maxima, of the dtype of `data`, and their places in int64. A place is an index into all
        elements of `data` in row-major order.

    Raises:
        UserError: an argument is not as described, or a window does not fit in the data.

    Reference: ONNX MaxPool.

    Example::

        >>> X = rc.placeholder((1, 1, 4), name="X")
        >>> how = {"kernel": (2,), "strides": (2,), "padding": (0, 0), "dilation": (1,)}
        >>> outputs = rc.topi.max_pool_with_indices(X, **how)
        >>> found = rc.oracle.evaluate(outputs, {X: np.array([[[5, 1, 2, 7]]], "float32")})
        >>> [array.ravel().tolist() for array in found]
        [[5.0, 7.0], [0, 3]]
    """
    operator = "max_pool_with_indices"
    rank = _rank_of(kernel, operator)
    windows = make_windows(
        operator,
        data,
        rank=rank,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilation=dilation,
        layout=_channels_first(rank),
        ceil_mode=ceil_mode,
    )
    greatest = max_windows(data, windows)
    return [greatest, places_of_maxima(data, greatest, windows)]


def _sample_max_pool_with_indices(draws: Draws) -> Sample:
    rank = draws.integer(1, 3)
    attributes = sample_windows(draws, rank)
    attributes["layout"] = _channels_first(rank)
    data = sample_images(draws, attributes, draws.number_dtype())
    del attributes["layout"]
    return Sample((data,), attributes)


@meaning_of(
    max_pool_with_indices, pattern="opaque", sample=_sample_max_pool_with_indices
)
def max_pool_with_indices_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
) -> list[Array]:
    layout = _channels_first(len(kernel))
    windows = of_array(data, kernel, strides, padding, dilation, layout, ceil_mode)
    is_float = data.dtype.kind not in "iu"  # bfloat16 is of kind V
    least = -np.inf if is_float else np.iinfo(data.dtype).min
    values = np.stack(windows_numpy(data, windows, least))
    greatest = np.maximum.reduce(values)
    own = np.arange(data.size).reshape(data.shape)
    places = np.stack(windows_numpy(own, windows, -1))
    is_greatest = (values == greatest) | (values != values)
    first = np.argmax(is_greatest & (places >= 0), axis=0)
    return [greatest, np.take_along_axis(places, first[None], axis=0)[0]]


def reduce_covering(
    windows: PoolWindows,
    counts: Sequence[Extent],
    index: Sequence[Expr],
    term: Callable[[tuple[Expr, ...]], Expr],
    otherwise: Expr,
    reduction: Callable[..., Expr],
) -> Expr:
    """Return the reduction of term(window) over the windows that cover an element.

    Args:
        windows: the windows, without dilation.
        counts: the numbers of windows along the spatial axes.
        index: the index of the element.
        term: makes the value of the window with this index.
        otherwise: the value of a window that does not exist.
        reduction: reduces over axes, as `refcomp.te.reducer.sum` does.
    """
    steps = []
    source = list(index)
    conditions = []
    for k, kernel in enumerate(windows.kernel):
        stride = windows.strides[k]
        step = reduce_axis(-(-kernel // stride), f"w{k}")
        steps.append(step)
        place = index[windows.axis + k] + windows.before[k]
        window = maths.floordiv(place, stride) - step.var
        source[windows.axis + k] = window
        conditions += [
            window >= 0,
            window < counts[k],
            place - window * stride < kernel,
        ]
    value = maths.if_then_else(maths.all(*conditions), term(tuple(source)), otherwise)
    return reduction(value, axis=steps)


def max_unpool(
    data: Tensor,
    indices: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return a tensor with the maxima of windows at their places, and 0 elsewhere.

    If several windows name a place, the greatest value counts; NaN is greater than all numbers. An
    index that does not lie in its own window is ignored.

    Args:
        data: [n, c, ...] with one to three spatial axes, of any numeric dtype.
        indices: integers of the shape of `data`: the place of each element in the result, as an
            index into all its elements in row-major order.
        kernel: the extents of a window, with a number for each spatial axis.
        strides: elements along each axis, from one window to the next.
        padding: elements that were added at the beginnings, then at the ends.
        output_size: the spatial extents of the result; left out, the least that have all windows:
            (count - 1) * stride + kernel - padding.

    Returns:
        A tensor of the rank and dtype of `data`.

    Raises:
        UserError: an argument is not as described, or a spatial extent is symbolic.

    Reference: ONNX MaxUnpool; PyTorch, torch.nn.MaxUnpool2d.

    Example::

        >>> X, I = rc.placeholder((1, 1, 2), name="X"), rc.placeholder((1, 1, 2), "int64", name="I")
        >>> Y = rc.topi.max_unpool(X, I, kernel=(2,), strides=(2,), padding=(0, 0))
        >>> x, i = np.array([[[5, 7]]], "float32"), np.array([[[0, 3]]])
        >>> rc.oracle.evaluate([Y], {X: x, I: i})[0].tolist()
        [[[5.0, 0.0, 0.0, 7.0]]]
    """
    windows, counts, sizes = _unpooling(data, kernel, strides, padding, output_size)
    _check_indices(data, indices)
    shape = (*extents(data)[:2], *sizes)
    whole = tuple(
        data.shape[k] if k < 2 else const(size, "int32") for k, size in enumerate(shape)
    )

    def covering(
        term: Callable[[tuple[Expr, ...]], Expr], otherwise: Expr, name: str
    ) -> Tensor:
        """Return the maximum of `term` over the windows that name each place."""

        def element(*index: Expr) -> Expr:
            own = flat_index(index, whole)

            def named(window: tuple[Expr, ...]) -> Expr:
                is_named = indices[window].astype(I64) == own
                return maths.select(is_named, term(window), otherwise)

            return reduce_covering(
                windows, counts, index, named, otherwise, reducer.max
            )

        return compute(shape, element, name=name, tag=REDUCTION)

    zero = const(0, data.dtype)
    is_named = covering(lambda window: const(1, "int32"), const(0, "int32"), "is_named")
    least = maths.min_value(data.dtype)
    greatest = covering(lambda window: data[window], least, "greatest")
    return compute(
        shape,
        lambda *index: maths.select(is_named[index] > 0, greatest[index], zero),
        name="max_unpool",
        tag=INJECTIVE,
    )


def _unpooling(
    data: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None,
) -> tuple[PoolWindows, tuple[int, ...], tuple[int, ...]]:
    """Return the windows, their numbers along the spatial axes, and the extents of the result."""
    operator = "max_unpool"
    rank = _rank_of(kernel, operator)
    require_rank(data, rank + 2, operator, "the data")
    check_numbers(kernel, rank, operator, "kernel")
    check_numbers(strides, rank, operator, "strides")
    if len(padding) != 2 * rank or any(added < 0 for added in padding):
        raise UserError(
            f"{operator} cannot use the padding {tuple(padding)}",
            remedy=f"give {2 * rank} numbers >= 0: at the beginnings, then at the ends",
        )
    counts = tuple(
        require_constant(size, f"{operator}: a spatial extent")
        for size in extents(data)[2:]
    )
    sizes = _whole_extents(counts, kernel, strides, padding)
    if output_size is not None:
        sizes = check_numbers(output_size, rank, operator, "output size")
    if any(size < 0 for size in sizes):
        raise UserError(
            f"{operator} cannot remove the padding {tuple(padding)}",
            remedy="give a padding that is less than the windows",
        )
    none = (0,) * rank
    windows = PoolWindows(
        operator,
        axis=2,
        kernel=tuple(kernel),
        strides=tuple(strides),
        dilation=(1,) * rank,
        before=tuple(padding[:rank]),
        after=tuple(padding[rank:]),
        beyond=none,
    )
    return windows, counts, sizes


def _whole_extents(
    counts: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
) -> tuple[int, ...]:
    rank = len(kernel)
    return tuple(
        (counts[k] - 1) * strides[k] + kernel[k] - padding[k] - padding[rank + k]
        for k in range(rank)
    )


def _check_indices(data: Tensor, indices: Tensor) -> None:
    require_tensor(indices, "max_unpool")
    if indices.dtype.is_float or indices.dtype.is_bool:
        raise UserError(
            f"max_unpool takes integers as indices, not {indices.dtype}",
            remedy="give a tensor of int64",
            earlier=[indices.declaration()],
        )
    require_rank(indices, data.ndim, "max_unpool", "indices")
    for actual, expected in zip(extents(indices), extents(data), strict=True):
        require_extent(
            actual, expected, "max_unpool", "indices", tensors=(data, indices)
        )


def _sample_max_unpool(draws: Draws) -> Sample:
    rank = draws.integer(1, 2)
    kernel = tuple(draws.integer(1, 3) for _ in range(rank))
    strides = tuple(draws.integer(1, 3) for _ in range(rank))
    counts = tuple(draws.integer(1, 3) for _ in range(rank))
    shape = (draws.integer(0, 2), draws.integer(1, 2), *counts)
    padding = tuple(draws.integer(0, extent - 1) // 2 for extent in (*kernel, *kernel))
    sizes = _whole_extents(counts, kernel, strides, padding)
    count = int(np.prod((*shape[:2], *sizes)))
    attributes: dict[str, object] = {
        "kernel": kernel,
        "strides": strides,
        "padding": padding,
    }
    if draws.flag():
        attributes["output_size"] = tuple(size + draws.integer(1, 2) for size in sizes)
    indices = draws.integers(shape, -1, max(0, count), "int64")
    return Sample((draws.array(shape, draws.number_dtype()), indices), attributes)


@meaning_of(max_unpool, sample=_sample_max_unpool)
def max_unpool_numpy(
    data: Array,
    indices: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None = None,
) -> Array:
    sizes = _whole_extents(data.shape[2:], kernel, strides, padding)
    shape = (*data.shape[:2], *(sizes if output_size is None else output_size))
    result = np.zeros(shape, data.dtype)
    is_named = np.zeros(shape, np.bool_)
    for place in np.ndindex(*data.shape):
        if not 0 <= indices[place] < result.size:
            continue
        target = np.unravel_index(indices[place], shape)
        starts = np.multiply(place[2:], strides) - padding[: len(kernel)]
        offsets = np.array(target[2:]) - starts
        if target[:2] != place[:2] or np.any((offsets < 0) | (offsets >= kernel)):
            continue
        value = data[place]
        result[target] = (
            np.maximum(result[target], value) if is_named[target] else value
        )
        is_named[target] = True
    return result

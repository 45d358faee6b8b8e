"""Windows of a tensor as columns, and columns added up to a tensor again.

Reference: ONNX Col2Im; torch.nn.Unfold and Fold.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.tags import REDUCTION


@dataclass(frozen=True, slots=True)
class _ColumnWindows:
    """The windows of an image, and the elements of each. Each sequence is of the spatial axes.

    Attributes:
        image: extents of the image.
        kernel: extents of a window.
        strides: elements from one window to the next.
        padding: elements added before each axis, then after each.
        dilation: elements from one element of a window to the next.
    """

    image: Sequence[int]
    kernel: Sequence[int]
    strides: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    @property
    def rank(self) -> int:
        """Return the number of spatial axes."""
        return len(self.image)

    @property
    def counts(self) -> list[int]:
        """Return the number of windows along each axis."""
        counts = []
        for axis in range(self.rank):
            count = window_extent(
                self.image[axis],
                kernel=self.kernel[axis],
                stride=self.strides[axis],
                dilation=self.dilation[axis],
                before=self.padding[axis],
                after=self.padding[axis + self.rank],
            )
            counts.append(require_constant(count, "the number of windows"))
        return counts


def _windows_of(
    operator: str,
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> _ColumnWindows:
    """Return the windows, with defaults for what is empty. Raise UserError for wrong numbers."""
    rank = len(image)
    windows = _ColumnWindows(
        image=image,
        kernel=kernel,
        strides=tuple(strides) or (1,) * rank,
        padding=tuple(padding) or (0,) * (2 * rank),
        dilation=tuple(dilation) or (1,) * rank,
    )
    for what, numbers in (
        ("kernel", windows.kernel),
        ("strides", windows.strides),
        ("dilation", windows.dilation),
    ):
        if len(numbers) != rank or any(number < 1 for number in numbers):
            raise UserError(
                f"{operator} cannot have the {what} {tuple(numbers)}",
                remedy=f"give {rank} numbers >= 1, one for each spatial axis",
            )
    if len(windows.padding) != 2 * rank or any(p < 0 for p in windows.padding):
        raise UserError(
            f"{operator} cannot use the padding {tuple(windows.padding)}",
            remedy=f"give {2 * rank} numbers >= 0: before each axis, then after each",
        )
    return windows


def im2col(
    data: Tensor,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (),
    padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
) -> Tensor:
    """Return each window of a tensor as a column.

    Row r of column w holds the element at channel and place r, in row-major order, of window w.
    Elements outside of the tensor are 0. All others are moved to the bit.

    Args:
        data: [n, c, ...] of any dtype, with one or more spatial axes of constant extents.
        kernel: extents of a window.
        strides: elements from one window to the next; by default 1.
        padding: elements added before each axis, then after each; by default 0.
        dilation: elements from one element of a window to the next; by default 1.

    Returns:
        A tensor [n, c * product of kernel, number of windows] of the dtype of `data`.

    Raises:
        UserError: an argument is not as described, or a window does not fit.

    Reference: torch.nn.Unfold. `col2im` adds the columns up again.

    Example::

        >>> A = rc.placeholder((1, 1, 4), "int32", name="A")
        >>> B = rc.topi.im2col(A, kernel=(2,))
        >>> print(rc.oracle.evaluate([B], {A: np.arange(4, dtype="int32").reshape(1, 1, 4)})[0][0])
        [[0 1 2]
         [1 2 3]]
    """
    require_tensor(data, "im2col")
    if data.ndim < 3:
        raise UserError(
            f"im2col takes a batch, channels and spatial axes, not {data.ndim} dimensions",
            remedy="give a tensor [n, c, ...]",
            earlier=[data.declaration()],
        )
    batch, channels = extents(data)[:2]
    image = [require_constant(size, "a spatial extent") for size in extents(data)[2:]]
    windows = _windows_of("im2col", image, kernel, strides, padding, dilation)
    places = prod(kernel)

    def element(n: Expr, row: Expr, window: Expr) -> Expr:
        offsets = _split(maths.floormod(row, places), kernel)
        starts = _split(window, windows.counts)
        source: list[Expr] = []
        inside: list[Expr] = []
        for axis in range(windows.rank):
            place = starts[axis] * windows.strides[axis] - windows.padding[axis]
            place = place + offsets[axis] * windows.dilation[axis]
            source.append(place)
            inside += [place >= 0, place < image[axis]]
        value = data[(n, maths.floordiv(row, places), *source)]
        if not any(windows.padding):
            return value
        # `if_then_else`, not `select`: elements outside must not be read.
        return maths.if_then_else(maths.all(*inside), value, const(0, data.dtype))

    shape = (batch, channels * places, prod(windows.counts))
    return compute(shape, element, name="im2col", tag=INJECTIVE)


def _split(position: Expr, shape: Sequence[int]) -> list[Expr]:
    """Return the index of a row-major position."""
    index: list[Expr] = []
    for axis in range(len(shape)):
        quotient = maths.floordiv(position, prod(shape[axis + 1 :]))
        index.append(maths.floormod(quotient, shape[axis]) if axis else quotient)
    return index


def _sample_windows(draws: Draws) -> tuple[list[int], dict[str, tuple[int, ...]]]:
    """Return extents of an image, and windows that fit in it."""
    rank = draws.integer(1, 2)
    kernel = tuple(draws.integer(1, 3) for _ in range(rank))
    dilation = tuple(draws.integer(1, 2) for _ in range(rank))
    image = [
        d * (k - 1) + 1 + draws.integer(0, 2)
        for k, d in zip(kernel, dilation, strict=True)
    ]
    options = {
        "strides": tuple(draws.integer(1, 2) for _ in range(rank)),
        "padding": tuple(draws.integer(0, 2) for _ in range(2 * rank)),
        "dilation": dilation,
        "kernel": kernel,
    }
    return image, options


def _sample_im2col(draws: Draws) -> Sample:
    image, options = _sample_windows(draws)
    shape = (draws.extent(0), draws.integer(1, 2), *image)
    return Sample((draws.array(shape, draws.number_dtype()),), options)


@meaning_of(im2col, sample=_sample_im2col, pattern="injective")
def im2col_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int] = (),
    padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
) -> Array:
    windows = _windows_of("im2col", data.shape[2:], kernel, strides, padding, dilation)
    padded = _padded_numpy(data, windows)
    slices = [padded[(slice(None), slice(None), *steps)] for steps in _steps(windows)]
    columns = np.stack(slices, axis=2)
    batch, channels = data.shape[:2]
    shape = (batch, channels * prod(kernel), prod(windows.counts))
    return np.asarray(columns.reshape(shape))


def _padded_numpy(data: Array, windows: _ColumnWindows) -> Array:
    before = windows.padding[: windows.rank]
    after = windows.padding[windows.rank :]
    widths = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    shape = [n + sum(width) for n, width in zip(data.shape, widths, strict=True)]
    padded = np.zeros(shape, data.dtype)
    inner = tuple(
        slice(width[0], width[0] + n)
        for n, width in zip(data.shape, widths, strict=True)
    )
    padded[inner] = data
    return padded


def _steps(windows: _ColumnWindows) -> list[tuple[slice, ...]]:
    """Return for each place in a window, where that place is in all windows."""
    found = []
    for place in itertools.product(*map(range, windows.kernel)):
        steps = []
        for axis, count in enumerate(windows.counts):
            begin = place[axis] * windows.dilation[axis]
            end = begin + (count - 1) * windows.strides[axis] + 1
            steps.append(slice(begin, end, windows.strides[axis]))
        found.append(tuple(steps))
    return found


def col2im(
    data: Tensor,
    *,
    image_shape: Sequence[int],
    block_shape: Sequence[int],
    strides: Sequence[int] = (),
    padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
) -> Tensor:
    """Add columns up to the tensor whose windows they are: the adjoint of `im2col`.

    An element of the result is the sum of the elements of all columns that stand for its place. It
    is 0 where no window has that place. Sums are rounded in any order; integers wrap. NaN and
    infinity propagate.

    Args:
        data: [n, c * product of block_shape, number of windows] of any numeric dtype. The last two
            extents are constant.
        image_shape: the spatial extents of the result, each at least 1.
        block_shape: the extents of a window.
        strides: elements from one window to the next; by default 1.
        padding: elements before each axis, then after each, that are left out; by default 0.
        dilation: elements from one element of a window to the next; by default 1.

    Returns:
        A tensor [n, c, *image_shape] of the dtype of `data`.

    Raises:
        UserError: an argument is not as described, or a window does not fit.

    Reference: ONNX Col2Im; torch.nn.Fold.

    Example::

        >>> A = rc.placeholder((1, 2, 3), "int32", name="A")
        >>> B = rc.topi.col2im(A, image_shape=(4,), block_shape=(2,))
        >>> print(*rc.oracle.evaluate([B], {A: np.ones((1, 2, 3), "int32")}))
        [[[1 2 2 1]]]
    """
    require_rank(data, 3, "col2im", "the data")
    if not image_shape or any(extent < 1 for extent in image_shape):
        raise UserError(
            f"col2im cannot make an image of the shape {tuple(image_shape)}",
            remedy="give a number >= 1 for each spatial axis",
        )
    windows = _windows_of(
        "col2im", image_shape, block_shape, strides, padding, dilation
    )
    batch = extents(data)[0]
    rows = require_constant(extents(data)[1], "the number of rows of col2im")
    places = prod(block_shape)
    if rows % places:
        raise UserError(
            f"col2im cannot divide {rows} rows into channels of {places} places",
            remedy="give a multiple of the product of `block_shape`",
            earlier=[data.declaration()],
        )
    require_extent(
        extents(data)[2],
        prod(windows.counts),
        "col2im",
        "the number of columns",
        tensors=(data,),
    )
    steps = [reduce_axis(extent, f"k{axis}") for axis, extent in enumerate(block_shape)]

    def total(n: Expr, channel: Expr, *place: Expr) -> Expr:
        row = channel
        window: Expr = const(0, "int64")
        conditions: list[Expr] = []
        for axis, step in enumerate(steps):
            row = row * block_shape[axis] + step.var
            moved = (
                place[axis] + windows.padding[axis] - step.var * windows.dilation[axis]
            )
            stride = windows.strides[axis]
            number = maths.floordiv(moved, stride)
            count = windows.counts[axis]
            conditions += [number >= 0, number < count]
            if stride > 1:
                conditions.append(maths.floormod(moved, stride).equal(0))
            window = window * count + number
        return reducer.sum(
            data[n, row, window], axis=steps, where=maths.all(*conditions)
        )

    shape: list[Extent] = [batch, rows // places, *image_shape]
    return compute(shape, total, name="col2im", tag=REDUCTION)


def _sample_col2im(draws: Draws) -> Sample:
    image, options = _sample_windows(draws)
    windows = _windows_of("col2im", image, *_in_order(options))
    rows = draws.integer(1, 2) * prod(windows.kernel)
    data = draws.array(
        (draws.extent(0), rows, prod(windows.counts)), draws.number_dtype()
    )
    options["block_shape"] = options.pop("kernel")
    return Sample((data,), {**options, "image_shape": tuple(image)})


def _in_order(options: dict[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [options[name] for name in ("kernel", "strides", "padding", "dilation")]


@meaning_of(col2im, sample=_sample_col2im)
def col2im_numpy(
    data: Array,
    *,
    image_shape: Sequence[int],
    block_shape: Sequence[int],
    strides: Sequence[int] = (),
    padding: Sequence[int] = (),
    dilation: Sequence[int] = (),
) -> Array:
    windows = _windows_of(
        "col2im", image_shape, block_shape, strides, padding, dilation
    )
    wide = widen(data)
    batch, rows, _ = data.shape
    places = prod(block_shape)
    columns = wide.reshape(batch, rows // places, places, *windows.counts)
    before = windows.padding[: windows.rank]
    after = windows.padding[windows.rank :]
    padded = [n + p + q for n, p, q in zip(image_shape, before, after, strict=True)]
    total = np.zeros((batch, rows // places, *padded), wide.dtype)
    for place, steps in enumerate(_steps(windows)):
        total[(slice(None), slice(None), *steps)] += columns[:, :, place]
    inner = [slice(p, p + n) for n, p in zip(image_shape, before, strict=True)]
    image = total[(slice(None), slice(None), *inner)]
    return image.astype(data.dtype)

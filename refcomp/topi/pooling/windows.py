"""Windows over one to three spatial axes, which the poolings share.

Data is [n, c, ...] in the layouts NCW, NCHW and NCDHW, or [n, ..., c] in NWC, NHWC and NDHWC. The
layout NCHWc has blocks of channels: [n, channels / block, h, w, block]. In a tuple, each number
belongs to a spatial axis, in their order. Padding has two numbers for each axis: first all at the
beginnings, then all at the ends, as in ONNX.

Reference: ONNX MaxPool, AveragePool and LpPool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from refcomp.foundation.dtype import DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import IterVar, Tensor
from refcomp.topi.draws import Draws
from refcomp.topi.normalization.moments import rounded, sum_dtype
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_rank,
    widen,
    window_extent,
)
from refcomp.topi.tags import PAD, REDUCTION

# Number of spatial axes -> layout -> the first spatial axis.
LAYOUTS = {
    1: {"NCW": 2, "NWC": 1},
    2: {"NCHW": 2, "NHWC": 1, "NCHWc": 2},
    3: {"NCDHW": 2, "NDHWC": 1},
}


def first_spatial_axis(layout: str, rank: int, operator: str) -> int:
    """Return the first of the `rank` spatial axes. Raise UserError for an unknown layout."""
    known = LAYOUTS[rank]
    if layout not in known:
        raise UserError(
            f"{operator} does not know the layout {layout!r}",
            remedy=f"use {' or '.join(known)}",
        )
    return known[layout]


def spatial_rank(layout: str) -> int:
    """Return the number of spatial axes of a layout."""
    return sum(letter in "DHW" for letter in layout)


@dataclass(frozen=True, slots=True)
class PoolWindows:
    """The windows of one pooling. Each tuple has a number for each spatial axis, in elements.

    Attributes:
        operator: the name of the operator, for messages.
        axis: the first spatial axis of the data.
        kernel: the extents of a window.
        strides: from one window to the next.
        dilation: from one element of a window to the next.
        before: padding before the first element.
        after: padding after the last element.
        beyond: how far the last window reaches beyond the padding, with ceil_mode.
    """

    operator: str
    axis: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    beyond: tuple[int, ...]

    @property
    def has_padding(self) -> bool:
        """Return True if a window may hold elements outside of the data."""
        return any((*self.before, *self.after, *self.beyond))

    def output_shape(self, shape: Sequence[Extent]) -> list[Extent]:
        """Return the shape of the result for data of `shape`."""
        result = list(shape)
        for k, kernel in enumerate(self.kernel):
            result[self.axis + k] = window_extent(
                shape[self.axis + k],
                kernel=kernel,
                stride=self.strides[k],
                dilation=self.dilation[k],
                before=self.before[k],
                after=self.after[k] + self.beyond[k],
            )
        return result

    def steps(self) -> list[IterVar]:
        """Return reduction axes over the elements of a window."""
        return [reduce_axis(size, f"r{k}") for k, size in enumerate(self.kernel)]

    def source(
        self, index: Sequence[Expr], steps: Sequence[IterVar]
    ) -> tuple[Expr, ...]:
        """Return the index of element `steps` of window `index`, in the padded data."""
        source = list(index)
        for k, step in enumerate(steps):
            start = index[self.axis + k] * self.strides[k]
            source[self.axis + k] = start + step.var * self.dilation[k]
        return tuple(source)

    def count(self, data: Tensor, index: Sequence[Expr], with_padding: bool) -> Expr:
        """Return the number of elements of window `index`, without those beyond the padding."""
        total: Expr | None = None
        for k in range(len(self.kernel)):
            found = self._count_along(data, k, index[self.axis + k], with_padding)
            total = found if total is None else total * found
        assert total is not None
        return total

    def _count_along(
        self, data: Tensor, k: int, position: Expr, with_padding: bool
    ) -> Expr:
        start = position * self.strides[k] - self.before[k]
        begin = -self.before[k] if with_padding else 0
        end = data.shape[self.axis + k] + (self.after[k] if with_padding else 0)
        # The elements of a window that lie before the first one, and before the end.
        skipped = _quotient_up(const(begin, start.dtype) - start, self.dilation[k])
        reached = _quotient_up(end - start, self.dilation[k])
        first = maths.maximum(skipped, const(0, skipped.dtype))
        count = maths.minimum(reached, const(self.kernel[k], reached.dtype)) - first
        # Only a window that lies in the padding may end before its first element.
        if with_padding or max(self.before[k], self.after[k]) < _reach(self, k):
            return count
        return maths.maximum(count, const(0, count.dtype))


def _quotient_up(dividend: Expr, divisor: int) -> Expr:
    if divisor == 1:
        return dividend
    return maths.floordiv(dividend + (divisor - 1), divisor)


def check_numbers(
    value: Sequence[int], count: int, operator: str, what: str
) -> tuple[int, ...]:
    """Return `value` as a tuple. Raise UserError unless it is `count` numbers >= 1."""
    if len(value) != count or any(v < 1 for v in value):
        raise UserError(
            f"{operator} cannot have the {what} {tuple(value)}",
            remedy=f"give a number >= 1 for each spatial axis: {count}",
        )
    return tuple(value)


def make_windows(
    operator: str,
    data: Tensor,
    *,
    rank: int,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    layout: str,
    ceil_mode: bool = False,
    may_be_empty: bool = False,
) -> PoolWindows:
    """Return the windows of a pooling over `rank` spatial axes.

    With `may_be_empty`, padding may be as large as a window or larger.

    Raises:
        UserError: an argument is ill-formed, or a window would hold only padding.
    """
    axis = first_spatial_axis(layout, rank, operator)
    require_rank(data, len(layout), operator, "the data")
    if len(padding) != 2 * rank or any(added < 0 for added in padding):
        raise UserError(
            f"{operator} cannot use the padding {tuple(padding)}",
            remedy=f"give {2 * rank} numbers >= 0: at the beginnings, then at the ends",
        )
    windows = PoolWindows(
        operator,
        axis=axis,
        kernel=check_numbers(kernel, rank, operator, "kernel"),
        strides=check_numbers(strides, rank, operator, "strides"),
        dilation=check_numbers(dilation, rank, operator, "dilation"),
        before=tuple(padding[:rank]),
        after=tuple(padding[rank:]),
        beyond=(0,) * rank,
    )
    for k, added in enumerate(padding):
        if added >= _reach(windows, k % rank) and not may_be_empty:
            raise UserError(
                f"{operator} cannot pad by {tuple(padding)}: a window would hold only padding",
                remedy="pad each side by less than the dilated kernel's extent",
            )
    if not ceil_mode:
        return windows
    sizes = [
        require_constant(size, f"{operator} with ceil_mode: a spatial extent")
        for size in extents(data)[windows.axis : windows.axis + rank]
    ]
    beyond = tuple(_beyond(windows, k, size) for k, size in enumerate(sizes))
    return replace(windows, beyond=beyond)


def _reach(windows: PoolWindows, k: int) -> int:
    """Return the extent of a dilated window."""
    return (windows.kernel[k] - 1) * windows.dilation[k] + 1


def _beyond(windows: PoolWindows, k: int, size: int) -> int:
    """Return the elements beyond the padding that a last, incomplete window needs; 0 without one.

    It is added only if it starts in the data or in the padding before it.
    """
    stride = windows.strides[k]
    last_start = size + windows.before[k] + windows.after[k] - _reach(windows, k)
    rest = last_start % stride
    next_start = last_start - rest + stride
    if last_start < 0 or rest == 0 or next_start >= size + windows.before[k]:
        return 0
    return stride - rest


def pad_windows(data: Tensor, windows: PoolWindows, value: Expr) -> Tensor:
    """Return `data` with `value` wherever a window reaches beyond it."""
    if not windows.has_padding:
        return data
    rank = len(windows.kernel)
    shape: list[Extent] = list(extents(data))
    for k in range(rank):
        added = windows.before[k] + windows.after[k] + windows.beyond[k]
        shape[windows.axis + k] = shape[windows.axis + k] + added

    def element(*index: Expr) -> Expr:
        source = list(index)
        inside = []
        for k in range(rank):
            axis = windows.axis + k
            low = windows.before[k]
            # Without a border on one side, no index lies beyond that side.
            if low:
                source[axis] = index[axis] - low
                inside.append(index[axis] >= low)
            if windows.after[k] or windows.beyond[k]:
                inside.append(index[axis] < data.shape[axis] + low)
        # `if_then_else`, not `select`: elements outside must not be read.
        return maths.if_then_else(maths.all(*inside), data[tuple(source)], value)

    return compute(shape, element, name="pad", tag=PAD)


def reduce_windows(
    data: Tensor,
    windows: PoolWindows,
    reduction: Callable[..., Expr],
    padding_value: Expr,
    term: Callable[[Expr], Expr] = lambda value: value,
) -> Tensor:
    """Return the reduction of term(element) over each window."""
    padded = pad_windows(data, windows, padding_value)
    steps = windows.steps()

    def element(*index: Expr) -> Expr:
        return reduction(term(padded[windows.source(index, steps)]), axis=steps)

    shape = windows.output_shape(extents(data))
    return compute(shape, element, name=windows.operator, tag=REDUCTION)


def max_windows(data: Tensor, windows: PoolWindows) -> Tensor:
    """Return the maximum of each window. Padding is never the maximum."""
    return reduce_windows(data, windows, reducer.max, maths.min_value(data.dtype))


def average_windows(data: Tensor, windows: PoolWindows, with_padding: bool) -> Tensor:
    """Return the mean of each window; NaN if it has no elements.

    With `with_padding`, padding counts as elements of the value 0.
    """
    total = reduce_windows(data, windows, reducer.sum, const(0, data.dtype))
    whole = const(float(math.prod(windows.kernel)), data.dtype)

    def mean(*index: Expr) -> Expr:
        is_whole = with_padding and not any(windows.beyond)
        if is_whole or not windows.has_padding:
            return total[index] / whole
        count = windows.count(data, index, with_padding)
        return total[index] / cast(data.dtype, count)

    return compute(total.shape, mean, name="mean", tag=INJECTIVE)


def norm_windows(data: Tensor, windows: PoolWindows, p: int) -> Tensor:
    """Return the norm of degree `p` of each window.

    Raises:
        UserError: `data` does not hold floats, or p is less than 1.
    """
    require_float(data, windows.operator)
    require_degree(p, windows.operator)
    wide = sum_dtype(data)
    total = reduce_windows(
        data,
        windows,
        reducer.sum,
        const(0, data.dtype),
        lambda value: absolute_power(value.astype(wide), p),
    )
    return root_of(total, p, data.dtype)


def require_degree(p: int, operator: str) -> None:
    """Raise UserError if a norm has a degree below 1."""
    if p < 1:
        raise UserError(
            f"{operator} cannot take the norm of degree {p}",
            remedy="give a degree of at least 1",
        )


def absolute_power(value: Expr, p: int) -> Expr:
    """Return |value| ** p."""
    if p == 1:
        return maths.fabs(value)
    if p == 2:
        return value * value
    return maths.power(maths.fabs(value), const(float(p), value.dtype))


def root_of(total: Tensor, p: int, dtype: DType) -> Tensor:
    """Return total ** (1 / p) in another dtype."""

    def element(*index: Expr) -> Expr:
        value: Expr = total[index]
        if p == 2:
            value = maths.sqrt(value)
        elif p > 2:
            value = maths.power(value, const(1.0 / p, value.dtype))
        return value.astype(dtype)

    return compute(total.shape, element, name="norm", tag=INJECTIVE)


# Meanings.


def windows_numpy(
    data: Array,
    windows: PoolWindows,
    padding_value: float,
    edge_value: float | None = None,
) -> list[Array]:
    """Return for each position in a window, the elements of all windows at that position.

    Elements beyond the padding are `edge_value`; left out, they are `padding_value`.
    """
    axis = windows.axis
    padded = data
    edge = padding_value if edge_value is None else edge_value
    rank = len(windows.kernel)
    for value, before, after in (
        (padding_value, windows.before, windows.after),
        (edge, (0,) * rank, windows.beyond),
    ):
        widths = [(0, 0)] * data.ndim
        widths[axis : axis + rank] = zip(before, after, strict=True)
        padded = np.pad(padded, widths, constant_values=padded.dtype.type(value))
    found = []
    for place in np.ndindex(*windows.kernel):
        slices = [slice(None)] * data.ndim
        for k, step in enumerate(place):
            first = step * windows.dilation[k]
            # The number of elements at which a window may start.
            starts = padded.shape[axis + k] - _reach(windows, k) + 1
            slices[axis + k] = slice(first, first + starts, windows.strides[k])
        found.append(padded[tuple(slices)])
    return found


def of_array(
    data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    layout: str,
    ceil_mode: bool,
) -> PoolWindows:
    """Return the windows of a pooling of an array."""
    rank = spatial_rank(layout)
    windows = PoolWindows(
        "pooling",
        axis=LAYOUTS[rank][layout],
        kernel=tuple(kernel),
        strides=tuple(strides),
        dilation=tuple(dilation),
        before=tuple(padding[:rank]),
        after=tuple(padding[rank:]),
        beyond=(0,) * rank,
    )
    if not ceil_mode:
        return windows
    sizes = data.shape[windows.axis : windows.axis + rank]
    beyond = tuple(_beyond(windows, k, size) for k, size in enumerate(sizes))
    return replace(windows, beyond=beyond)


def max_pool_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    layout: str,
    ceil_mode: bool,
) -> Array:
    """Return the maximum of each window."""
    windows = of_array(data, kernel, strides, padding, dilation, layout, ceil_mode)
    is_float = data.dtype.kind not in "iu"  # bfloat16 is of kind V
    least = -np.inf if is_float else np.iinfo(data.dtype).min
    return np.asarray(np.maximum.reduce(windows_numpy(data, windows, least)))


def avg_pool_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    layout: str,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Array:
    """Return the mean of each window."""
    windows = of_array(data, kernel, strides, padding, dilation, layout, ceil_mode)
    wide = widen(data)
    total = np.add.reduce(windows_numpy(wide, windows, 0))
    # A sum of ones is the number of elements that count.
    ones = windows_numpy(np.ones_like(wide), windows, float(count_include_pad), 0)
    with np.errstate(invalid="ignore"):  # 0 / 0, of a window without elements
        return np.asarray(total / np.add.reduce(ones), data.dtype)


def lp_pool_numpy(
    data: Array,
    *,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    layout: str,
    ceil_mode: bool,
    p: int,
) -> Array:
    """Return the norm of degree `p` of each window."""
    windows = of_array(data, kernel, strides, padding, dilation, layout, ceil_mode)
    wide = np.abs(widen(data))
    total = np.add.reduce([part**p for part in windows_numpy(wide, windows, 0)])
    return np.asarray(total ** rounded(1 / p, data), data.dtype)


# Samples.


def sample_windows(
    draws: Draws, rank: int, *, may_be_empty: bool = False
) -> dict[str, object]:
    """Return attributes of a pooling over `rank` spatial axes, without those of its reduction."""
    kernel = [draws.integer(1, 3) for _ in range(rank)]
    dilation = [draws.integer(1, 2) for _ in range(rank)]
    return {
        "kernel": tuple(kernel),
        "strides": tuple(draws.integer(1, 3) for _ in range(rank)),
        "padding": tuple(
            draws.integer(0, extent - 1 + may_be_empty) for extent in (*kernel, *kernel)
        ),
        "dilation": tuple(dilation),
        "layout": draws.choice(tuple(LAYOUTS[rank])),
        "ceil_mode": draws.flag(),
    }


def sample_images(draws: Draws, attributes: dict[str, object], dtype: str) -> Array:
    """Return data in the layout of `attributes`, in which a window fits."""
    kernel = attributes["kernel"]
    dilation = attributes["dilation"]
    assert isinstance(kernel, tuple)
    assert isinstance(dilation, tuple)
    size = [
        (extent - 1) * step + draws.integer(1, 2)
        for extent, step in zip(kernel, dilation, strict=True)
    ]
    batch = draws.extent(0) if len(size) == 1 else draws.integer(0, 2)
    channels = draws.integer(1, 3)
    shape = sampled_shape(draws, str(attributes["layout"]), batch, channels, size)
    return draws.array(shape, dtype)


def sampled_shape(
    draws: Draws, layout: str, batch: int, channels: int, size: Sequence[int]
) -> tuple[int, ...]:
    """Return the shape of data in a layout. Blocks of channels have a drawn length."""
    if layout.endswith("C"):
        return (batch, *size, channels)
    block = (draws.integer(1, 4),) if layout.endswith("c") else ()
    return (batch, channels, *size, *block)

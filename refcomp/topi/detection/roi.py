"""Pooling of regions of interest: a grid of a fixed size for each box, whatever its size.

Reference: R. Girshick, "Fast R-CNN", ICCV 2015 (`roi_pool`); K. He et al., "Mask R-CNN", ICCV 2017
(`roi_align`); ONNX MaxRoiPool and RoiAlign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    check_pair,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.tags import REDUCTION, SHARED

# Coordinates in elements are limited, so that products of integers stay in range.
_FARTHEST = float(2**22)
_MODES = ("avg", "max", "max_weighted")


def roi_align(
    data: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    pooled_size: Pair,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    coordinates: str = "half_pixel",
) -> Tensor:
    """Reduce each region to a grid of bins, by the mean or the maximum of interpolated samples.

    A region (x1, y1, x2, y2) reaches from row b = y1 * spatial_scale - o to row
    y2 * spatial_scale - o. Here o is 0.5 for half_pixel, and 0 for output_half_pixel. For the
    latter, the region has at least one row and one column. The region is divided into ph rows of
    bins of equal height t. Each row of bins has s rows of samples. Sample i of bin p is at the row

        b + p * t + (i + 0.5) * t / s

    and likewise for columns. A sample is interpolated from its four neighbours, where rows outside
    of the image move to its first or last row. A sample at a row below -1 or above h is 0; likewise
    for columns. A bin without samples is 0. NaN propagates, and 0 times infinity is NaN.

    Args:
        data: floats [n, c, h, w]; h and w are constant and at least 1.
        rois: boxes [r, 4] of the dtype of `data`: (x1, y1, x2, y2).
        batch_indices: i32 or i64 [r]: the image of each box. An index out of range counts as the
            nearest image.
        pooled_size: rows and columns of bins.
        spatial_scale: the factor from coordinates of boxes to elements, above 0. It is rounded to
            the dtype that is computed in.
        sampling_ratio: samples of a bin along each axis, s. 0 means ceil(t), at most one for each
            row, or column, of an image: ceil(h / ph) and ceil(w / pw).
        mode: avg or max of the samples; or max_weighted, the maximum of the products of a neighbour
            and its weight, before they are added.
        coordinates: half_pixel or output_half_pixel.

    Returns:
        A tensor [r, c, ph, pw] of the dtype of `data`. f16 and bf16 are computed in f32.

    Raises:
        UserError: an argument is not as described, or there are no images.

    Reference: ONNX RoiAlign, opset 16, whose max is max_weighted here. TVM's vision.roi_align
    compares interpolated samples.

    Example::

        >>> A = rc.placeholder((1, 1, 2, 2), name="A")
        >>> R = rc.placeholder((1, 4), name="R")
        >>> N = rc.placeholder((1,), "int64", name="N")
        >>> B = rc.topi.roi_align(A, R, N, pooled_size=(1, 1), sampling_ratio=1)
        >>> a = np.array([1, 2, 3, 4], "float32").reshape(1, 1, 2, 2)
        >>> r = np.array([[0, 0, 2, 2]], "float32")
        >>> print(rc.oracle.evaluate([B], {A: a, R: r, N: np.array([0])})[0])
        [[[[2.5]]]]
    """
    require_choice(mode, _MODES, "roi_align", "mode")
    known = ("half_pixel", "output_half_pixel")
    require_choice(coordinates, known, "roi_align", "coordinates")
    sizes = _check_regions("roi_align", data, rois, 4, pooled_size, spatial_scale)
    require_rank(batch_indices, 1, "roi_align", "the tensor of batch indices")
    require_extent(
        extents(batch_indices)[0],
        extents(rois)[0],
        "roi_align",
        "the number of batch indices",
        tensors=(batch_indices, rois),
    )
    if not batch_indices.dtype.is_int:
        raise UserError(
            f"roi_align takes integer batch indices, not {batch_indices.dtype}",
            remedy='convert them: x[i].astype("int64")',
            earlier=[batch_indices.declaration()],
        )
    if sampling_ratio < 0:
        raise UserError(
            f"roi_align cannot take {sampling_ratio} samples",
            remedy="give a number >= 1, or 0 for ceil of the extent of a bin",
        )
    work = data.dtype if data.dtype.bits >= 32 else F32
    axes = [
        _RoiAxis(
            axis=k,
            size=sizes[k],
            bins=pooled_size[k],
            ratio=sampling_ratio,
            scale=spatial_scale,
            is_half=coordinates == "half_pixel",
            work=work,
        )
        for k in (0, 1)
    ]
    return _align(data, rois, batch_indices, axes, mode)


@dataclass(frozen=True, slots=True)
class _RoiAxis:
    """The samples of regions along one axis.

    Attributes:
        axis: 0 for rows, 1 for columns.
        size: elements of the image.
        bins: bins of a region.
        ratio: samples of a bin; 0 to count its elements.
        scale: the factor from coordinates to elements.
        is_half: True if coordinates are those of half_pixel.
        work: the dtype that is computed in.
    """

    axis: int
    size: int
    bins: int
    ratio: int
    scale: float
    is_half: bool
    work: DType

    @property
    def most_samples(self) -> int:
        """Return the greatest number of samples of a bin."""
        return self.ratio or -(-self.size // self.bins)

    def begin(self, rois: Tensor, r: Expr) -> Expr:
        """Return the begin of region `r`, in elements."""
        scaled = cast(self.work, rois[r, 1 - self.axis]) * self.factor
        return scaled - 0.5 if self.is_half else scaled

    def bin_extent(self, rois: Tensor, r: Expr) -> Expr:
        """Return the extent of a bin of region `r`, in elements."""
        last = cast(self.work, rois[r, 3 - self.axis]) * self.factor
        first = cast(self.work, rois[r, 1 - self.axis]) * self.factor
        length = last - first
        if not self.is_half:
            length = maths.maximum(length, const(1, self.work))
        return length / const(float(self.bins), self.work)

    @property
    def factor(self) -> Expr:
        """Return the scale as a constant."""
        return const(self.scale, self.work)

    def counts(self, rois: Tensor) -> Tensor:
        """Return the number of samples of a bin of each region."""

        def count(r: Expr) -> Expr:
            if self.ratio:
                return const(self.ratio, "int32")
            limit = const(float(self.most_samples), self.work)
            wanted = maths.minimum(maths.ceil(self.bin_extent(rois, r)), limit)
            return maths.maximum(cast("int32", wanted), const(0, "int32"))

        return compute(extents(rois)[:1], count, name=f"count{self.axis}", tag=SHARED)

    def positions(self, rois: Tensor, counts: Tensor) -> Tensor:
        """Return the positions [region, bin, sample] in the image, in elements."""

        def position(r: Expr, place: Expr, sample: Expr) -> Expr:
            extent = self.bin_extent(rois, r)
            count = maths.maximum(counts[r], const(1, "int32"))
            within = (cast(self.work, sample) + 0.5) * extent / cast(self.work, count)
            return self.begin(rois, r) + cast(self.work, place) * extent + within

        shape: list[Extent] = [extents(rois)[0], self.bins, self.most_samples]
        return compute(shape, position, name=f"position{self.axis}", tag=SHARED)

    def neighbours(self, position: Expr) -> list[tuple[Expr, Expr]]:
        """Return two elements of the image, each with its weight."""
        zero = const(0, self.work)
        last = const(float(self.size - 1), self.work)
        inside = maths.minimum(maths.maximum(position, zero), last)
        below = maths.floor(inside)
        fraction = inside - below
        first = cast("int32", below)
        second = maths.minimum(first + 1, const(self.size - 1, "int32"))
        one = const(1, self.work)
        return [(first, one - fraction), (second, fraction)]

    def is_outside(self, position: Expr) -> Expr:
        """Return the condition that a sample is 0."""
        return maths.any(position < -1.0, position > float(self.size))


def _align(
    data: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    axes: list[_RoiAxis],
    mode: str,
) -> Tensor:
    counts = [axis.counts(rois) for axis in axes]
    positions = [axis.positions(rois, n) for axis, n in zip(axes, counts, strict=True)]
    steps = [reduce_axis(axis.most_samples, f"k{axis.axis}") for axis in axes]
    rows, columns = axes
    work = rows.work
    zero = const(0, work)
    shape = (extents(rois)[0], extents(data)[1], rows.bins, columns.bins)

    def samples(r: Expr, c: Expr, *place: Expr) -> Expr:
        y = positions[0][r, place[0], steps[0].var]
        x = positions[1][r, place[1], steps[1].var]
        image = _image(batch_indices[r], extents(data)[0])
        value: Expr | None = None
        for row, row_weight in rows.neighbours(y):
            for column, weight in columns.neighbours(x):
                element = cast(work, data[image, c, row, column])
                term = row_weight * weight * element
                if value is None:
                    value = term
                elif mode == "max_weighted":
                    value = maths.maximum(value, term)
                else:
                    value = value + term
        assert value is not None
        outside = maths.any(rows.is_outside(y), columns.is_outside(x))
        is_sample = [
            step.var < count[r] for step, count in zip(steps, counts, strict=True)
        ]
        reduction = reducer.sum if mode == "avg" else reducer.max
        return reduction(
            maths.select(outside, zero, value), axis=steps, where=maths.all(*is_sample)
        )

    reduced = compute(shape, samples, name="samples", tag=REDUCTION)

    def element(r: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        number = counts[0][r] * counts[1][r]
        value: Expr = reduced[r, c, y, x]
        if mode == "avg":
            value = value / cast(work, maths.maximum(number, const(1, number.dtype)))
        return cast(data.dtype, maths.select(number > 0, value, zero))

    return compute(shape, element, name="roi_align", tag=INJECTIVE)


def _image(index: Expr, count: Extent) -> Expr:
    """Return the image that an index means, which is never out of range."""
    wide = cast("int64", index)
    above = maths.maximum(wide, const(0, "int64"))
    return maths.minimum(above, cast("int64", count) - 1)


def _check_regions(
    operator: str,
    data: Tensor,
    rois: Tensor,
    columns: int,
    pooled_size: Pair,
    spatial_scale: float,
) -> list[int]:
    """Return the spatial extents of `data`. Raise UserError if an argument is ill-formed."""
    require_float(data, operator)
    require_float(rois, operator)
    require_one_dtype(operator, data, rois)
    require_rank(data, 4, operator, "the data")
    require_rank(rois, 2, operator, "the tensor of boxes")
    require_extent(
        extents(rois)[1], columns, operator, "the extent of a box", tensors=(rois,)
    )
    check_pair(pooled_size, operator, "pooled size")
    if not spatial_scale > 0:
        raise UserError(
            f"{operator} cannot scale boxes by {spatial_scale}",
            remedy="give a number above 0",
        )
    sizes = [require_constant(size, "a spatial extent") for size in extents(data)[2:]]
    if 0 in sizes or extents(data)[0] == 0:
        raise UserError(
            f"{operator} cannot pool images without elements",
            remedy="give at least one image with elements",
            earlier=[data.declaration()],
        )
    return sizes


def _sample_boxes(draws: Draws, count: int, size: Pair, dtype: str) -> Array:
    """Return boxes, some of which leave the image, are empty, or hold special values."""
    if draws.integer(0, 4) == 0:
        return draws.array((count, 4), dtype)
    corners = draws.uniform((count, 2), -1.0, 2.5, dtype)
    reach = draws.uniform((count, 2), -0.5, 2.0 * max(size), dtype)
    return np.concatenate([corners, corners + reach], axis=1).astype(dtype)


def _sample_regions(draws: Draws) -> tuple[Array, Array, dict[str, object]]:
    dtype = draws.float_dtype()
    size = draws.pair(1, 5)
    data = draws.array((draws.integer(1, 2), draws.integer(1, 2), *size), dtype)
    boxes = _sample_boxes(draws, draws.choice((0, 1, 2, 2)), size, dtype)
    options: dict[str, object] = {
        "pooled_size": draws.pair(1, 3),
        "spatial_scale": draws.choice((1.0, 0.5, 0.75)),
    }
    return data, boxes, options


def _sample_roi_align(draws: Draws) -> Sample:
    data, boxes, options = _sample_regions(draws)
    indices = draws.integers((len(boxes),), -1, 2, draws.choice(("int32", "int64")))
    options["sampling_ratio"] = draws.choice((0, 1, 2))
    options["mode"] = draws.choice(_MODES)
    options["coordinates"] = draws.choice(("half_pixel", "output_half_pixel"))
    return Sample((data, boxes, indices), options)


@meaning_of(roi_align, sample=_sample_roi_align)
def roi_align_numpy(
    data: Array,
    rois: Array,
    batch_indices: Array,
    *,
    pooled_size: Pair,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    coordinates: str = "half_pixel",
) -> Array:
    wide = data.astype(np.longdouble)
    scaled = rois.astype(np.longdouble) * _rounded_scale(spatial_scale, data)
    if coordinates == "half_pixel":
        scaled = scaled - 0.5
    result = np.zeros((len(rois), data.shape[1], *pooled_size), np.longdouble)
    for r, box in enumerate(scaled):
        image = wide[np.clip(batch_indices[r], 0, len(data) - 1)]
        bins = []
        for k in (0, 1):
            first, last = box[1 - k], box[3 - k]
            length = last - first
            if coordinates == "output_half_pixel":
                length = np.maximum(length, 1)
            extent = length / pooled_size[k]
            most = -(-data.shape[2 + k] // pooled_size[k])
            wanted = min(np.ceil(extent), most) if extent > 0 else 0
            count = sampling_ratio or int(wanted)
            starts = first + np.arange(pooled_size[k]) * extent
            steps = (np.arange(count) + 0.5) * extent / max(count, 1)
            bins.append(starts[:, None] + steps)
        for y, x in np.ndindex(*pooled_size):
            samples = [_weighted(image, p, q) for p in bins[0][y] for q in bins[1][x]]
            join = np.max if mode == "max_weighted" else np.sum
            values = [join(terms, axis=(1, 2)) for terms in samples]
            if values:
                function = np.mean if mode == "avg" else np.max
                result[r, :, y, x] = function(values, axis=0)
    return np.asarray(result, data.dtype)


def _weighted(image: Array, y: float, x: float) -> Array:
    """Return the neighbours of a sample of an image [c, h, w], times their weights: [c, 2, 2]."""
    _, height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return np.zeros((len(image), 2, 2), image.dtype)
    if np.isnan(y) or np.isnan(x):
        return np.full((len(image), 2, 2), np.nan, image.dtype)
    y = min(max(y, 0), height - 1)
    x = min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    rows = image[:, [top, min(top + 1, height - 1)]]
    corners = rows[:, :, [left, min(left + 1, width - 1)]]
    weights = np.outer([1 - (y - top), y - top], [1 - (x - left), x - left])
    return np.asarray(corners * weights)


def roi_pool(
    data: Tensor, rois: Tensor, *, pooled_size: Pair, spatial_scale: float = 1.0
) -> Tensor:
    """Reduce each region to a grid of bins, by the maximum of the elements in each.

    The corners of a region (image, x1, y1, x2, y2) are the elements floor(x * spatial_scale + 0.5).
    A region of k rows, both ends included and at least one, is divided into ph rows of bins. Bin p
    has the rows from floor(p * k / ph) to ceil((p + 1) * k / ph) - 1, counted from the region's
    first row. Columns likewise. Rows and columns outside of the image are left out. A bin without
    elements is 0. A NaN in a bin makes its maximum NaN.

    Args:
        data: floats [n, c, h, w]; h and w are constant and at least 1.
        rois: boxes [r, 5] of the dtype of `data`: (image, x1, y1, x2, y2). The index of the image
            is truncated, and counts as the nearest image if it is out of range. Corners beyond
            2^22 elements are moved there. NaN counts as 0.
        pooled_size: rows and columns of bins.
        spatial_scale: the factor from coordinates of boxes to elements, above 0. It is rounded to
            the dtype that is computed in: f64 for f64, else f32.

    Returns:
        A tensor [r, c, ph, pw] of the dtype of `data`.

    Raises:
        UserError: an argument is not as described, or there are no images.

    Reference: ONNX MaxRoiPool; TVM, topi.vision.rcnn.roi_pool_nchw.

    Example::

        >>> A = rc.placeholder((1, 1, 2, 3), name="A")
        >>> R = rc.placeholder((1, 5), name="R")
        >>> B = rc.topi.roi_pool(A, R, pooled_size=(1, 2))
        >>> a = np.arange(6, dtype="float32").reshape(1, 1, 2, 3)
        >>> r = np.array([[0, 1, 0, 2, 1]], "float32")
        >>> print(rc.oracle.evaluate([B], {A: a, R: r})[0][0, 0])
        [[4. 5.]]
    """
    sizes = _check_regions("roi_pool", data, rois, 5, pooled_size, spatial_scale)
    work = data.dtype if data.dtype.bits >= 32 else F32
    limit = const(_FARTHEST, work)

    def corner(r: Expr, column: Expr) -> Expr:
        scaled = cast(work, rois[r, column + 1]) * const(spatial_scale, work) + 0.5
        limited = maths.minimum(maths.maximum(maths.floor(scaled), -limit), limit)
        return cast("int64", limited)

    corners = compute((extents(rois)[0], 4), corner, name="corners", tag=SHARED)
    steps = [reduce_axis(size, f"k{k}") for k, size in enumerate(sizes)]
    shape = (extents(rois)[0], extents(data)[1], *pooled_size)

    def ends(r: Expr, place: Expr, k: int) -> tuple[Expr, Expr]:
        """Return the first element of a bin along axis k, and the one after its last."""
        first = corners[r, 1 - k]
        length = maths.maximum(corners[r, 3 - k] - first + 1, const(1, "int64"))
        bins = pooled_size[k]
        begin = first + maths.floordiv(place * length, bins)
        end = first + maths.floordiv((place + 1) * length + (bins - 1), bins)
        last = maths.minimum(end, const(sizes[k], "int64"))
        return maths.maximum(begin, const(0, "int64")), last

    def greatest(r: Expr, c: Expr, *place: Expr) -> Expr:
        inside = []
        for k in (0, 1):
            begin, end = ends(r, place[k], k)
            inside += [steps[k].var >= begin, steps[k].var < end]
        image = _image(cast("int64", cast(work, rois[r, 0])), extents(data)[0])
        element = data[image, c, steps[0].var, steps[1].var]
        return reducer.max(element, axis=steps, where=maths.all(*inside))

    found = compute(shape, greatest, name="greatest", tag=REDUCTION)

    def element(r: Expr, c: Expr, *place: Expr) -> Expr:
        are_empty = []
        for k in (0, 1):
            begin, end = ends(r, place[k], k)
            are_empty.append(begin >= end)
        zero = const(0, data.dtype)
        return maths.select(maths.any(*are_empty), zero, found[(r, c, *place)])

    return compute(shape, element, name="roi_pool", tag=INJECTIVE)


def _sample_roi_pool(draws: Draws) -> Sample:
    data, boxes, options = _sample_regions(draws)
    if draws.flag():
        # Just below the middle of two pixels, from where they are rounded down.
        with np.errstate(invalid="ignore"):
            boxes = (np.floor(boxes) + 0.49998).astype(boxes.dtype)
    indices = draws.integers((len(boxes), 1), -1, 2).astype(boxes.dtype)
    return Sample((data, np.concatenate([indices, boxes], axis=1)), options)


@meaning_of(roi_pool, sample=_sample_roi_pool)
def roi_pool_numpy(
    data: Array, rois: Array, *, pooled_size: Pair, spatial_scale: float = 1.0
) -> Array:
    scaled = rois.astype(np.longdouble)[:, 1:] * _rounded_scale(spatial_scale, data)
    limited = np.clip(np.floor(scaled + 0.5), -_FARTHEST, _FARTHEST)
    corners = np.nan_to_num(limited).astype(np.int64)
    images = np.nan_to_num(rois[:, 0].astype(np.float64)).astype(np.int64)
    result = np.zeros((len(rois), data.shape[1], *pooled_size), data.dtype)
    for r, corner in enumerate(corners.tolist()):
        image = data[np.clip(images[r], 0, len(data) - 1)]
        for place in np.ndindex(*pooled_size):
            window: list[slice] = []
            for k in (0, 1):
                first, last = corner[1 - k], corner[3 - k]
                extent = Fraction(max(last - first + 1, 1), pooled_size[k])
                begin = first + math.floor(place[k] * extent)
                end = first + math.ceil((place[k] + 1) * extent)
                window.append(slice(max(begin, 0), max(end, 0)))
            elements = image[:, window[0], window[1]]
            if elements[0].size:
                result[(r, slice(None), *place)] = elements.max(axis=(1, 2))
    return result


def _rounded_scale(spatial_scale: float, data: Array) -> float:
    work = np.float64 if data.dtype == np.float64 else np.float32
    return float(work(spatial_scale))

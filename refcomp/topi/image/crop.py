"""Cropping: to a size about the centre, and to boxes that are resized to one size.

Reference: ONNX CenterCropPad; TensorFlow, tf.image.crop_and_resize.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent, require_tensor
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.image.resize_images import image_axes
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    Pair,
    check_pair,
    normalize_axis,
    replace_entry,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.tags import SHARED


def center_crop_pad(
    data: Tensor, *, shape: Sequence[int], axes: Sequence[int] = ()
) -> Tensor:
    """Crop or pad axes to given extents, so that the centre stays.

    An axis of n elements that becomes m shorter loses floor(m / 2) elements at its begin. An axis
    that becomes m longer gets floor(m / 2) zeros there. The rest is cut or added at the end. All
    other elements are moved to the bit.

    Args:
        data: a tensor of any rank and dtype. The extents along `axes` are constant.
        shape: the extents of the result along `axes`, at least 0.
        axes: the axes, each once; by default all.

    Returns:
        A tensor of the rank and dtype of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: ONNX CenterCropPad.

    Example::

        >>> A = rc.placeholder((2, 3), "int32", name="A")
        >>> B = rc.topi.center_crop_pad(A, shape=(3, 1))
        >>> print(*rc.oracle.evaluate([B], {A: np.arange(6, dtype="int32").reshape(2, 3)}))
        [[1]
         [4]
         [0]]
    """
    require_tensor(data, "center_crop_pad")
    given = tuple(axes) or tuple(range(data.ndim))
    places = [normalize_axis(axis, data.ndim, "center_crop_pad") for axis in given]
    wrong = len(shape) != len(places) or any(extent < 0 for extent in shape)
    if wrong or len(set(places)) < len(places):
        raise UserError(
            f"center_crop_pad cannot give the axes {given} the extents {tuple(shape)}",
            remedy="name each axis once, and give a number >= 0 for each",
        )
    result = extents(data)
    sizes: dict[int, int] = {}
    for place, wanted in zip(places, shape, strict=True):
        sizes[place] = require_constant(extents(data)[place], "a cropped extent")
        result = replace_entry(result, place, wanted)

    def element(*index: Expr) -> Expr:
        source = index
        inside: list[Expr] = []
        for place, wanted in zip(places, shape, strict=True):
            surplus = sizes[place] - wanted
            moved = surplus // 2 if surplus > 0 else -(-surplus // 2)
            position = index[place] + moved
            source = replace_entry(source, place, position)
            if surplus < 0:
                inside += [position >= 0, position < sizes[place]]
        if not inside:
            return data[source]
        # `if_then_else`, not `select`: elements outside must not be read.
        zero = const(0, data.dtype)
        return maths.if_then_else(maths.all(*inside), data[source], zero)

    return compute(result, element, name="center_crop_pad", tag=INJECTIVE)


def _sample_center_crop_pad(draws: Draws) -> Sample:
    data = draws.array(draws.shape(0, 3), draws.number_dtype())
    axes = draws.order(data.ndim)[: draws.integer(0, data.ndim)]
    count = len(axes) or data.ndim
    shape = tuple(draws.integer(0, 5) for _ in range(count))
    return Sample((data,), {"shape": shape, "axes": axes})


@meaning_of(center_crop_pad, sample=_sample_center_crop_pad)
def center_crop_pad_numpy(
    data: Array, *, shape: Sequence[int], axes: Sequence[int] = ()
) -> Array:
    result = data
    for axis, wanted in zip(tuple(axes) or range(data.ndim), shape, strict=True):
        size = data.shape[axis]
        if size >= wanted:
            begin = (size - wanted) // 2
            result = result.take(range(begin, begin + wanted), axis=axis)
            continue
        before = (wanted - size) // 2
        parts = []
        for added in (before, wanted - size - before):
            border = list(result.shape)
            border[axis] = added
            parts.append(np.zeros(border, data.dtype))
        result = np.concatenate([parts[0], result, parts[1]], axis=axis)
    return result.copy()


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    *,
    crop_size: Pair,
    layout: str = "NHWC",
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Cut boxes out of images, and resize each to one size.

    A box (y1, x1, y2, x2) is in coordinates where 0 is the first row or column, and 1 the last. Row
    i of m rows is at the position

        (y1 * (m - 1 - i) + y2 * i) * (h - 1) / (m - 1)

    in the image, and at (y1 + y2) * (h - 1) / 2 if m is 1. Columns likewise. The method bilinear
    interpolates the four neighbours of a position. The method nearest takes the nearest element,
    and the even one of two. Where a position is not from 0 to h - 1, or not from 0 to w - 1, the
    result is `extrapolation_value`. A neighbour of weight 0 counts: its NaN or infinity makes NaN.

    Args:
        data: floats [n, h, w, c], or [n, c, h, w] in the layout NCHW; h and w are constant and at
            least 1.
        boxes: floats [r, 4] of the dtype of `data`.
        box_indices: i32 or i64 [r]: the image of each box. An index out of range counts as the
            nearest image.
        crop_size: rows and columns of the result.
        layout: NHWC or NCHW.
        method: bilinear or nearest.
        extrapolation_value: the value outside of the image.

    Returns:
        A tensor [r, *crop_size, c], or [r, c, *crop_size], of the dtype of `data`. f16 and bf16 are
        computed in f32.

    Raises:
        UserError: an argument is not as described, or there are no images.

    Reference: TVM, topi.image.crop_and_resize; tf.image.crop_and_resize.

    Example::

        >>> A = rc.placeholder((1, 1, 3, 1), name="A")
        >>> R = rc.placeholder((1, 4), name="R")
        >>> N = rc.placeholder((1,), "int32", name="N")
        >>> B = rc.topi.crop_and_resize(A, R, N, crop_size=(1, 3))
        >>> a = np.array([1, 2, 4], "float32").reshape(1, 1, 3, 1)
        >>> r = np.array([[0, 0.5, 0, 1.5]], "float32")
        >>> (b,) = rc.oracle.evaluate([B], {A: a, R: r, N: np.array([0], "int32")})
        >>> print(b.ravel())
        [2. 4. 0.]
    """
    axis = image_axes(layout, "HW", "crop_and_resize")[0]
    sizes = _check_crops(data, boxes, box_indices, crop_size, axis)
    require_choice(method, ("bilinear", "nearest"), "crop_and_resize", "method")
    work = data.dtype if data.dtype.bits >= 32 else F32

    places = [_positions(boxes, k, sizes[k], crop_size[k], work) for k in (0, 1)]
    shape = (extents(boxes)[0], *extents(data)[1:])
    for k in (0, 1):
        shape = replace_entry(shape, axis + k, crop_size[k])

    def element(*index: Expr) -> Expr:
        r = index[0]
        count = cast("int64", extents(data)[0])
        above = maths.maximum(cast("int64", box_indices[r]), const(0, "int64"))
        image = (maths.minimum(above, count - 1), *index[1:])
        terms: list[tuple[tuple[Expr, ...], tuple[Expr, ...]]] = [(image, ())]
        inside: list[Expr] = []
        for k in (0, 1):
            point = places[k][r, index[axis + k]]
            inside += [point >= 0.0, point <= float(sizes[k] - 1)]
            terms = [
                (replace_entry(source, axis + k, place), (*factors, *weight))
                for source, factors in terms
                for place, *weight in _neighbours(point, sizes[k], method)
            ]
        total: Expr | None = None
        for source, factors in terms:
            term = cast(work, data[source])
            for factor in factors:
                term = term * factor
            total = term if total is None else total + term
        assert total is not None
        outside = const(extrapolation_value, data.dtype)
        return maths.select(maths.all(*inside), cast(data.dtype, total), outside)

    return compute(shape, element, name="crop_and_resize", tag=INJECTIVE)


def _positions(boxes: Tensor, k: int, size: int, count: int, work: DType) -> Tensor:
    """Return the positions [box, element of the result] along axis k, in elements."""

    def position(r: Expr, i: Expr) -> Expr:
        begin = cast(work, boxes[r, k])
        end = cast(work, boxes[r, k + 2])
        last = const(float(size - 1), work)
        if count == 1:
            return (begin + end) * last * 0.5
        steps = count - 1
        mixed = begin * cast(work, steps - i) + end * cast(work, i)
        return mixed * last / const(float(steps), work)

    shape = (extents(boxes)[0], count)
    return compute(shape, position, name=f"position{k}", tag=SHARED)


def _neighbours(position: Expr, size: int, method: str) -> list[tuple[Expr, ...]]:
    """Return the elements of the image at a position, each with its weight if it has one."""
    zero = const(0, position.dtype)
    last = const(float(size - 1), position.dtype)
    limited = maths.minimum(maths.maximum(position, zero), last)
    if method == "nearest":
        return [(cast("int32", maths.round(limited)),)]
    below = maths.floor(limited)
    fraction = limited - below
    first = cast("int32", below)
    second = maths.minimum(first + 1, const(size - 1, "int32"))
    return [(first, const(1, position.dtype) - fraction), (second, fraction)]


def _check_crops(
    data: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: Pair, axis: int
) -> list[int]:
    """Return the spatial extents of the data. Raise UserError if an argument is ill-formed."""
    operator = "crop_and_resize"
    require_float(data, operator)
    require_float(boxes, operator)
    require_one_dtype(operator, data, boxes)
    require_rank(data, 4, operator, "the data")
    require_rank(boxes, 2, operator, "the tensor of boxes")
    require_rank(box_indices, 1, operator, "the tensor of box indices")
    require_extent(
        extents(boxes)[1], 4, operator, "the extent of a box", tensors=(boxes,)
    )
    require_extent(
        extents(box_indices)[0],
        extents(boxes)[0],
        operator,
        "the number of box indices",
        tensors=(box_indices, boxes),
    )
    check_pair(crop_size, operator, "crop size")
    if not box_indices.dtype.is_int:
        raise UserError(
            f"crop_and_resize takes integer box indices, not {box_indices.dtype}",
            remedy='convert them: x[i].astype("int64")',
            earlier=[box_indices.declaration()],
        )
    sizes = [
        require_constant(size, "a spatial extent")
        for size in extents(data)[axis : axis + 2]
    ]
    if 0 in sizes or extents(data)[0] == 0:
        raise UserError(
            "crop_and_resize cannot crop images without elements",
            remedy="give at least one image with elements",
            earlier=[data.declaration()],
        )
    return sizes


def _sample_crop_and_resize(draws: Draws) -> Sample:
    layout = draws.choice(("NHWC", "NCHW"))
    dtype = draws.float_dtype()
    images, channels = draws.pair(1, 2)
    size = draws.pair(1, 4)
    shape = (images, *size, channels)
    if layout == "NCHW":
        shape = (images, channels, *size)
    count = draws.extent(0)
    boxes = draws.array((count, 4), dtype)
    if draws.flag():
        boxes = (draws.integers((count, 4), -2, 10) / 8).astype(dtype)
    indices = draws.integers((count,), -1, 2, draws.choice(("int32", "int64")))
    options = {
        "crop_size": draws.pair(1, 4),
        "layout": layout,
        "method": draws.choice(("bilinear", "nearest")),
        "extrapolation_value": draws.choice((0.0, 7.0)),
    }
    return Sample((draws.array(shape, dtype), boxes, indices), options)


@meaning_of(crop_and_resize, sample=_sample_crop_and_resize)
def crop_and_resize_numpy(
    data: Array,
    boxes: Array,
    box_indices: Array,
    *,
    crop_size: Pair,
    layout: str = "NHWC",
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Array:
    images = data if layout == "NHWC" else data.transpose(0, 2, 3, 1)
    wide = images.astype(np.longdouble)
    size = np.array(images.shape[1:3])
    result = np.full((len(boxes), *crop_size, images.shape[3]), extrapolation_value)
    result = result.astype(np.longdouble)
    for r, box in enumerate(boxes.astype(np.longdouble)):
        image = wide[np.clip(box_indices[r], 0, len(wide) - 1)]
        for place in np.ndindex(*crop_size):
            steps = np.array(crop_size) - 1
            step = np.array(place)
            mixed = box[:2] * (steps - step) + box[2:] * step
            middle = (box[:2] + box[2:]) * (size - 1) / 2
            spread = mixed * (size - 1) / np.maximum(steps, 1)
            point = np.where(steps == 0, middle, spread)
            if np.all((point >= 0) & (point <= size - 1)):
                result[(r, *place)] = _sampled(image, point, method)
    if layout == "NCHW":
        result = result.transpose(0, 3, 1, 2)
    return np.asarray(result, data.dtype)


def _sampled(image: Array, point: Array, method: str) -> Array:
    if method == "nearest":
        y, x = np.rint(point).astype(int)
        return np.asarray(image[y, x])
    total = np.zeros(image.shape[2], image.dtype)
    below = np.floor(point).astype(int)
    for step in np.ndindex(2, 2):
        y, x = np.minimum(below + step, np.array(image.shape[:2]) - 1)
        weights = np.where(step, point - below, 1 - (point - below))
        total += image[y, x] * weights.prod()
    return total

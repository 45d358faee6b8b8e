"""Layers of YOLO detectors: region and reorg.

Reference: J. Redmon and A. Farhadi, "YOLO9000: Better, Faster, Stronger", CVPR 2017; Darknet,
region_layer.c, reorg_layer.c and yolo_layer.c.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.te import maths, reducer
from refcomp.te.extents import Extent, extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_rank,
    widen,
)
from refcomp.topi.tags import REDUCTION, SHARED


def yolo_reorg(data: Tensor, *, stride: int) -> Tensor:
    """Move blocks of pixels to channels, in the order of Darknet's reorg layer.

    Let m be c / stride^2. An image of `data` is read as [m, h * stride, w * stride], in row-major
    order. The element (k, y, x) of an image of c channels, h rows and w columns is then taken from

        (k % m, y * stride + k // m // stride, x * stride + k // m % stride)

    and this image is read as [c * stride^2, h / stride, w / stride], in row-major order. NaN and
    infinity are moved like all elements.

    Args:
        data: [n, c, h, w] of any dtype. c, h and w are constant. c is a multiple of stride^2, and h
            and w are multiples of `stride`.
        stride: the extents of a block, at least 1.

    Returns:
        A tensor [n, c * stride^2, h / stride, w / stride] of the dtype of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.reorg; Darknet, reorg_layer.c. ONNX SpaceToDepth has another order.

    Example::

        >>> A = rc.placeholder((1, 4, 2, 2), "int32", name="A")
        >>> B = rc.topi.yolo_reorg(A, stride=2)
        >>> a = np.arange(16, dtype="int32").reshape(1, 4, 2, 2)
        >>> print(rc.oracle.evaluate([B], {A: a})[0].ravel())
        [ 0  2  8 10  1  3  9 11  4  6 12 14  5  7 13 15]
    """
    require_rank(data, 4, "yolo_reorg", "the data")
    batch, *rest = extents(data)
    channels, height, width = (
        require_constant(extent, "an extent of yolo_reorg") for extent in rest
    )
    fits = stride >= 1 and channels >= 1 and channels % stride**2 == 0
    if not fits or height % stride or width % stride:
        raise UserError(
            f"yolo_reorg cannot divide {channels} x {height} x {width} elements "
            f"by the stride {stride}",
            remedy="give multiples of stride^2 channels, and of stride rows and columns",
            earlier=[data.declaration()],
        )
    parts = channels // stride**2

    def element(b: Expr, *index: Expr) -> Expr:
        shape = (channels * stride**2, height // stride, width // stride)
        place = _place(_position(index, shape), (channels, height, width))
        block = maths.floordiv(place[0], parts)
        source = (
            maths.floormod(place[0], parts),
            place[1] * stride + maths.floordiv(block, stride),
            place[2] * stride + maths.floormod(block, stride),
        )
        position = _position(source, (parts, height * stride, width * stride))
        return data[(b, *_place(position, (channels, height, width)))]

    shape: list[Extent] = [
        batch,
        channels * stride**2,
        height // stride,
        width // stride,
    ]
    return compute(shape, element, name="yolo_reorg", tag=INJECTIVE)


def _position(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Return the row-major position of an index in a tensor of three axes."""
    return (index[0] * shape[1] + index[1]) * shape[2] + index[2]


def _place(position: Expr, shape: Sequence[int]) -> tuple[Expr, Expr, Expr]:
    """Return the index of a row-major position: the inverse of `_position`."""
    row = maths.floordiv(position, shape[2])
    return (
        maths.floordiv(row, shape[1]),
        maths.floormod(row, shape[1]),
        maths.floormod(position, shape[2]),
    )


def _sample_yolo_reorg(draws: Draws) -> Sample:
    stride = draws.integer(1, 3)
    shape = (
        draws.extent(0),
        stride**2 * draws.integer(1, 2),
        stride * draws.integer(1, 2),
        stride * draws.integer(0, 2),
    )
    return Sample((draws.array(shape, draws.number_dtype()),), {"stride": stride})


@meaning_of(yolo_reorg, sample=_sample_yolo_reorg, pattern="injective")
def yolo_reorg_numpy(data: Array, *, stride: int) -> Array:
    batch, channels, height, width = data.shape
    parts = channels // stride**2
    # [n, m, h, block row, w, block column] to [n, block row, block column, m, h, w].
    spread = data.reshape(batch, parts, height, stride, width, stride)
    moved = spread.transpose(0, 3, 5, 1, 2, 4)
    shape = (batch, channels * stride**2, height // stride, width // stride)
    return moved.reshape(shape).copy()


def yolo_region(
    data: Tensor,
    *,
    anchors: int,
    classes: int,
    coords: int = 4,
    background: bool = False,
    softmax: bool = True,
) -> Tensor:
    """Apply the activations of YOLO's region layer to the predictions of each anchor.

    The channels of an anchor are `coords` coordinates, an objectness, and a score for each class.
    The first two coordinates and the objectness become sigmoid(x). The scores become
    exp(x - m) / sum of exp(x - m) over the classes, where m is their maximum. With `background`,
    the objectness is one more score instead. All other channels stay as they are. NaN and infinity
    propagate as in `sigmoid` and in `softmax`.

    Args:
        data: floats [n, anchors * (coords + 1 + classes), h, w].
        anchors: the number of anchors, at least 1.
        classes: the number of classes, at least 1.
        coords: the number of coordinates, at least 2.
        background: True if the objectness is a score.
        softmax: False if scores stay as they are.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.yolo.region; Darknet, region_layer.c.

    Example::

        >>> A = rc.placeholder((1, 7, 1, 1), name="A")
        >>> B = rc.topi.yolo_region(A, anchors=1, classes=2)
        >>> a = np.array([0, 0, 5, 6, 0, 1, 1], "float32").reshape(1, 7, 1, 1)
        >>> print(rc.oracle.evaluate([B], {A: a})[0].ravel())
        [0.5 0.5 5.  6.  0.5 0.5 0.5]
    """
    group = coords + 1 + classes
    _check_channels("yolo_region", data, anchors, group, coords, classes)
    batch, _, height, width = extents(data)
    first = coords if background else coords + 1
    k = reduce_axis(group - first, "k")
    r = reduce_axis(group - first, "r")
    shape: list[Extent] = [batch, anchors, height, width]

    def channel(anchor: Expr, part: Expr) -> Expr:
        return anchor * group + first + part

    greatest = compute(
        shape,
        lambda b, a, y, x: reducer.max(data[b, channel(a, k.var), y, x], axis=k),
        name="greatest",
        tag=REDUCTION,
    )
    total = compute(
        shape,
        lambda b, a, y, x: reducer.sum(
            maths.exp(data[b, channel(a, r.var), y, x] - greatest[b, a, y, x]), axis=r
        ),
        name="total",
        tag=REDUCTION,
    )

    def activated(b: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        anchor = maths.floordiv(c, group)
        part = maths.floormod(c, group)
        value = data[b, c, y, x]
        is_logistic = part < 2
        if not background:
            is_logistic = maths.any(is_logistic, part.equal(coords))
        result = maths.select(is_logistic, maths.sigmoid(value), value)
        if not softmax:
            return result
        power = maths.exp(value - greatest[b, anchor, y, x])
        score = power / total[b, anchor, y, x]
        return maths.select(part >= first, score, result)

    return compute(extents(data), activated, name="yolo_region", tag=SHARED)


def _check_channels(
    operator: str, data: Tensor, anchors: int, group: int, coords: int, classes: int
) -> None:
    require_float(data, operator)
    require_rank(data, 4, operator, "the data")
    if anchors < 1 or classes < 1 or coords < 2:
        raise UserError(
            f"{operator} cannot have {anchors} anchors, {classes} classes "
            f"and {coords} coordinates",
            remedy="give at least one anchor, one class and two coordinates",
        )
    require_extent(
        extents(data)[1],
        anchors * group,
        operator,
        "the number of channels",
        tensors=(data,),
    )


def _sample_yolo_region(draws: Draws) -> Sample:
    options: dict[str, object] = {
        "anchors": draws.integer(1, 2),
        "classes": draws.integer(1, 3),
        "coords": draws.integer(2, 4),
        "background": draws.flag(),
        "softmax": draws.integer(0, 3) > 0,
    }
    group = int(str(options["classes"])) + int(str(options["coords"])) + 1
    shape = (draws.extent(0), int(str(options["anchors"])) * group, *draws.pair(1, 2))
    return Sample((draws.array(shape, draws.float_dtype()),), options)


@meaning_of(yolo_region, sample=_sample_yolo_region)
def yolo_region_numpy(
    data: Array,
    *,
    anchors: int,
    classes: int,
    coords: int = 4,
    background: bool = False,
    softmax: bool = True,
) -> Array:
    batch, _, height, width = data.shape
    wide = (
        widen(data).reshape(batch, anchors, coords + 1 + classes, height, width).copy()
    )
    with np.errstate(all="ignore"):
        wide[:, :, :2] = 1 / (1 + np.exp(-wide[:, :, :2]))
        if not background:
            wide[:, :, coords] = 1 / (1 + np.exp(-wide[:, :, coords]))
        if softmax:
            scores = wide[:, :, coords + (not background) :]
            power = np.exp(scores - scores.max(axis=2, keepdims=True))
            scores[...] = power / power.sum(axis=2, keepdims=True)
    return np.asarray(wide.reshape(data.shape), data.dtype)


def yolov3_yolo(data: Tensor, *, anchors: int, classes: int) -> Tensor:
    """Apply the activations of YOLOv3's detection layer to the predictions of each anchor.

    The channels of an anchor are x, y, width, height, an objectness, and a score for each class.
    Width and height stay as they are, and all others become sigmoid(x). NaN propagates.

    Args:
        data: floats [n, anchors * (5 + classes), h, w].
        anchors: the number of anchors, at least 1.
        classes: the number of classes, at least 1.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        UserError: an argument is not as described.

    Reference: J. Redmon and A. Farhadi, "YOLOv3: An Incremental Improvement", arXiv:1804.02767;
    Darknet, yolo_layer.c.

    Example::

        >>> A = rc.placeholder((1, 6, 1, 1), name="A")
        >>> B = rc.topi.yolov3_yolo(A, anchors=1, classes=1)
        >>> a = np.array([0, 0, 5, 6, 0, 0], "float32").reshape(1, 6, 1, 1)
        >>> print(rc.oracle.evaluate([B], {A: a})[0].ravel())
        [0.5 0.5 5.  6.  0.5 0.5]
    """
    group = 5 + classes
    _check_channels("yolov3_yolo", data, anchors, group, 4, classes)

    def activated(b: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        part = maths.floormod(c, group)
        value = data[b, c, y, x]
        is_extent = maths.any(part.equal(2), part.equal(3))
        return maths.select(is_extent, value, maths.sigmoid(value))

    return compute(extents(data), activated, name="yolov3_yolo", tag=INJECTIVE)


def _sample_yolov3_yolo(draws: Draws) -> Sample:
    anchors, classes = draws.pair(1, 3)
    shape = (draws.extent(0), anchors * (5 + classes), *draws.pair(1, 2))
    data = draws.array(shape, draws.float_dtype())
    return Sample((data,), {"anchors": anchors, "classes": classes})


@meaning_of(yolov3_yolo, sample=_sample_yolov3_yolo)
def yolov3_yolo_numpy(data: Array, *, anchors: int, classes: int) -> Array:
    batch, _, height, width = data.shape
    wide = widen(data).reshape(batch, anchors, 5 + classes, height, width)
    with np.errstate(all="ignore"):
        result = 1 / (1 + np.exp(-wide))
    result[:, :, 2:4] = wide[:, :, 2:4]
    return np.asarray(result.reshape(data.shape), data.dtype)

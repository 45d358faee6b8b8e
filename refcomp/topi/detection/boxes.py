"""Boxes: their overlap, and their encoding relative to anchors.

Reference: S. Ren et al., "Faster R-CNN", NeurIPS 2015; W. Liu et al., "SSD: Single Shot MultiBox
Detector", ECCV 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32, DType
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.image.positions import require_choice
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array, require_float, require_one_dtype, require_rank

_FORMATS = ("corner", "center")


def box_iou(boxes: Tensor, others: Tensor, *, box_format: str = "corner") -> Tensor:
    """Return the intersection of each two boxes, divided by their union.

    The area of a box is (x2 - x1) * (y2 - y1). The intersection has the extents
    max(min(x2, x2') - max(x1, x1'), 0), and the same of y. The union is the sum of both areas less
    the intersection. If it is not above 0, the result is 0. NaN propagates.

    Args:
        boxes: floats [n, 4].
        others: floats [m, 4] of the same dtype.
        box_format: corner for (x1, y1, x2, y2), or center for (x, y, width, height).

    Returns:
        A tensor [n, m] of the dtype of `boxes`. f16 and bf16 are computed in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.nms (`calculate_overlap`).

    Example::

        >>> A = rc.placeholder((1, 4), name="A")
        >>> B = rc.placeholder((2, 4), name="B")
        >>> a = np.array([[0, 0, 2, 2]], "float32")
        >>> b = np.array([[0, 0, 1, 2], [3, 3, 4, 4]], "float32")
        >>> print(*rc.oracle.evaluate([rc.topi.box_iou(A, B)], {A: a, B: b}))
        [[0.5 0. ]]
    """
    _require_boxes("box_iou", boxes, others)
    require_choice(box_format, _FORMATS, "box_iou", "box_format")
    work = boxes.dtype if boxes.dtype.bits >= 32 else F32
    zero = const(0, work)

    def corners(source: Tensor, place: Expr) -> list[Expr]:
        a, b, c, d = (cast(work, source[place, k]) for k in range(4))
        if box_format == "corner":
            return [a, b, c, d]
        return [a - c * 0.5, b - d * 0.5, a + c * 0.5, b + d * 0.5]

    def area(box: Sequence[Expr]) -> Expr:
        return (box[2] - box[0]) * (box[3] - box[1])

    def overlap(i: Expr, j: Expr) -> Expr:
        first = corners(boxes, i)
        second = corners(others, j)
        sides = []
        for k in (0, 1):
            begin = maths.maximum(first[k], second[k])
            end = maths.minimum(first[k + 2], second[k + 2])
            sides.append(maths.maximum(end - begin, zero))
        intersection = sides[0] * sides[1]
        union = area(first) + area(second) - intersection
        ratio = maths.select(union <= 0.0, zero, intersection / union)
        return cast(boxes.dtype, ratio)

    shape = (extents(boxes)[0], extents(others)[0])
    return compute(shape, overlap, name="box_iou", tag=INJECTIVE)


def _require_boxes(operator: str, *tensors: Tensor) -> None:
    for tensor in tensors:
        require_float(tensor, operator)
        require_one_dtype(operator, tensors[0], tensor)
        require_rank(tensor, 2, operator, "a tensor of boxes")
        require_extent(
            extents(tensor)[1], 4, operator, "the extent of a box", tensors=(tensor,)
        )


def sample_boxes(draws: Draws, count: int, dtype: str) -> Array:
    """Return boxes (x1, y1, x2, y2), some of which are empty, equal or special."""
    if draws.integer(0, 4) == 0:
        return draws.array((count, 4), dtype)
    corners = draws.integers((count, 2), 0, 6)
    reach = draws.integers((count, 2), 0, 6)
    return np.concatenate([corners, corners + reach], axis=1).astype(dtype)


def _sample_box_iou(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    first = sample_boxes(draws, draws.extent(0), dtype)
    second = sample_boxes(draws, draws.extent(0), dtype)
    return Sample((first, second), {"box_format": draws.choice(_FORMATS)})


@meaning_of(box_iou, sample=_sample_box_iou)
def box_iou_numpy(boxes: Array, others: Array, *, box_format: str = "corner") -> Array:
    first = boxes.astype(np.longdouble)
    second = others.astype(np.longdouble)
    if box_format == "center":
        first = np.hstack(
            [first[:, :2] - first[:, 2:] / 2, first[:, :2] + first[:, 2:] / 2]
        )
        second = np.hstack(
            [second[:, :2] - second[:, 2:] / 2, second[:, :2] + second[:, 2:] / 2]
        )
    areas = [np.prod(box[:, 2:] - box[:, :2], axis=1) for box in (first, second)]
    begin = np.maximum(first[:, None, :2], second[None, :, :2])
    end = np.minimum(first[:, None, 2:], second[None, :, 2:])
    with np.errstate(all="ignore"):
        intersection = np.prod(np.maximum(end - begin, 0), axis=2)
        union = areas[0][:, None] + areas[1] - intersection
        ratio = np.where(union <= 0, 0, intersection / union)
    return np.asarray(ratio, boxes.dtype)


def box_encode(
    boxes: Tensor,
    anchors: Tensor,
    *,
    stds: Sequence[float] = (0.125, 0.125, 0.25, 0.25),
) -> Tensor:
    """Return boxes as offsets from anchors: the inverse of `box_decode`.

    For the centres (x, y) and extents (w, h) of a box, and (x', y') and (w', h') of its anchor:

        ((x - x') / w' / s0, (y - y') / h' / s1, (log(w) - log(w')) / s2, (log(h) - log(h')) / s3)

    An empty box gives minus infinity, and an empty anchor infinity or NaN. Negative extents give
    NaN.

    Args:
        boxes: floats [n, 4]: (x1, y1, x2, y2).
        anchors: floats [n, 4] of the same dtype, likewise.
        stds: the scales s0 to s3, above 0. They are rounded to the dtype that is computed in.

    Returns:
        A tensor [n, 4] of the dtype of `boxes`. f16 and bf16 are computed in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: S. Ren et al., "Faster R-CNN", NeurIPS 2015, equation 2; GluonCV,
    NormalizedBoxCenterEncoder.

    Example::

        >>> B = rc.placeholder((1, 4), name="B")
        >>> A = rc.placeholder((1, 4), name="A")
        >>> b = np.array([[1, 0, 3, 2]], "float32")
        >>> a = np.array([[0, 0, 2, 2]], "float32")
        >>> C = rc.topi.box_encode(B, A)
        >>> print(*rc.oracle.evaluate([C], {B: b, A: a}))
        [[4. 0. 0. 0.]]
    """
    _require_pairs("box_encode", boxes, anchors, stds)
    work = boxes.dtype if boxes.dtype.bits >= 32 else F32

    def offset(i: Expr, k: Expr) -> Expr:
        axis = maths.floormod(k, 2)
        first, last = (cast(work, boxes[i, axis + side]) for side in (0, 2))
        begin, end = (cast(work, anchors[i, axis + side]) for side in (0, 2))
        extent = end - begin
        moved = ((first + last) - (begin + end)) * 0.5 / extent
        grown = maths.log(last - first) - maths.log(extent)
        scaled = maths.select(k < 2, moved, grown) / entry(stds, k, work)
        return cast(boxes.dtype, scaled)

    return compute(extents(boxes), offset, name="box_encode", tag=INJECTIVE)


def _require_pairs(
    operator: str, first: Tensor, anchors: Tensor, stds: Sequence[float]
) -> None:
    _require_boxes(operator, first, anchors)
    require_extent(
        extents(anchors)[0],
        extents(first)[0],
        operator,
        "the number of anchors",
        tensors=(first, anchors),
    )
    if len(stds) != 4 or not all(number > 0 for number in stds):
        raise UserError(
            f"{operator} cannot scale by {tuple(stds)}",
            remedy="give four numbers above 0",
        )


def entry(numbers: Sequence[float], place: Expr, dtype: DType) -> Expr:
    """Return numbers[place] as a constant of a float dtype."""
    chosen = const(float(numbers[-1]), dtype)
    for k, number in enumerate(numbers[:-1]):
        chosen = maths.select(place.equal(k), const(float(number), dtype), chosen)
    return chosen


def _sample_pairs(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    count = draws.extent(0)
    boxes = sample_boxes(draws, count, dtype)
    anchors = sample_boxes(draws, count, dtype)
    stds = draws.choice(((0.125, 0.125, 0.25, 0.25), (0.1, 0.1, 0.2, 0.2)))
    return Sample((boxes, anchors), {"stds": stds})


@meaning_of(box_encode, sample=_sample_pairs)
def box_encode_numpy(
    boxes: Array, anchors: Array, *, stds: Sequence[float] = (0.125, 0.125, 0.25, 0.25)
) -> Array:
    scales = rounded_numbers(stds, boxes)
    wide = boxes.astype(np.longdouble)
    other = anchors.astype(np.longdouble)
    with np.errstate(all="ignore"):
        extent = other[:, 2:] - other[:, :2]
        centres = (wide[:, :2] + wide[:, 2:]) / 2
        moved = (centres - (other[:, :2] + other[:, 2:]) / 2) / extent
        grown = np.log(wide[:, 2:] - wide[:, :2]) - np.log(extent)
        return np.asarray(np.hstack([moved, grown]) / scales, boxes.dtype)


def rounded_numbers(numbers: Sequence[float], data: Array) -> Array:
    """Return numbers rounded to the dtype that is computed in, for data of a dtype."""
    work = np.float64 if data.dtype == np.float64 else np.float32
    return np.asarray(numbers, work).astype(np.longdouble)


def rounded_exp(numbers: Array, data: Array) -> Array:
    """Return exponentials rounded to the dtype that is computed in, where they may overflow."""
    work = np.float64 if data.dtype == np.float64 else np.float32
    return np.exp(numbers).astype(work).astype(np.longdouble)


def box_decode(
    deltas: Tensor,
    anchors: Tensor,
    *,
    stds: Sequence[float] = (0.125, 0.125, 0.25, 0.25),
) -> Tensor:
    """Return boxes from their offsets from anchors: the inverse of `box_encode`.

    The anchor has the centre (x', y') and the extents (w', h'). The offset (a, b, c, d) means:

        centre     (a * s0 * w' + x', b * s1 * h' + y')
        extents    (exp(c * s2) * w', exp(d * s3) * h')

    NaN and infinity propagate. An exponential that overflows is infinite, and 0 times it is NaN.

    Args:
        deltas: floats [n, 4].
        anchors: floats [n, 4] of the same dtype: (x1, y1, x2, y2).
        stds: the scales s0 to s3, above 0. They are rounded to the dtype that is computed in.

    Returns:
        A tensor [n, 4] of the dtype of `deltas`: (x1, y1, x2, y2). f16 and bf16 are computed in
        f32.

    Raises:
        UserError: an argument is not as described.

    Reference: S. Ren et al., "Faster R-CNN", NeurIPS 2015, equation 2; GluonCV,
    NormalizedBoxCenterDecoder.

    Example::

        >>> D = rc.placeholder((1, 4), name="D")
        >>> A = rc.placeholder((1, 4), name="A")
        >>> d = np.array([[4, 0, 0, 0]], "float32")
        >>> a = np.array([[0, 0, 2, 2]], "float32")
        >>> C = rc.topi.box_decode(D, A)
        >>> print(*rc.oracle.evaluate([C], {D: d, A: a}))
        [[1. 0. 3. 2.]]
    """
    _require_pairs("box_decode", deltas, anchors, stds)
    work = deltas.dtype if deltas.dtype.bits >= 32 else F32

    def corner(i: Expr, k: Expr) -> Expr:
        axis = maths.floormod(k, 2)
        begin, end = (cast(work, anchors[i, axis + side]) for side in (0, 2))
        extent = end - begin
        moved = cast(work, deltas[i, axis]) * entry(stds[:2], axis, work)
        centre = moved * extent + (begin + end) * 0.5
        grown = cast(work, deltas[i, axis + 2]) * entry(stds[2:], axis, work)
        half = maths.exp(grown) * extent * 0.5
        return cast(deltas.dtype, maths.select(k < 2, centre - half, centre + half))

    return compute(extents(deltas), corner, name="box_decode", tag=INJECTIVE)


def _sample_box_decode(draws: Draws) -> Sample:
    sample = _sample_pairs(draws)
    _, anchors = sample.operands
    assert anchors is not None
    deltas = draws.array(anchors.shape, str(anchors.dtype))
    return Sample((deltas, anchors), sample.attributes)


@meaning_of(box_decode, sample=_sample_box_decode)
def box_decode_numpy(
    deltas: Array, anchors: Array, *, stds: Sequence[float] = (0.125, 0.125, 0.25, 0.25)
) -> Array:
    with np.errstate(all="ignore"):
        scaled = deltas.astype(np.longdouble) * rounded_numbers(stds, deltas)
        other = anchors.astype(np.longdouble)
        extent = other[:, 2:] - other[:, :2]
        centres = scaled[:, :2] * extent + (other[:, :2] + other[:, 2:]) / 2
        halves = rounded_exp(scaled[:, 2:], deltas) * extent / 2
        return np.asarray(np.hstack([centres - halves, centres + halves]), deltas.dtype)

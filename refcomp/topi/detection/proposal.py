"""Proposals of regions, from the predictions of a region proposal network.

Reference: S. Ren et al., "Faster R-CNN: Towards Real-Time Object Detection with Region Proposal
Networks", NeurIPS 2015; TVM, topi.vision.rcnn.proposal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.detection.boxes import entry, rounded_exp, rounded_numbers
from refcomp.topi.detection.nms import (
    get_valid_counts,
    get_valid_counts_numpy,
    non_max_suppression,
    non_max_suppression_numpy,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.tags import SHARED


def proposal(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    *,
    scales: Sequence[float] = (4.0, 8.0, 16.0, 32.0),
    ratios: Sequence[float] = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    threshold: float = 0.7,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    rpn_min_size: int = 16,
) -> list[Tensor]:
    """Return the best regions of each image, without those that overlap a better one.

    Anchor a belongs to ratio a // s and scale a % s, for s scales. With the stride t, its extents
    are, for the root r = floor(sqrt(floor(t * t / ratio)) + 0.5):

        w' = r * scale
        h' = floor(r * ratio + 0.5) * scale

    Its centre at the place (y, x) of the map is (x * t + (t - 1) / 2, y * t + (t - 1) / 2). A
    prediction (a, b, c, d) moves it to the centre plus (a * w', b * h'), and gives it the extents
    exp(c) * w' and exp(d) * h'. A region of extents (w, h) reaches from its centre by (w - 1) / 2
    and (h - 1) / 2 to both sides. All corners are moved into the image: 0 to width - 1, and 0 to
    height - 1.

    A region is dropped if x2 - x1 + 1 or y2 - y1 + 1 is less than rpn_min_size * scale of the
    image, or if its score is NaN or minus infinity. The others are suppressed as by
    `non_max_suppression`, where the area of a region is (x2 - x1 + 1) * (y2 - y1 + 1).

    Args:
        cls_prob: floats [n, 2 * anchors, h, w] of constant extents: the scores of the background,
            then those of the regions.
        bbox_pred: floats [n, 4 * anchors, h, w] of the same dtype: (a, b, c, d) of each anchor.
        im_info: floats [n, 3] of the same dtype: height, width and scale of each image.
        scales: scales of anchors, above 0.
        ratios: ratios of height to width of anchors, above 0.
        feature_stride: pixels from one place of the map to the next, at least 1.
        threshold: the greatest intersection over union that is allowed, 0 to 1.
        rpn_pre_nms_top_n: the most regions of an image that are compared, best first; -1 for all.
        rpn_post_nms_top_n: the most regions of an image that are returned, at least 1.
        rpn_min_size: the least extent of a region, in pixels of the unscaled image.

    Returns:
        A tensor [n * rpn_post_nms_top_n, 5] of the dtype of `cls_prob`: the image, then
        (x1, y1, x2, y2). Corners from the count of an image on are 0. Then the number of regions of
        each image, an i32 tensor [n]. f16 and bf16 are computed in f32.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.rcnn.proposal, which repeats regions from the count on.

    Example::

        >>> P = rc.placeholder((1, 2, 1, 1), name="P")
        >>> B = rc.placeholder((1, 4, 1, 1), name="B")
        >>> I = rc.placeholder((1, 3), name="I")
        >>> options = {"scales": (1.0,), "ratios": (1.0,), "rpn_post_nms_top_n": 1}
        >>> outputs = rc.topi.proposal(P, B, I, **options)
        >>> feeds = {P: np.ones((1, 2, 1, 1), "float32"), B: np.zeros((1, 4, 1, 1), "float32")}
        >>> feeds[I] = np.array([[32, 32, 1]], "float32")
        >>> rois, count = rc.oracle.evaluate(outputs, feeds)
        >>> print(rois, count)
        [[ 0.  0.  0. 15. 15.]] [1]
    """
    _check_options(scales, ratios, feature_stride, rpn_post_nms_top_n)
    anchors = _anchors(scales, ratios, feature_stride)
    _check_proposals(cls_prob, bbox_pred, im_info, len(anchors))
    regions = _regions(
        cls_prob, bbox_pred, im_info, anchors, feature_stride, rpn_min_size
    )
    counts, valid, places = get_valid_counts(regions, score_threshold=-math.inf)
    kept, _, found = non_max_suppression(
        valid,
        counts,
        places,
        max_output_size=rpn_post_nms_top_n,
        iou_threshold=threshold,
        force_suppress=True,
        top_k=rpn_pre_nms_top_n,
    )
    size = require_constant(extents(kept)[1], "the number of regions")

    def element(row: Expr, column: Expr) -> Expr:
        image = maths.floordiv(row, rpn_post_nms_top_n)
        number = maths.floormod(row, rpn_post_nms_top_n)
        place = maths.minimum(number, const(size - 1, "int64"))
        corner = kept[image, place, maths.maximum(column, const(1, "int64")) + 1]
        # Corners on the right and at the bottom are one pixel farther, for the areas.
        moved = maths.select(column > 2, corner - 1, corner)
        zero = const(0, cls_prob.dtype)
        chosen = maths.select(number < found[image], moved, zero)
        return maths.select(column.equal(0), cast(cls_prob.dtype, image), chosen)

    shape = (extents(cls_prob)[0] * rpn_post_nms_top_n, 5)
    rois = compute(shape, element, name="proposal", tag=INJECTIVE)
    return [rois, found]


def _anchors(
    scales: Sequence[float], ratios: Sequence[float], stride: int
) -> list[tuple[float, float]]:
    """Return the width and the height of each anchor."""
    found = []
    for ratio in ratios:
        root = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        height = math.floor(root * ratio + 0.5)
        found += [(root * scale, height * scale) for scale in scales]
    return found


def _regions(
    cls_prob: Tensor,
    bbox_pred: Tensor,
    im_info: Tensor,
    anchors: Sequence[tuple[float, float]],
    stride: int,
    min_size: int,
) -> Tensor:
    """Return [n, region, 6]: the class 0 or -1, the score, x1, y1, x2 + 1 and y2 + 1."""
    work = cls_prob.dtype if cls_prob.dtype.bits >= 32 else F32
    count = len(anchors)
    batch, _, height, width = extents(cls_prob)

    def corners(n: Expr, place: Expr, anchor: Expr, axis: int) -> tuple[Expr, Expr]:
        """Return both ends of a region along an axis, of which 0 is x."""
        y = maths.floordiv(place, width)
        x = maths.floormod(place, width)
        extent = entry([box[axis] for box in anchors], anchor, work)
        middle = cast(work, (x, y)[axis] * stride) + (stride - 1) / 2
        delta = cast(work, bbox_pred[n, anchor * 4 + axis, y, x])
        growth = cast(work, bbox_pred[n, anchor * 4 + axis + 2, y, x])
        centre = delta * extent + middle
        half = (maths.exp(growth) * extent - 1.0) * 0.5
        last = cast(work, im_info[n, 1 - axis]) - 1.0
        zero = const(0, work)
        ends = (centre - half, centre + half)
        first, second = (maths.maximum(maths.minimum(e, last), zero) for e in ends)
        return first, second + 1.0

    def element(n: Expr, region: Expr, part: Expr) -> Expr:
        place = maths.floordiv(region, count)
        anchor = maths.floormod(region, count)
        left, right = corners(n, place, anchor, 0)
        top, bottom = corners(n, place, anchor, 1)
        least = cast(work, im_info[n, 2]) * float(min_size)
        is_small = maths.any(right - left < least, bottom - top < least)
        label = maths.select(is_small, const(-1, work), const(0, work))
        y = maths.floordiv(place, width)
        score = cast(work, cls_prob[n, count + anchor, y, maths.floormod(place, width)])
        result = bottom
        for number, value in enumerate((label, score, left, top, right)):
            result = maths.select(part.equal(number), value, result)
        return cast(cls_prob.dtype, result)

    shape = (batch, height * width * count, 6)
    return compute(shape, element, name="regions", tag=SHARED)


def _check_options(
    scales: Sequence[float], ratios: Sequence[float], stride: int, rows: int
) -> None:
    numbers = (*scales, *ratios)
    if not scales or not ratios or not all(number > 0 for number in numbers):
        raise UserError(
            f"proposal cannot use the scales {tuple(scales)} and the ratios {tuple(ratios)}",
            remedy="give one or more numbers above 0 for each",
        )
    if stride < 1 or rows < 1:
        raise UserError(
            f"proposal cannot have the feature_stride {stride} "
            f"and the rpn_post_nms_top_n {rows}",
            remedy="give numbers >= 1",
        )


def _check_proposals(
    cls_prob: Tensor, bbox_pred: Tensor, im_info: Tensor, anchors: int
) -> None:
    ranks = (
        (cls_prob, 4, "cls_prob"),
        (bbox_pred, 4, "bbox_pred"),
        (im_info, 2, "im_info"),
    )
    for tensor, rank, what in ranks:
        require_float(tensor, "proposal")
        require_rank(tensor, rank, "proposal", what)
    require_one_dtype("proposal", cls_prob, bbox_pred, im_info)
    batch, _, height, width = (
        require_constant(extent, "each extent of proposal")
        for extent in extents(cls_prob)
    )
    wanted = (
        (cls_prob, (batch, 2 * anchors, height, width), "cls_prob"),
        (bbox_pred, (batch, 4 * anchors, height, width), "bbox_pred"),
        (im_info, (batch, 3), "im_info"),
    )
    for tensor, shape, what in wanted:
        for axis, extent in enumerate(shape):
            described = f"extent {axis} of {what}"
            actual = extents(tensor)[axis]
            require_extent(actual, extent, "proposal", described, tensors=(tensor,))
    if height * width == 0:
        raise UserError(
            "proposal cannot find regions in a map without places",
            remedy="give a map with at least one row and one column",
            earlier=[cls_prob.declaration()],
        )


def _sample_proposal(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    scales = draws.choice(((1.0,), (1.0, 2.0)))
    ratios = draws.choice(((1.0,), (0.5, 2.0)))
    anchors = len(scales) * len(ratios)
    batch = draws.integer(1, 2)
    size = draws.pair(1, 2)
    scores = draws.array((batch, 2 * anchors, *size), dtype)
    deltas = draws.uniform((batch, 4 * anchors, *size), -0.75, 0.75, dtype)
    image = draws.integers((batch, 3), 8, 24).astype(dtype)
    image[:, 2] = draws.choice((1.0, 0.5))
    options = {
        "scales": scales,
        "ratios": ratios,
        "feature_stride": draws.choice((4, 8)),
        "threshold": draws.choice((0.3, 0.7)),
        "rpn_pre_nms_top_n": draws.choice((-1, 3)),
        "rpn_post_nms_top_n": draws.integer(1, 5),
        "rpn_min_size": draws.choice((0, 4)),
    }
    return Sample((scores, deltas, image), options)


@meaning_of(proposal, pattern="opaque", sample=_sample_proposal)
def proposal_numpy(
    cls_prob: Array,
    bbox_pred: Array,
    im_info: Array,
    *,
    scales: Sequence[float] = (4.0, 8.0, 16.0, 32.0),
    ratios: Sequence[float] = (0.5, 1.0, 2.0),
    feature_stride: int = 16,
    threshold: float = 0.7,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    rpn_min_size: int = 16,
) -> list[Array]:
    numbers = [
        number for box in _anchors(scales, ratios, feature_stride) for number in box
    ]
    sizes = rounded_numbers(numbers, cls_prob).reshape(-1, 2)
    batch, _, height, width = cls_prob.shape
    # [n, y, x, anchor, (x, y)]
    deltas = bbox_pred.reshape(batch, len(sizes), 4, height, width)
    deltas = deltas.transpose(0, 3, 4, 1, 2).astype(np.longdouble)
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    middle = np.stack([x, y], axis=-1)[:, :, None] * feature_stride
    centres = deltas[..., :2] * sizes + middle + (feature_stride - 1) / 2
    with np.errstate(all="ignore"):
        halves = (rounded_exp(deltas[..., 2:], cls_prob) * sizes - 1) / 2
        info = im_info.astype(np.longdouble).reshape(batch, 1, 1, 1, 3)
        last = info[..., 1::-1] - 1
        first = np.maximum(np.minimum(centres - halves, last), 0)
        end = np.maximum(np.minimum(centres + halves, last), 0) + 1
    is_small = np.any(end - first < rpn_min_size * info[..., 2:], axis=-1)
    scores = cls_prob[:, len(sizes) :].transpose(0, 2, 3, 1)
    columns = [-is_small.astype(float)[..., None], scores[..., None], first, end]
    regions = np.concatenate(columns, axis=-1).astype(cls_prob.dtype)
    counts, valid, places = get_valid_counts_numpy(
        regions.reshape(batch, -1, 6), score_threshold=-math.inf
    )
    kept, _, found = non_max_suppression_numpy(
        valid,
        counts,
        places,
        max_output_size=rpn_post_nms_top_n,
        iou_threshold=threshold,
        force_suppress=True,
        top_k=rpn_pre_nms_top_n,
    )
    rois = np.zeros((batch, rpn_post_nms_top_n, 5), cls_prob.dtype)
    for image in range(batch):
        rois[image, :, 0] = image
        boxes = kept[image, : found[image], 2:].astype(np.longdouble)
        rois[image, : found[image], 1:] = boxes - np.array([0, 0, 1, 1])
    return [rois.reshape(-1, 5), found]

"""Anchors of SSD detectors: the boxes of each place, and predictions relative to them.

Reference: W. Liu et al., "SSD: Single Shot MultiBox Detector", ECCV 2016; TVM, topi.vision.ssd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import F32
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import cast, const
from refcomp.te import maths, reducer
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.reducer import reduce_axis
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.detection.boxes import entry, rounded_exp, rounded_numbers
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
)
from refcomp.topi.tags import REDUCTION


def multibox_prior(
    data: Tensor,
    *,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Tensor:
    """Return the anchors of each place of a map of features.

    Each place has a square box for each size, then a box of the first size for each ratio but the
    first. The centre of all boxes of the place (y, x) is

        ((x + offsets[1]) * steps[1], (y + offsets[0]) * steps[0])

    The half width is size * h / w * sqrt(ratio) / 2, and the half height is size / sqrt(ratio) / 2.
    The ratio is 1 for the square boxes. The image has the width 1 and the height 1. The values of
    `data` are not read.

    Args:
        data: floats [n, c, h, w]; h and w are constant and at least 1.
        sizes: sizes relative to the image's height, above 0.
        ratios: ratios of width to height, above 0. The first is not used.
        steps: from one centre to the next, down and across. By default 1 / h and 1 / w.
        offsets: of the first centre, down and across, in steps.
        clip: True to move all coordinates to 0 ... 1.

    Returns:
        A tensor [1, h * w * (number of sizes + ratios - 1), 4] of the dtype of `data`:
        (x1, y1, x2, y2). f16 and bf16 are computed in f32. Half extents, steps and offsets are
        rounded to the dtype that is computed in.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.ssd.multibox_prior.

    Example::

        >>> A = rc.placeholder((1, 8, 1, 1), name="A")
        >>> B = rc.topi.multibox_prior(A, sizes=(0.5, 1.0))
        >>> print(rc.oracle.evaluate([B], {})[0][0])
        [[0.25 0.25 0.75 0.75]
         [0.   0.   1.   1.  ]]
    """
    require_float(data, "multibox_prior")
    require_rank(data, 4, "multibox_prior", "the data")
    height, width = (
        require_constant(extent, "a spatial extent") for extent in extents(data)[2:]
    )
    _check_anchors(sizes, ratios, steps, offsets)
    work = data.dtype if data.dtype.bits >= 32 else F32
    count = len(sizes) + len(ratios) - 1
    halves = _half_extents(sizes, ratios, height / max(width, 1))

    def centre(place: Expr, axis: int) -> Expr:
        moved = cast(work, place) + const(float(offsets[axis]), work)
        if steps:
            return moved * const(float(steps[axis]), work)
        return moved / const(float((height, width)[axis]), work)

    def corner(_: Expr, anchor: Expr, k: Expr) -> Expr:
        place = maths.floordiv(anchor, count)
        shape = maths.floormod(anchor, count)
        x = centre(maths.floormod(place, width), 1)
        y = centre(maths.floordiv(place, width), 0)
        is_x = maths.floormod(k, 2).equal(0)
        middle = maths.select(is_x, x, y)
        half_x = entry([half[0] for half in halves], shape, work)
        half_y = entry([half[1] for half in halves], shape, work)
        half = maths.select(is_x, half_x, half_y)
        value = maths.select(k < 2, middle - half, middle + half)
        if clip:
            value = maths.maximum(maths.minimum(value, const(1, work)), const(0, work))
        return cast(data.dtype, value)

    return compute(
        (1, height * width * count, 4), corner, name="multibox_prior", tag=INJECTIVE
    )


def _check_anchors(
    sizes: Sequence[float],
    ratios: Sequence[float],
    steps: Sequence[float],
    offsets: Sequence[float],
) -> None:
    for what, numbers in (("sizes", sizes), ("ratios", ratios)):
        if not numbers or not all(number > 0 for number in numbers):
            raise UserError(
                f"multibox_prior cannot use the {what} {tuple(numbers)}",
                remedy="give one or more numbers above 0",
            )
    if len(offsets) != 2 or len(steps) not in (0, 2):
        raise UserError(
            f"multibox_prior cannot use the steps {tuple(steps)} "
            f"and the offsets {tuple(offsets)}",
            remedy="give two numbers for each: down and across",
        )


def _half_extents(
    sizes: Sequence[float], ratios: Sequence[float], aspect: float
) -> list[tuple[float, float]]:
    """Return half the width and half the height of each box of a place."""
    boxes = [(size, 1.0) for size in sizes]
    boxes += [(sizes[0], math.sqrt(ratio)) for ratio in ratios[1:]]
    return [(size * aspect * root / 2, size / root / 2) for size, root in boxes]


def _sample_multibox_prior(draws: Draws) -> Sample:
    data = draws.array((1, 1, *draws.pair(1, 3)), draws.float_dtype())
    options: dict[str, object] = {
        "sizes": draws.choice(((1.0,), (0.5, 0.75), (0.2, 0.3, 0.9))),
        "ratios": draws.choice(((1.0,), (1.0, 2.0), (1.0, 0.5, 3.0))),
        "offsets": draws.choice(((0.5, 0.5), (0.25, 0.0), (0.3, 0.7))),
        "clip": draws.flag(),
    }
    if draws.flag():
        options["steps"] = (0.25, 0.3)
    return Sample((data,), options)


@meaning_of(multibox_prior, sample=_sample_multibox_prior)
def multibox_prior_numpy(
    data: Array,
    *,
    sizes: Sequence[float] = (1.0,),
    ratios: Sequence[float] = (1.0,),
    steps: Sequence[float] = (),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Array:
    height, width = data.shape[2:]
    first = rounded_numbers(offsets, data)
    centres = [
        np.arange(n) + start for n, start in zip((height, width), first, strict=True)
    ]
    if steps:
        scale = rounded_numbers(steps, data)
        centres = [
            centre * factor for centre, factor in zip(centres, scale, strict=True)
        ]
    else:
        centres = [centres[0] / height, centres[1] / width]
    roots = [1.0] * len(sizes) + [math.sqrt(ratio) for ratio in ratios[1:]]
    whole = list(sizes) + [sizes[0]] * (len(ratios) - 1)
    aspect = height / width
    half_x = [s * aspect * root / 2 for s, root in zip(whole, roots, strict=True)]
    half_y = [s / root / 2 for s, root in zip(whole, roots, strict=True)]
    y, x = np.meshgrid(*centres, indexing="ij")
    middle = np.stack([x, y], axis=-1)[:, :, None]
    halves = np.stack(
        [rounded_numbers(half_x, data), rounded_numbers(half_y, data)], axis=-1
    )
    boxes = np.concatenate([middle - halves, middle + halves], axis=-1)
    if clip:
        boxes = np.clip(boxes, 0, 1)
    return np.asarray(boxes.reshape(1, -1, 4), data.dtype)


def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> list[Tensor]:
    """Return the box of each anchor with its best class, from the predictions of an SSD network.

    The class of an anchor is the one with the greatest probability, the first of equal ones. Class
    0 is the background, which is left out; the next class is number 0 of the result. An anchor is
    valid if this probability is at least `threshold`. Otherwise its class is -1. A box is decoded
    as by `box_decode`, with `variances` for the scales:

        centre     (a * v0 * w' + x', b * v1 * h' + y')
        extents    (exp(c * v2) * w', exp(d * v3) * h')

    An exponential that overflows is infinite, and 0 times it is NaN. Boxes stay in the order of the
    anchors. A NaN is the greatest probability, and not
    valid.

    Args:
        cls_prob: floats [n, classes, anchors]; at least two classes.
        loc_pred: floats [n, anchors * 4] of the same dtype: (a, b, c, d) of each anchor.
        anchor: floats [1, anchors, 4] of the same dtype: (x1, y1, x2, y2).
        clip: True to move all coordinates to 0 ... 1.
        threshold: the least probability of a valid box. It is rounded to the dtype of `cls_prob`.
        variances: the scales v0 to v3. They are rounded to the dtype that is computed in.

    Returns:
        A tensor [n, anchors, 6] of the dtype of `cls_prob`: the class, its probability, then
        (x1, y1, x2, y2). f16 and bf16 are computed in f32. Then an i32 tensor [n]: how many boxes
        of an image are valid.

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.ssd.multibox_transform_loc, which moves valid boxes to the front.

    Example::

        >>> P = rc.placeholder((1, 2, 1), name="P")
        >>> L = rc.placeholder((1, 4), name="L")
        >>> A = rc.placeholder((1, 1, 4), name="A")
        >>> outputs = rc.topi.multibox_transform_loc(P, L, A)
        >>> p = np.array([[[0.25], [0.75]]], "float32")
        >>> a = np.array([[[0, 0, 0.5, 1]]], "float32")
        >>> feeds = {P: p, L: np.zeros((1, 4), "float32"), A: a}
        >>> boxes, count = rc.oracle.evaluate(outputs, feeds)
        >>> print(boxes[0, 0], count)
        [0.   0.75 0.   0.   0.5  1.  ] [1]
    """
    _check_predictions(cls_prob, loc_pred, anchor, variances)
    batch, classes, anchors = extents(cls_prob)
    k = reduce_axis((1, classes), "k")
    greatest = compute(
        (batch, anchors),
        lambda n, a: reducer.max(cls_prob[n, k.var, a], axis=k),
        name="greatest",
        tag=REDUCTION,
    )
    j = reduce_axis((1, classes), "j")

    def first_of(n: Expr, a: Expr) -> Expr:
        value = cls_prob[n, j.var, a]
        most = greatest[n, a]
        are_nan = maths.all(maths.isnan(value), maths.isnan(most))
        is_greatest = maths.any(value.equal(most), are_nan)
        return reducer.min(cast("int32", j.var), axis=j, where=is_greatest)

    best = compute((batch, anchors), first_of, name="best", tag=REDUCTION)

    box = _decoded(loc_pred, anchor, clip, variances)

    def is_valid(n: Expr, a: Expr) -> Expr:
        return greatest[n, a] >= const(threshold, cls_prob.dtype)

    def element(n: Expr, a: Expr, part: Expr) -> Expr:
        absent = const(-1, "int32")
        chosen = maths.select(is_valid(n, a), best[n, a] - 1, absent)
        score = maths.select(
            part.equal(0), cast(cls_prob.dtype, chosen), greatest[n, a]
        )
        # Not `select`: the parts before a box have no coordinate that could be read.
        return maths.if_then_else(part < 2, score, box[n, a, part - 2])

    boxes = compute(
        (batch, anchors, 6), element, name="multibox_transform_loc", tag=INJECTIVE
    )
    m = reduce_axis(anchors, "m")
    counts = compute(
        (batch,),
        lambda n: reducer.sum(cast("int32", is_valid(n, m.var)), axis=m),
        name="valid_count",
        tag=REDUCTION,
    )
    return [boxes, counts]


def _decoded(
    loc_pred: Tensor, anchor: Tensor, clip: bool, variances: Sequence[float]
) -> Tensor:
    """Return the box [n, anchor, corner] of each anchor."""
    work = anchor.dtype if anchor.dtype.bits >= 32 else F32

    def corner(n: Expr, a: Expr, side: Expr) -> Expr:
        axis = maths.floormod(side, 2)
        begin, end = (cast(work, anchor[0, a, axis + place]) for place in (0, 2))
        extent = end - begin
        moved = cast(work, loc_pred[n, a * 4 + axis]) * entry(variances[:2], axis, work)
        centre = moved * extent + (begin + end) * 0.5
        grown = cast(work, loc_pred[n, a * 4 + axis + 2])
        half = maths.exp(grown * entry(variances[2:], axis, work)) * extent * 0.5
        value = maths.select(side < 2, centre - half, centre + half)
        if clip:
            value = maths.maximum(maths.minimum(value, const(1, work)), const(0, work))
        return cast(anchor.dtype, value)

    shape = (extents(loc_pred)[0], extents(anchor)[1], 4)
    return compute(shape, corner, name="box", tag=INJECTIVE)


def _check_predictions(
    cls_prob: Tensor, loc_pred: Tensor, anchor: Tensor, variances: Sequence[float]
) -> None:
    operator = "multibox_transform_loc"
    ranks = (
        (cls_prob, 3, "cls_prob"),
        (loc_pred, 2, "loc_pred"),
        (anchor, 3, "anchor"),
    )
    for tensor, rank, what in ranks:
        require_float(tensor, operator)
        require_rank(tensor, rank, operator, what)
    require_one_dtype(operator, cls_prob, loc_pred, anchor)
    batch, classes, anchors = extents(cls_prob)
    count = require_constant(anchors, "the number of anchors")
    if require_constant(classes, "the number of classes") < 2:
        raise UserError(
            f"multibox_transform_loc takes two or more classes, not {classes}",
            remedy="give the background first, then at least one class",
            earlier=[cls_prob.declaration()],
        )
    wanted = (
        (loc_pred, 0, batch, "the batch of loc_pred"),
        (loc_pred, 1, 4 * count, "the second extent of loc_pred"),
        (anchor, 0, 1, "the first extent of anchor"),
        (anchor, 1, count, "the number of anchors"),
        (anchor, 2, 4, "the extent of an anchor"),
    )
    for tensor, axis, extent, what in wanted:
        actual = extents(tensor)[axis]
        require_extent(actual, extent, operator, what, tensors=(cls_prob, tensor))
    if len(variances) != 4:
        raise UserError(
            f"multibox_transform_loc cannot scale by {tuple(variances)}",
            remedy="give four numbers",
        )


def _sample_multibox_transform_loc(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    batch, classes, anchors = draws.extent(0), draws.integer(2, 4), draws.extent(0)
    probabilities = draws.array((batch, classes, anchors), dtype)
    offsets = draws.array((batch, anchors * 4), dtype)
    corners = draws.integers((1, anchors, 2), 0, 4)
    reach = draws.integers((1, anchors, 2), 0, 4)
    boxes = np.concatenate([corners, corners + reach], axis=2) / 8
    options = {
        "clip": draws.flag(),
        "threshold": draws.choice((0.01, 0.5, 0.0)),
        "variances": draws.choice(((0.1, 0.1, 0.2, 0.2), (0.125, 0.25, 0.5, 1.0))),
    }
    return Sample((probabilities, offsets, boxes.astype(dtype)), options)


@meaning_of(
    multibox_transform_loc, pattern="opaque", sample=_sample_multibox_transform_loc
)
def multibox_transform_loc_numpy(
    cls_prob: Array,
    loc_pred: Array,
    anchor: Array,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> list[Array]:
    batch, _, anchors = cls_prob.shape
    foreground = cls_prob[:, 1:]
    best = foreground.argmax(axis=1)  # the first NaN, if there is one
    score = np.take_along_axis(foreground, best[:, None], axis=1)[:, 0]
    is_valid = score >= cls_prob.dtype.type(threshold)
    scaled = loc_pred.astype(np.longdouble).reshape(batch, anchors, 4)
    with np.errstate(all="ignore"):
        scaled = scaled * rounded_numbers(variances, cls_prob)
        wide = anchor.astype(np.longdouble)
        extent = wide[..., 2:] - wide[..., :2]
        centre = scaled[..., :2] * extent + (wide[..., 2:] + wide[..., :2]) / 2
        half = rounded_exp(scaled[..., 2:], cls_prob) * extent / 2
        corners = np.concatenate([centre - half, centre + half], axis=2)
    if clip:
        corners = np.clip(corners, 0, 1)
    labels = np.where(is_valid, best, -1)
    boxes = np.concatenate([labels[..., None], score[..., None], corners], axis=2)
    return [boxes.astype(cls_prob.dtype), is_valid.sum(axis=1).astype(np.int32)]

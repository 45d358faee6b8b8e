"""Non-maximum suppression for each class, from boxes and scores of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir.builder import BufferPointer
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.detection.suppression import (
    Corners,
    Suppression,
    centered_corners,
    corners_of,
    overlaps_more,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.compaction import set_positions
from refcomp.topi.search.ordering import sorted_order
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_one_dtype,
    require_rank,
    widen,
)


def all_class_non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    *,
    max_output_boxes_per_class: int,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    center_point_box: bool = False,
) -> list[Tensor]:
    """Return the best boxes of each class, without those that overlap a better one.

    The boxes of a class are visited by descending score; of equal scores, the first box comes
    first. A box is kept unless its intersection over union with a kept one is greater than the
    threshold. Boxes with NaN coordinates or without an area do not overlap. A NaN score is not
    kept. Each class takes as many steps as boxes times kept boxes, serially; classes and batches
    are divided among threads.

    Args:
        boxes: floats [batch, boxes, 4]: y and x of one corner, then of the opposite one.
        scores: of the dtype of `boxes`, [batch, classes, boxes]. All extents are constant.
        max_output_boxes_per_class: the most boxes that are kept of a class, at least 0.
        iou_threshold: the greatest intersection over union that is allowed, 0 to 1.
        score_threshold: only greater scores are kept; None for all.
        center_point_box: True if a box is x and y of its centre, its width and its height.

    Returns:
        The kept boxes as rows (batch, class, box), i64, by batch, class and descending score. There
        is room for all; rows from the count on are 0. Then the count, an i64 tensor of shape (1,).

    Raises:
        UserError: a rank, an extent, a dtype or an attribute does not fit.

    Reference: ONNX NonMaxSuppression; TVM, topi.vision.all_class_non_max_suppression.

    Example::

        >>> B, S = rc.placeholder((1, 3, 4), name="B"), rc.placeholder((1, 1, 3), name="S")
        >>> N = rc.topi.all_class_non_max_suppression(
        ...     B, S, max_output_boxes_per_class=2, iou_threshold=0.5
        ... )
        >>> b = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]], "float32")
        >>> s = np.array([[[0.8, 0.9, 0.7]]], "float32")
        >>> rows, count = rc.oracle.evaluate(N, {B: b, S: s})
        >>> print(rows.tolist(), count)
        [[0, 0, 1], [0, 0, 2]] [2]
    """
    operator = "all_class_non_max_suppression"
    _check_operands(boxes, scores, operator)
    check_thresholds(operator, max_output_boxes_per_class, iou_threshold)
    what = f"{operator}: each extent"
    batches, classes, size = (require_constant(n, what) for n in extents(scores))
    room = min(size, max_output_boxes_per_class)
    lines = batches * classes
    by_score = sorted_order(scores, 2, is_ascend=False)
    order = compute(
        (lines, size),
        lambda line, i: by_score[line // classes, line % classes, i],
        name="order",
        tag=INJECTIVE,
    )

    def corners(read: BufferPointer, line: Expr, box: Expr) -> Corners:
        parts = [read[line // classes, box, k] for k in range(4)]
        return (centered_corners if center_point_box else corners_of)(*parts)

    def is_candidate(
        read: Sequence[BufferPointer], line: Expr, _place: Expr, box: Expr
    ) -> Expr:
        score = read[1][line // classes, line % classes, box]
        is_number = score.equal(score)
        if score_threshold is None:
            return is_number
        return maths.all(is_number, score > const(score_threshold, score.dtype))

    def suppresses(
        read: Sequence[BufferPointer], line: Expr, kept: Expr, box: Expr
    ) -> Expr:
        first = corners(read[0], line, kept)
        return overlaps_more(first, corners(read[0], line, box), iou_threshold)

    suppression = Suppression(
        order=order,
        inputs=(boxes, scores),
        room=room,
        is_candidate=is_candidate,
        suppresses=suppresses,
    )
    return _rows(*suppression.kept("kept"), classes, room)


def _check_operands(boxes: Tensor, scores: Tensor, operator: str) -> None:
    require_rank(boxes, 3, operator, "the tensor of boxes")
    require_rank(scores, 3, operator, "the tensor of scores")
    require_float(boxes, operator)
    require_one_dtype(operator, boxes, scores)
    tensors = (boxes, scores)
    wanted = {
        "the number of batches": (extents(scores)[0], extents(boxes)[0]),
        "the number of scores": (extents(scores)[2], extents(boxes)[1]),
        "the number of coordinates": (extents(boxes)[2], 4),
    }
    for what, (actual, expected) in wanted.items():
        require_extent(actual, expected, operator, what, tensors=tensors)


def check_thresholds(operator: str, most: int, iou_threshold: float) -> None:
    """Raise UserError for a negative number of boxes, or a threshold that is not in 0 ... 1."""
    if most < 0:
        raise UserError(
            f"{operator} cannot keep {most} boxes", remedy="give a number >= 0"
        )
    if not 0 <= iou_threshold <= 1:
        raise UserError(
            f"{operator} cannot have the threshold {iou_threshold} of overlap",
            why="intersection over union is between 0 and 1",
            remedy="give a number from 0 to 1",
        )


def _rows(numbers: Tensor, counts: Tensor, classes: int, room: int) -> list[Tensor]:
    """Return (batch, class, box) for the kept boxes of all lines, and their number."""
    lines = extents(counts)[0]
    assert isinstance(lines, int)
    size = lines * room

    def is_kept(place: Expr) -> Expr:
        number = (place % room).astype("int32")
        return (number < counts[place // room]).astype("int32")

    flags = compute((size,), is_kept, name="flags", tag=INJECTIVE)
    positions, count = set_positions(flags)

    def element(k: Expr, column: Expr) -> Expr:
        line = positions[k] // room
        box = numbers[line, positions[k] % room].astype("int64")
        row = maths.select(column == 0, line // classes, line % classes)
        found = maths.select(column == 2, box, row)
        return maths.select(k < count[0], found, const(0, "int64"))

    rows = compute((size, 3), element, name="selected", tag=INJECTIVE)
    return [rows, count]


def _sample_all_class_non_max_suppression(draws: Draws) -> Sample:
    batches, classes = draws.pair(1, 2)
    size = draws.integer(0, 5)
    dtype = draws.float_dtype()
    boxes = draws.uniform((batches, size, 4), 0, 1, dtype)
    if draws.flag():
        # Squares that touch, and so do not overlap.
        boxes = 2 * draws.integers((batches, size, 4), 0, 1).astype(boxes.dtype)
        boxes[..., 2:] = 2
    scores = draws.array((batches, classes, size), dtype)
    attributes: dict[str, object] = {
        "max_output_boxes_per_class": draws.integer(0, 4),
        "iou_threshold": draws.choice((0.0, draws.number(0, 1))),
        "center_point_box": draws.flag(),
    }
    if draws.flag():
        attributes["score_threshold"] = draws.number(-1, 1)
    return Sample((boxes, scores), attributes)


@meaning_of(
    all_class_non_max_suppression,
    pattern="opaque",
    sample=_sample_all_class_non_max_suppression,
)
def all_class_non_max_suppression_numpy(
    boxes: Array,
    scores: Array,
    *,
    max_output_boxes_per_class: int,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    center_point_box: bool = False,
) -> list[Array]:
    batches, classes, size = scores.shape
    corners = widen(boxes)
    if center_point_box:
        half = corners[..., 2:] / 2
        corners = np.concatenate(
            [corners[..., :2] - half, corners[..., :2] + half], axis=-1
        )
    # As the compute sees it.
    least = None if score_threshold is None else scores.dtype.type(score_threshold)
    limit = scores.dtype.type(iou_threshold)
    rows = []
    for batch, label in np.ndindex(batches, classes):
        kept: list[int] = []
        line = scores[batch, label]
        for box in np.argsort(-widen(line), kind="stable"):
            is_low = least is not None and not line[box] > least
            if np.isnan(line[box]) or is_low or len(kept) == max_output_boxes_per_class:
                continue
            overlaps = [overlap(corners[batch, k], corners[batch, box]) for k in kept]
            if not any(value > limit for value in overlaps):
                kept.append(int(box))
        rows += [(batch, label, box) for box in kept]
    room = batches * classes * min(size, max_output_boxes_per_class)
    result = np.zeros((room, 3), np.int64)
    if rows:
        result[: len(rows)] = rows
    return [result, np.array([len(rows)], np.int64)]


def overlap(a: Array, b: Array) -> float:
    """Return intersection over union of two boxes, each given by opposite corners."""
    low = np.maximum(np.minimum(a[:2], a[2:]), np.minimum(b[:2], b[2:]))
    high = np.minimum(np.maximum(a[:2], a[2:]), np.maximum(b[:2], b[2:]))
    shared_area = np.prod(np.maximum(high - low, 0))
    areas = [np.prod(np.abs(box[2:] - box[:2])) for box in (a, b)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(shared_area / (areas[0] + areas[1] - shared_area))

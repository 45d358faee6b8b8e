"""Suppression of overlapping boxes of a batch, as detectors of the classic API use it.

A box is a row of numbers: a class, a score and four coordinates, in any columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.errors import UserError
from refcomp.ir import builder
from refcomp.ir.builder import BufferPointer
from refcomp.ir.expr import Expr
from refcomp.ir.promotion import const
from refcomp.ir.stmt import Stmt
from refcomp.ir.view import BufferView
from refcomp.te import maths
from refcomp.te.extents import extents, require_extent
from refcomp.te.externs import extern
from refcomp.te.operation import compute
from refcomp.te.tag import INJECTIVE
from refcomp.te.tensor import Tensor
from refcomp.topi.detection.all_class_nms import check_thresholds, overlap
from refcomp.topi.detection.suppression import (
    Corners,
    Suppression,
    corners_of,
    overlaps_more,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.search.ordering import sorted_order
from refcomp.topi.shapes import (
    Array,
    require_constant,
    require_float,
    require_rank,
    widen,
)


def get_valid_counts(
    data: Tensor,
    *,
    score_threshold: float = 0.0,
    id_index: int = 0,
    score_index: int = 1,
) -> list[Tensor]:
    """Move the boxes with a high score to the front of each batch, and count them.

    A box is valid if its score is greater than the threshold, and its class is not negative. NaN is
    not greater than anything. Valid boxes keep their order. A thread visits all boxes of a batch.

    Args:
        data: floats [batch, boxes, numbers of a box].
        score_threshold: the score that valid boxes exceed.
        id_index: the column of the class; -1 if there is none.
        score_index: the column of the score.

    Returns:
        The number of valid boxes of each batch, i32 of shape (batch,). The boxes, in a tensor like
        `data` whose rows from the count on are -1. Then the place of each box in `data`, i32 of
        shape (batch, boxes), also with -1 from the count on.

    Raises:
        UserError: `data` has another rank or dtype, or a column does not exist.

    Reference: TVM, topi.vision.get_valid_counts.

    Example::

        >>> A = rc.placeholder((1, 3, 2), name="A")
        >>> a = np.array([[[0, 0.1], [2, 0.9], [-1, 0.8]]], "float32")
        >>> V = rc.topi.get_valid_counts(A, score_threshold=0.5)
        >>> counts, boxes, places = rc.oracle.evaluate(V, {A: a})
        >>> print(counts, places)
        [1] [[ 1 -1 -1]]
        >>> print(boxes[0].round(1).tolist()[:2])
        [[2.0, 0.8999999761581421], [-1.0, -1.0]]
    """
    require_rank(data, 3, "get_valid_counts", "the tensor of boxes")
    require_float(data, "get_valid_counts")
    columns = {"id_index": id_index, "score_index": score_index}
    _check_columns("get_valid_counts", data, columns)
    batches, size, _ = data.shape

    def is_valid(row: Sequence[Expr]) -> Expr:
        score = row[score_index]
        is_high = score > const(score_threshold, score.dtype)
        if id_index < 0:
            return is_high
        return maths.all(is_high, row[id_index] >= const(0, score.dtype))

    def statement(ins: Sequence[BufferView], outs: Sequence[BufferView]) -> Stmt:
        ib = builder.create()
        boxes = ib.buffer_ptr(ins[0])
        counts = ib.buffer_ptr(outs[0])
        places = ib.buffer_ptr(outs[1])
        width = max(id_index, score_index) + 1
        with ib.for_range(0, batches, name="batch", for_type="parallel") as batch:
            counts[batch] = 0
            with ib.for_range(0, size, name="i") as i:
                places[batch, i] = -1
                row = [boxes[batch, i, column] for column in range(width)]
                with ib.if_scope(is_valid(row)):
                    places[batch, counts[batch]] = i
                    counts[batch] = counts[batch] + 1
        return ib.get()

    found, at = extern(
        [(batches,), (batches, size)],
        [data],
        statement,
        name="valid",
        dtype=["int32", "int32"],
    )
    # Copies, since the outputs of an extern are arguments of a function together or not at all.
    counts = compute((batches,), lambda b: found[b], name="counts", tag=INJECTIVE)
    places = compute(
        (batches, size), lambda b, i: at[b, i], name="places", tag=INJECTIVE
    )

    def element(b: Expr, i: Expr, column: Expr) -> Expr:
        return _or_minus_one(data, b, at[b, i], column, found[b] > i)

    boxes = compute(data.shape, element, name="valid_boxes", tag=INJECTIVE)
    return [counts, boxes, places]


def _or_minus_one(
    data: Tensor, batch: Expr, place: Expr, column: Expr, is_valid: Expr
) -> Expr:
    """Return a number of a box, or -1 if the box is not valid."""
    at = maths.maximum(place, 0).astype("int64")
    return maths.select(is_valid, data[batch, at, column], const(-1, data.dtype))


def _check_columns(operator: str, data: Tensor, columns: dict[str, int]) -> None:
    width = extents(data)[2]
    for name, column in columns.items():
        least = -1 if name == "id_index" else 0
        if column < least or (isinstance(width, int) and column >= width):
            raise UserError(
                f"{operator} cannot find the column {name} = {column}",
                remedy=f"use a number of {least} to the numbers of a box - 1",
                earlier=[data.declaration()],
            )


def _sample_get_valid_counts(draws: Draws) -> Sample:
    width = draws.integer(2, 4)
    shape = (draws.integer(1, 3), draws.integer(0, 6), width)
    data = draws.array(shape, draws.float_dtype())
    score_index, id_index = draws.order(width)[:2]
    attributes = {
        "score_threshold": draws.number(-1, 1),
        "id_index": draws.choice((id_index, -1)),
        "score_index": score_index,
    }
    return Sample((data,), attributes)


@meaning_of(get_valid_counts, pattern="opaque", sample=_sample_get_valid_counts)
def get_valid_counts_numpy(
    data: Array,
    *,
    score_threshold: float = 0.0,
    id_index: int = 0,
    score_index: int = 1,
) -> list[Array]:
    is_valid = data[..., score_index] > data.dtype.type(score_threshold)
    if id_index >= 0:
        is_valid &= data[..., id_index] >= 0
    boxes = np.full_like(data, -1)
    places = np.full(data.shape[:2], -1, np.int32)
    for batch, valid in enumerate(is_valid):
        (found,) = np.nonzero(valid)
        boxes[batch, : len(found)] = data[batch, found]
        places[batch, : len(found)] = found
    return [is_valid.sum(axis=1, dtype=np.int32), boxes, places]


def non_max_suppression(
    data: Tensor,
    valid_count: Tensor,
    indices: Tensor,
    *,
    max_output_size: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
) -> list[Tensor]:
    """Return the best boxes of each batch, without those that overlap a better one.

    The valid boxes are visited by descending score; of equal scores, the first box comes first. A
    box is kept unless its intersection over union with a kept one of its class is greater than the
    threshold. Boxes with NaN coordinates or without an area do not overlap. A box with a NaN score
    is not kept. A thread visits the boxes of a batch, and takes as many steps as boxes times kept
    boxes.

    Args:
        data: floats [batch, boxes, numbers of a box] of constant extents. The valid boxes of a
            batch come first, as `get_valid_counts` returns them.
        valid_count: the number of valid boxes of each batch, i32 of shape (batch,).
        indices: i32 of shape (batch, boxes): the numbers by which boxes are reported.
        max_output_size: the most boxes that are kept of a batch; -1 for all.
        iou_threshold: the greatest intersection over union that is allowed, 0 to 1.
        force_suppress: True to compare boxes of different classes, too.
        top_k: the most boxes that are visited, best first; -1 for all.
        coord_start: the first of four columns of coordinates: two opposite corners.
        score_index: the column of the score.
        id_index: the column of the class; -1 if there is none.

    Returns:
        The kept boxes by descending score, in a tensor like `data` whose rows from the count on are
        -1. The `indices` of the kept boxes, i32 of shape (batch, boxes), with -1 from the count on.
        Then the number of kept boxes of each batch, i32 of shape (batch,).

    Raises:
        UserError: a rank, an extent, a dtype, a column or an attribute does not fit.

    Reference: TVM, topi.vision.non_max_suppression.

    Example::

        >>> A = rc.placeholder((1, 3, 6), name="A")
        >>> V = rc.placeholder((1,), "int32", name="V")
        >>> I = rc.placeholder((1, 3), "int32", name="I")
        >>> a = [[[0, 0.8, 0, 0, 1, 1], [0, 0.9, 0, 0, 1, 0.9], [1, 0.7, 0, 0, 1, 1]]]
        >>> feeds = {V: np.array([3], "int32"), I: np.array([[10, 11, 12]], "int32")}
        >>> N = rc.topi.non_max_suppression(A, V, I)
        >>> _, kept, counts = rc.oracle.evaluate(N, {A: np.array(a, "float32"), **feeds})
        >>> print(kept, counts)
        [[11 12 -1]] [2]
    """
    operator = "non_max_suppression"
    batches, size = _boxes_of(data, id_index, score_index, coord_start)
    check_thresholds(operator, max(max_output_size, 0), iou_threshold)
    _check_counts(valid_count, indices, (batches, size))
    room = size if max_output_size < 0 else min(size, max_output_size)
    visited = size if top_k < 0 else top_k

    def key(b: Expr, i: Expr) -> Expr:
        lowest = maths.min_value(data.dtype)
        is_valid = i < valid_count[b].astype("int64")
        return maths.select(is_valid, data[b, i, score_index], lowest)

    keys = compute((batches, size), key, name="keys", tag=INJECTIVE)

    def is_candidate(
        read: Sequence[BufferPointer], batch: Expr, place: Expr, box: Expr
    ) -> Expr:
        score = read[0][batch, box, score_index]
        is_valid = box < read[1][batch].astype("int64")
        return maths.all(place < visited, is_valid, score.equal(score))

    def suppresses(
        read: Sequence[BufferPointer], batch: Expr, kept: Expr, box: Expr
    ) -> Expr:
        def corners(number: Expr) -> Corners:
            return corners_of(
                *[read[0][batch, number, coord_start + k] for k in range(4)]
            )

        overlaps = overlaps_more(corners(kept), corners(box), iou_threshold)
        if force_suppress or id_index < 0:
            return overlaps
        label = read[0][batch, kept, id_index]
        return maths.all(label.equal(read[0][batch, box, id_index]), overlaps)

    numbers, counts = Suppression(
        order=sorted_order(keys, 1, is_ascend=False),
        inputs=(data, valid_count),
        room=room,
        is_candidate=is_candidate,
        suppresses=suppresses,
    ).kept("kept")
    return _reported(data, indices, numbers, counts, room)


def _boxes_of(
    data: Tensor, id_index: int, score_index: int, coord_start: int
) -> tuple[int, int]:
    """Return the numbers of batches and boxes. Raise UserError if `data` does not fit."""
    operator = "non_max_suppression"
    require_rank(data, 3, operator, "the tensor of boxes")
    require_float(data, operator)
    columns = {
        "id_index": id_index,
        "score_index": score_index,
        "coord_start": coord_start,
        "coord_start + 3": coord_start + 3,
    }
    _check_columns(operator, data, columns)
    what = f"{operator}: each extent"
    batches, size, _ = (require_constant(extent, what) for extent in extents(data))
    return batches, size


def _check_counts(valid_count: Tensor, indices: Tensor, sizes: tuple[int, int]) -> None:
    operator = "non_max_suppression"
    require_rank(valid_count, 1, operator, "the tensor of counts")
    require_rank(indices, 2, operator, "the tensor of indices")
    for tensor in (valid_count, indices):
        if str(tensor.dtype) != "i32":
            raise UserError(
                f"{operator} takes counts and indices of i32, not {tensor.dtype}",
                remedy='convert them first: x[i].astype("int32")',
                earlier=[tensor.declaration()],
            )
        for extent, wanted in zip(extents(tensor), sizes, strict=False):
            what = f"an extent of {tensor.name}"
            require_extent(extent, wanted, operator, what, tensors=(tensor,))


def _reported(
    data: Tensor, indices: Tensor, numbers: Tensor, counts: Tensor, room: int
) -> list[Tensor]:
    """Return the kept boxes, their indices, and the counts."""

    def number_at(b: Expr, i: Expr) -> Expr:
        return numbers[b, maths.minimum(i, max(room - 1, 0))].astype("int64")

    def element(b: Expr, i: Expr, column: Expr) -> Expr:
        if not room:
            return const(-1, data.dtype)
        return _or_minus_one(data, b, number_at(b, i), column, counts[b] > i)

    def index(b: Expr, i: Expr) -> Expr:
        if not room:
            return const(-1, "int32")
        return maths.select(counts[b] > i, indices[b, number_at(b, i)], -1)

    boxes = compute(data.shape, element, name="kept_boxes", tag=INJECTIVE)
    reported = compute(indices.shape, index, name="kept_indices", tag=INJECTIVE)
    return [boxes, reported, counts]


def _sample_non_max_suppression(draws: Draws) -> Sample:
    batches = draws.integer(1, 2)
    size = draws.integer(0, 6)
    dtype = draws.float_dtype()
    data = draws.uniform((batches, size, 6), 0, 1, dtype)
    coord_start = draws.choice((0, 2))
    id_index, score_index = ((0, 1), (5, 4))[coord_start == 0]
    data[..., id_index] = draws.integers(data.shape[:2], 0, 1)
    data[..., score_index] = draws.array(data.shape[:2], dtype)
    counts = draws.integers((batches,), 0, size)
    indices = draws.integers((batches, size), 0, 99)
    attributes = {
        "max_output_size": draws.integer(-1, 4),
        "iou_threshold": draws.number(0, 1),
        "force_suppress": draws.flag(),
        "top_k": draws.choice((-1, -1, 3)),
        "coord_start": coord_start,
        "score_index": score_index,
        "id_index": draws.choice((id_index, -1)),
    }
    return Sample((data, counts, indices), attributes)


@meaning_of(non_max_suppression, pattern="opaque", sample=_sample_non_max_suppression)
def non_max_suppression_numpy(
    data: Array,
    valid_count: Array,
    indices: Array,
    *,
    max_output_size: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
) -> list[Array]:
    boxes = np.full_like(data, -1)
    reported = np.full_like(indices, -1)
    counts = np.zeros_like(valid_count)
    limit = data.dtype.type(iou_threshold)
    ignores_class = force_suppress or id_index < 0
    for batch, rows in enumerate(data):
        valid = rows[: valid_count[batch]]
        corners = widen(valid[:, coord_start : coord_start + 4])
        order = _by_score(valid[:, score_index])
        kept: list[int] = []
        for box in order if top_k < 0 else order[:top_k]:
            rivals = [
                other
                for other in kept
                if ignores_class or valid[other, id_index] == valid[box, id_index]
            ]
            overlaps = [overlap(corners[other], corners[box]) for other in rivals]
            has_room = max_output_size < 0 or len(kept) < max_output_size
            is_number = not np.isnan(valid[box, score_index])
            if has_room and is_number and not any(x > limit for x in overlaps):
                kept.append(box)
        boxes[batch, : len(kept)] = valid[kept]
        reported[batch, : len(kept)] = indices[batch, kept]
        counts[batch] = len(kept)
    return [boxes, reported, counts]


def _by_score(scores: Array) -> list[int]:
    """Return the boxes by descending score, with NaN first."""
    numbers = np.flip(np.argsort(np.flip(widen(scores)), kind="stable"))
    return [len(scores) - 1 - int(number) for number in numbers]

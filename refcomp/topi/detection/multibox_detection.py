"""Detections of SSD networks: decoded boxes, without those that overlap a better one.

Reference: W. Liu et al., "SSD: Single Shot MultiBox Detector", ECCV 2016; TVM, topi.vision.ssd.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.te.tensor import Tensor
from refcomp.topi.detection.multibox import (
    multibox_transform_loc,
    multibox_transform_loc_numpy,
)
from refcomp.topi.detection.nms import (
    get_valid_counts,
    get_valid_counts_numpy,
    non_max_suppression,
    non_max_suppression_numpy,
)
from refcomp.topi.draws import Draws, Sample
from refcomp.topi.operator import meaning_of
from refcomp.topi.shapes import Array


def multibox_detection(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> list[Tensor]:
    """Return the detected boxes, best first, from the predictions of an SSD network.

    These are three operators, whose pages have the details. `multibox_transform_loc` decodes the
    boxes. `get_valid_counts` moves valid boxes to the front. `non_max_suppression` drops boxes that
    overlap a better box of their class.

    Args:
        cls_prob: floats [n, classes, anchors] of constant extents; class 0 is the background.
        loc_pred: floats [n, anchors * 4] of the same dtype.
        anchor: floats [1, anchors, 4] of the same dtype: (x1, y1, x2, y2).
        clip: True to move all coordinates to 0 ... 1.
        threshold: the least probability of a valid box.
        nms_threshold: the greatest intersection over union that is allowed, 0 to 1.
        force_suppress: True to compare boxes of different classes, too.
        variances: four scales of the encoding.
        nms_topk: the most boxes of an image that are compared, best first; -1 for all.

    Returns:
        A tensor [n, anchors, 6] of the dtype of `cls_prob`: the class, its probability, then
        (x1, y1, x2, y2). Rows from the count on are -1. Then the number of boxes of each image, an
        i32 tensor [n].

    Raises:
        UserError: an argument is not as described.

    Reference: TVM, topi.vision.ssd.multibox_detection.

    Example::

        >>> P = rc.placeholder((1, 2, 2), name="P")
        >>> L = rc.placeholder((1, 8), name="L")
        >>> A = rc.placeholder((1, 2, 4), name="A")
        >>> outputs = rc.topi.multibox_detection(P, L, A)
        >>> p = np.array([[[0.5, 0.25], [0.5, 0.75]]], "float32")
        >>> a = np.array([[[0, 0, 1, 0.875], [0, 0, 1, 1]]], "float32")
        >>> feeds = {P: p, L: np.zeros((1, 8), "float32"), A: a}
        >>> boxes, count = rc.oracle.evaluate(outputs, feeds)
        >>> print(boxes[0, : count[0]])
        [[0.   0.75 0.   0.   1.   1.  ]]
    """
    decoded, _ = multibox_transform_loc(
        cls_prob,
        loc_pred,
        anchor,
        clip=clip,
        threshold=threshold,
        variances=variances,
    )
    # The class of a box below the threshold is -1, so its score needs no second comparison.
    counts, boxes, places = get_valid_counts(decoded, score_threshold=-np.inf)
    kept, _, found = non_max_suppression(
        boxes,
        counts,
        places,
        iou_threshold=nms_threshold,
        force_suppress=force_suppress,
        top_k=nms_topk,
    )
    return [kept, found]


def _sample_multibox_detection(draws: Draws) -> Sample:
    dtype = draws.float_dtype()
    batch, classes, anchors = draws.integer(1, 2), draws.integer(2, 3), draws.extent(0)
    corners = draws.integers((1, anchors, 2), 0, 4)
    reach = draws.integers((1, anchors, 2), 0, 4)
    boxes = np.concatenate([corners, corners + reach], axis=2) / 8
    operands = (
        draws.array((batch, classes, anchors), dtype),
        draws.uniform((batch, anchors * 4), -1.0, 1.0, dtype),
        boxes.astype(dtype),
    )
    options = {
        "clip": draws.flag(),
        "threshold": draws.choice((0.01, 0.5, 0.0)),
        "nms_threshold": draws.choice((0.3, 0.5)),
        "force_suppress": draws.flag(),
        "nms_topk": draws.choice((-1, 2)),
    }
    return Sample(operands, options)


@meaning_of(multibox_detection, pattern="opaque", sample=_sample_multibox_detection)
def multibox_detection_numpy(
    cls_prob: Array,
    loc_pred: Array,
    anchor: Array,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> list[Array]:
    decoded, _ = multibox_transform_loc_numpy(
        cls_prob,
        loc_pred,
        anchor,
        clip=clip,
        threshold=threshold,
        variances=variances,
    )
    counts, boxes, places = get_valid_counts_numpy(decoded, score_threshold=-np.inf)
    kept, _, found = non_max_suppression_numpy(
        boxes,
        counts,
        places,
        iou_threshold=nms_threshold,
        force_suppress=force_suppress,
        top_k=nms_topk,
    )
    return [kept, found]

"""Classic operators of object detectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from refcomp.foundation.dtype import DType, as_dtype
from refcomp.foundation.errors import UserError
from refcomp.graph.graph import Value
from refcomp.graph.symbol.declare import classic
from refcomp.graph.symbol.movement import constant_extents
from refcomp.graph.symbol.operator import Attributes, NodeMaker
from refcomp.topi.operator import Attribute

_BOXES = "[n, boxes, numbers of a box]."


@classic(
    texts={
        "data": "features [n, c, h, w], of which only the extents count.",
        "sizes": "sizes of boxes, relative to the image's height.",
        "ratios": "ratios of width to height.",
        "steps": "from one centre to the next, down and across; -1 for 1 / h and 1 / w.",
        "offsets": "of the first centre, down and across, in steps.",
    }
)
def multibox_prior(
    make: NodeMaker,
    data: Value,
    *,
    sizes: tuple[float, ...] = (1.0,),
    ratios: tuple[float, ...] = (1.0,),
    steps: tuple[float, ...] = (-1.0, -1.0),
    offsets: tuple[float, ...] = (0.5, 0.5),
    clip: bool = False,
) -> Value:
    """Return the anchors of each place of a map of features, (x1, y1, x2, y2).

    The result is [1, h * w * (number of sizes + ratios - 1), 4].
    """
    attributes: dict[str, Attribute] = {"sizes": sizes, "ratios": ratios}
    attributes |= {"offsets": offsets, "clip": clip}
    if steps and min(steps) > 0:
        attributes["steps"] = steps
    return make.last("multibox_prior", [data], attributes)


def _two(_: Attributes) -> int:
    return 2


def _boxes_and_counts(inputs: Sequence[DType], _: Attributes) -> Sequence[DType]:
    return [inputs[0], as_dtype("int32")]


def _counts_and_boxes(inputs: Sequence[DType], _: Attributes) -> Sequence[DType]:
    return [as_dtype("int32"), inputs[0]]


@classic(
    dtypes=_boxes_and_counts,
    count_outputs=_two,
    texts={
        "cls_prob": "[n, classes, anchors], probabilities; class 0 is the background.",
        "loc_pred": "[n, anchors * 4], the offsets of the boxes from their anchors.",
        "anchor": "[1, anchors, 4], as `multibox_prior` returns them.",
        "threshold": "the least probability of a valid box.",
        "variances": "the factors of the offsets.",
    },
)
def multibox_transform_loc(
    make: NodeMaker,
    cls_prob: Value,
    loc_pred: Value,
    anchor: Value,
    *,
    clip: bool = True,
    threshold: float = 0.01,
    variances: tuple[float, ...] = (0.1, 0.1, 0.2, 0.2),
) -> tuple[Value, ...]:
    """Return the valid boxes with their best classes, and how many boxes are valid.

    A box has the numbers (class, probability, x1, y1, x2, y2). Valid boxes stand first, in the
    order of the anchors; the numbers of further rows are -1. The count is int32, of shape [n].
    """
    attributes: dict[str, Attribute] = {"clip": clip, "threshold": threshold}
    attributes["variances"] = variances
    inputs = [cls_prob, loc_pred, anchor]
    boxes, _ = make.steps("multibox_transform_loc", inputs, attributes)
    # A class of -1 marks an invalid box, whatever its probability.
    counting: dict[str, Attribute] = {"score_threshold": -np.inf}
    counts, front, _ = make.last_of_several("get_valid_counts", [boxes], counting, 3)
    return front, counts


@classic(
    dtypes=_counts_and_boxes,
    count_outputs=_two,
    texts={
        "data": _BOXES,
        "score_threshold": "the score that valid boxes exceed.",
        "id_index": "the column of the class; -1 if there is none.",
        "score_index": "the column of the score.",
    },
)
def get_valid_counts(
    make: NodeMaker,
    data: Value,
    *,
    score_threshold: float = 0.0,
    id_index: int = 0,
    score_index: int = 1,
) -> tuple[Value, ...]:
    """Return the number of boxes with a high score, and the boxes with these ones first."""
    attributes: dict[str, Attribute] = {
        "score_threshold": score_threshold,
        "id_index": id_index,
        "score_index": score_index,
    }
    made = make.last_of_several("get_valid_counts", [data], attributes, 3)
    return made[:2]


def _kept_dtype(inputs: Sequence[DType], attributes: Attributes) -> Sequence[DType]:
    is_index = bool(attributes["return_indices"])
    return [as_dtype("int32")] if is_index else inputs[:1]


@classic(
    dtypes=_kept_dtype,
    texts={
        "data": f"{_BOXES[:-1]}; the valid boxes of an image stand first.",
        "valid_count": "int32 [n], the number of valid boxes of each image.",
        "return_indices": "True to return the places of the kept boxes instead of the boxes.",
        "iou_threshold": "the greatest overlap that is allowed, 0 to 1.",
        "force_suppress": "True to compare boxes of different classes, too.",
        "top_k": "the most boxes that are visited, best first; -1 for all.",
        "id_index": "the column of the class; -1 if there is none.",
        "coord_start": "the first of four columns of coordinates.",
        "score_index": "the column of the score.",
        "max_output_size": "the most boxes that are kept of an image; -1 for all.",
        "invalid_to_bottom": "accepted for old files; kept boxes stand first in any case.",
    },
)
def non_max_suppression(
    make: NodeMaker,
    data: Value,
    valid_count: Value,
    *,
    return_indices: bool = False,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    id_index: int = 0,
    coord_start: int = 2,
    score_index: int = 1,
    max_output_size: int = -1,
    invalid_to_bottom: bool = True,
) -> Value:
    """Return the best boxes, without those that overlap a better one of their class.

    Kept boxes stand first, by descending score; the numbers of further rows are -1.
    """
    extents = constant_extents(data.shape[:2])
    if extents is None or len(extents) != 2:
        raise UserError(
            f"non_max_suppression needs boxes of constant extents, not {data}",
            remedy="give the shapes of the inputs as numbers",
        )
    places = np.broadcast_to(np.arange(extents[1], dtype="int32"), extents)
    attributes: dict[str, Attribute] = {
        "iou_threshold": iou_threshold,
        "force_suppress": force_suppress,
        "top_k": top_k,
        "id_index": id_index,
        "coord_start": coord_start,
        "score_index": score_index,
        "max_output_size": max_output_size,
    }
    inputs = [data, valid_count, make.constant("places", places)]
    made = make.last_of_several("non_max_suppression", inputs, attributes, 3)
    return made[1] if return_indices else made[0]


@classic(
    texts={
        "data": "features [n, c, h, w].",
        "rois": "regions [r, 5]: (image, x1, y1, x2, y2).",
        "pooled_size": "rows and columns of bins.",
        "spatial_scale": "the factor from coordinates of regions to elements.",
        "sample_ratio": "samples of a bin along each axis; -1 for as many as it has elements.",
    }
)
def roi_align(
    make: NodeMaker,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[int, int],
    spatial_scale: float,
    sample_ratio: int = -1,
) -> Value:
    """Return the mean of interpolated samples of each bin of each region, [r, c, ph, pw].

    Example::

        >>> x, r = rc.sym.Variable("x"), rc.sym.Variable("r")
        >>> y = rc.sym.roi_align(x, r, pooled_size=(2, 2), spatial_scale=1.0)
        >>> y.infer_shape(x=(1, 3, 8, 8), r=(4, 5))[1]
        [(4, 3, 2, 2)]
    """
    parts: dict[str, Attribute] = {"axis": 1, "sizes": (1, 4)}
    image, boxes = make.steps("split", [rois], parts)
    flat = make.step("squeeze", [image], {"axis": (1,)})
    images = make.step("cast", [flat], {"dtype": "int32"})
    attributes: dict[str, Attribute] = {
        "pooled_size": pooled_size,
        "spatial_scale": spatial_scale,
        "sampling_ratio": max(sample_ratio, 0),
        "coordinates": "output_half_pixel",
    }
    return make.last("roi_align", [data, boxes, images], attributes)


@classic(
    texts={
        "data": "features [n, c, h, w].",
        "rois": "regions [r, 5]: (image, x1, y1, x2, y2).",
        "pooled_size": "rows and columns of bins.",
        "spatial_scale": "the factor from coordinates of regions to elements.",
    }
)
def roi_pool(
    make: NodeMaker,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[int, int],
    spatial_scale: float,
) -> Value:
    """Return the maximum of each bin of each region, [r, c, ph, pw].

    Example::

        >>> x, r = rc.sym.Variable("x"), rc.sym.Variable("r")
        >>> y = rc.sym.roi_pool(x, r, pooled_size=(2, 2), spatial_scale=1.0)
        >>> y.infer_shape(x=(1, 3, 8, 8), r=(4, 5))[1]
        [(4, 3, 2, 2)]
    """
    attributes: dict[str, Attribute] = {"pooled_size": pooled_size}
    attributes["spatial_scale"] = spatial_scale
    return make.last("roi_pool", [data, rois], attributes)


@classic(texts={"stride": "rows and columns of a block."})
def yolo_reorg(make: NodeMaker, data: Value, *, stride: int = 1) -> Value:
    """Move blocks of pixels of [n, c, h, w] to channels, in the order of Darknet."""
    return make.last("yolo_reorg", [data], {"stride": stride})


@classic(
    texts={
        "data": "predictions [n, anchors * (coords + 1 + classes), h, w].",
        "n": "the number of anchors.",
        "classes": "the number of classes.",
        "coords": "the numbers of a box.",
        "background": "True to leave the objectness as it is.",
        "softmax": "True to apply softmax to the classes.",
    }
)
def yolo_region(
    make: NodeMaker,
    data: Value,
    *,
    n: int,
    classes: int,
    coords: int = 4,
    background: bool = False,
    softmax: bool = True,
) -> Value:
    """Apply the activations of YOLO's region layer to the predictions of each anchor.

    Example::

        >>> y = rc.sym.yolo_region(rc.sym.Variable("x"), n=2, classes=3)
        >>> y.infer_shape(x=(1, 16, 4, 4))[1]
        [(1, 16, 4, 4)]
    """
    attributes: dict[str, Attribute] = {
        "anchors": n,
        "classes": classes,
        "coords": coords,
    }
    attributes |= {"background": background, "softmax": softmax}
    return make.last("yolo_region", [data], attributes)

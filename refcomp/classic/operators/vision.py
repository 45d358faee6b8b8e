"""Classic operators of images and regions, such as `topi.image.crop_and_resize`."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.classic.operators.arguments import (
    Sizes,
    chosen,
    lower_case,
    pair_of,
    size_of,
)
from refcomp.foundation.errors import UserError
from refcomp.te.operation import compute
from refcomp.te.tensor import DTypeLike, Tensor
from refcomp.topi.conversion import casts
from refcomp.topi.detection import multibox, multibox_detection, nms, roi, yolo
from refcomp.topi.image import crop, resize_images
from refcomp.topi.movement import axes, slices


def multibox_prior(
    data: Tensor,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Tensor:
    """Return the anchors of a map of features, by `topi.multibox_prior`.

    Steps of -1 stand for 1 / height and 1 / width.
    """
    given = () if all(step < 0 for step in steps) else tuple(steps)
    return multibox.multibox_prior(
        data, sizes=sizes, ratios=ratios, steps=given, offsets=offsets, clip=clip
    )


def roi_pool_nchw(
    data: Tensor, rois: Tensor, pooled_size: Sizes, spatial_scale: float
) -> Tensor:
    """Return the maxima of the bins of regions, by `topi.roi_pool`."""
    size = pair_of(pooled_size, "the size of the result")
    return roi.roi_pool(data, rois, pooled_size=size, spatial_scale=spatial_scale)


def roi_align_nchw(
    data: Tensor,
    rois: Tensor,
    pooled_size: Sizes,
    spatial_scale: float,
    sample_ratio: int = -1,
) -> Tensor:
    """Return the means of samples in the bins of regions, by `topi.roi_align`.

    Args:
        data: images [n, c, h, w].
        rois: regions [r, 5]: the number of the image, then (x1, y1, x2, y2).
        pooled_size: rows and columns of bins.
        spatial_scale: the factor from coordinates of regions to elements.
        sample_ratio: samples of a bin along each axis; -1 for one sample for each element.

    Raises:
        UserError: regions have other columns, or an argument does not fit.
    """
    if [*map(str, rois.shape[1:])] != ["5"]:
        raise UserError(
            f"regions of the shape {rois.shape} do not have 5 columns",
            remedy="give the number of the image, then x1, y1, x2 and y2",
        )
    images = slices.strided_slice(rois, begin=(0,), end=(1,), axes=(1,))
    boxes = slices.strided_slice(rois, begin=(1,), end=(5,), axes=(1,))
    return roi.roi_align(
        data,
        boxes,
        casts.cast(axes.squeeze(images, axis=1), dtype="int32"),
        pooled_size=pair_of(pooled_size, "the size of the result"),
        spatial_scale=spatial_scale,
        sampling_ratio=max(size_of(sample_ratio, "the number of samples"), 0),
        coordinates="output_half_pixel",
    )


def get_valid_counts(
    data: Tensor,
    score_threshold: float = 0,
    id_index: int = 0,
    score_index: int = 1,
) -> list[Tensor]:
    """Return the number of valid boxes, and the boxes with valid ones first.

    The operator is `topi.get_valid_counts`, which returns the places of the boxes, too.
    """
    counts, boxes, _ = nms.get_valid_counts(
        data,
        score_threshold=score_threshold,
        id_index=id_index,
        score_index=score_index,
    )
    return [counts, boxes]


def multibox_transform_loc(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
) -> list[Tensor]:
    """Return the boxes of anchors with valid ones first, and the number of valid boxes.

    `topi.multibox_transform_loc` decodes the boxes, and `topi.get_valid_counts` moves them.
    """
    boxes, _ = multibox.multibox_transform_loc(
        cls_prob,
        loc_pred,
        anchor,
        clip=clip,
        threshold=threshold,
        variances=variances,
    )
    # Each valid box has a class. Scores are probabilities.
    counts, moved = get_valid_counts(boxes, score_threshold=-1)
    return [moved, counts]


def non_max_suppression(
    data: Tensor,
    valid_count: Tensor,
    max_output_size: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Tensor:
    """Return the best boxes, or their places, without those that overlap a better one.

    The operator is `topi.non_max_suppression`. Kept boxes come first, whatever `invalid_to_bottom`
    says. The rows behind them are -1.
    """
    del invalid_to_bottom
    places = compute(data.shape[:2], lambda _, box: box.astype("int32"), name="places")
    boxes, kept, _ = nms.non_max_suppression(
        data,
        valid_count,
        places,
        max_output_size=max_output_size,
        iou_threshold=iou_threshold,
        force_suppress=bool(force_suppress),
        top_k=top_k,
        coord_start=coord_start,
        score_index=score_index,
        id_index=id_index,
    )
    return kept if return_indices else boxes


def detected_boxes(
    cls_prob: Tensor,
    loc_pred: Tensor,
    anchor: Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> Tensor:
    """Return the detected boxes, best first, by `topi.multibox_detection`.

    The rows behind them are -1. This is the classic `multibox_detection`.
    """
    boxes, _ = multibox_detection.multibox_detection(
        cls_prob,
        loc_pred,
        anchor,
        clip=clip,
        threshold=threshold,
        nms_threshold=nms_threshold,
        force_suppress=bool(force_suppress),
        variances=variances,
        nms_topk=nms_topk,
    )
    return boxes


def reorg(data: Tensor, stride: int) -> Tensor:
    """Move blocks of pixels into channels as YOLO does, by `topi.yolo_reorg`."""
    return yolo.yolo_reorg(data, stride=stride)


def resize(
    data: Tensor,
    size: Sizes,
    layout: str = "NCHW",
    method: str | bool = "bilinear",
    align_corners: bool | str = True,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return resized images, by `topi.resize2d`.

    Args:
        data: images.
        size: height and width of the result.
        layout: NCHW or NHWC.
        method: bilinear or nearest_neighbor. TVM 0.5 has `align_corners` here, and `method` behind.
        align_corners: True if the corner pixels of both images are at the same place. Otherwise
            element x of the result is at x * n / m, for the extents n and m.
        out_dtype: the dtype of the result; None for that of the images.

    Raises:
        UserError: the method or the layout is unknown, or an argument does not fit.
    """
    if isinstance(method, bool):  # the order of TVM 0.5
        given = align_corners if isinstance(align_corners, str) else "bilinear"
        method, align_corners = given, method
    modes = {"bilinear": "linear", "nearest_neighbor": "nearest"}
    mode = chosen(lower_case(method, _METHOD), modes, _METHOD)
    resized = resize_images.resize2d(
        data,
        size=pair_of(size, "the size of the result"),
        layout=layout,
        mode=mode,
        coordinates="align_corners" if align_corners else "asymmetric",
        rounding="round_prefer_ceil" if align_corners else "floor",
    )
    return resized if out_dtype is None else casts.cast(resized, dtype=out_dtype)


_METHOD = "the method of resize"


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sizes,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Tensor:
    """Cut boxes out of images, and resize each to one size, by `topi.crop_and_resize`."""
    return crop.crop_and_resize(
        data,
        boxes,
        box_indices,
        crop_size=pair_of(crop_size, "the size of the result"),
        layout=layout,
        method=method,
        extrapolation_value=extrapolation_value,
    )

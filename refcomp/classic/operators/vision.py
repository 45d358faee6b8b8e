"""Classic operators of images and regions, such as `topi.image.crop_and_resize`."""

from __future__ import annotations

from collections.abc import Sequence

from refcomp.classic.operators.arguments import Sizes, pair_of
from refcomp.te.tensor import Tensor
from refcomp.topi.detection import multibox, roi
from refcomp.topi.image import crop


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

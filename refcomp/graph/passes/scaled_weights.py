"""Multiply constant weights by scales: in f64, rounded once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from refcomp.graph.constants import aligned_empty, column_blocks
from refcomp.graph.graph import Array
from refcomp.graph.passes.choose_layout import WEIGHT_TO_PACKED

Scales = npt.NDArray[np.float64]


def scaled_filters(weight: Array, scale: Scales) -> Array:
    """Return the weight of a convolution with each output channel, its first axis, scaled.

    The memory is in the order of packed weights, so that the transpose of choose_layout copies
    nothing: the largest arrays of a model exist once less.
    """
    # Packed, the output channel is the last axis.
    packed = weight.transpose(WEIGHT_TO_PACKED)
    result = aligned_empty(packed.shape, weight.dtype)
    for columns in column_blocks(len(scale)):
        np.multiply(
            packed[..., columns],
            scale[columns],
            out=result[..., columns],
            # The products are f64, and each is rounded once: when it is stored.
            dtype=np.float64,
            casting="same_kind",
        )
    return result.transpose(np.argsort(WEIGHT_TO_PACKED))


def scaled_along(weight: Array, scale: Scales, axis: int) -> Array:
    """Return `weight` with the elements at each index of `axis` multiplied by its scale."""
    shape = [1] * weight.ndim
    shape[axis] = len(scale)
    return np.asarray(weight.astype(np.float64) * scale.reshape(shape), weight.dtype)


def is_normal(products: Array, weight: Array, scale: Scales) -> bool:
    """Return True if no product overflows, and none loses bits because it is too small.

    Such products would differ from those that they replace by more than rounding.
    """
    if not (np.isfinite(weight).all() and np.isfinite(scale).all()):
        return False
    least = np.finfo(weight.dtype).smallest_normal
    sizes = np.abs(products)
    if not np.isfinite(products).all():
        return False
    is_zero = (weight == 0).sum()
    # Zeros of the products come from zeros of the weights, unless a scale is 0.
    return bool((scale == 0).any()) or int((sizes < least).sum()) == int(is_zero)

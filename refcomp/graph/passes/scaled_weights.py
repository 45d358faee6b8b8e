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


# An overflow is looked for below.
@np.errstate(all="ignore")
def scaled(elements: Array, factors: Array) -> Array | None:
    """Return products, rounded once; None if one overflows, or loses bits since it is too small.

    Such products would differ from those that they replace by more than rounding.

    Args:
        elements: floats.
        factors: floats, which broadcast.
    """
    if elements.dtype.kind != "f":
        return None
    exact = elements.astype(np.float64) * factors.astype(np.float64)
    rounded = exact.astype(elements.dtype)
    is_tiny = np.abs(exact) < float(np.finfo(elements.dtype).smallest_normal)
    is_lost = is_tiny & (elements != 0) & (factors != 0)
    return rounded if np.isfinite(rounded).all() and not is_lost.any() else None

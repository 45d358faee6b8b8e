"""Multiply constant weights by scales: in f64, rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import EllipsisType

import numpy as np
import numpy.typing as npt

from refcomp.foundation.mapped_files import give_back
from refcomp.graph.constants import aligned_empty, column_blocks
from refcomp.graph.graph import Array
from refcomp.graph.passes.choose_layout import WEIGHT_TO_PACKED

_BLOCK = 1 << 16  # elements that are multiplied at a time
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
    give_back(weight)
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
    shape = np.broadcast_shapes(elements.shape, factors.shape)
    products = aligned_empty(shape, elements.dtype)
    weights, scales = (np.broadcast_to(one, shape) for one in (elements, factors))
    least = float(np.finfo(elements.dtype).smallest_normal)
    for rows in _row_blocks(shape):
        exact = weights[rows].astype(np.float64) * scales[rows].astype(np.float64)
        products[rows] = exact
        is_tiny = np.abs(exact) < least
        is_lost = is_tiny & (weights[rows] != 0) & (scales[rows] != 0)
        if is_lost.any() or not np.isfinite(products[rows]).all():
            return None
    give_back(elements)
    return products


def _row_blocks(shape: tuple[int, ...]) -> Iterator[slice | EllipsisType]:
    """Yield blocks of the first axis of about `_BLOCK` elements: f64 takes twice the memory."""
    if not shape:
        yield ...
        return
    count = max(1, _BLOCK // max(1, math.prod(shape[1:])))
    for first in range(0, shape[0], count):
        yield slice(first, first + count)

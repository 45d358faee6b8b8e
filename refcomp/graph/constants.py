"""Memory of constants: elements row by row, from the beginning of a cache line.

Compiled code on the host reads such memory where it lies. So the graph and all its executors there
share one copy of the weights, which are most of the memory of a model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from refcomp.graph.graph import Array
from refcomp.graph.memory_plan import ALIGNMENT
from refcomp.runtime.arrays.ndarray import NDArray, array, empty, from_numpy
from refcomp.runtime.device import Device, address_of, cpu

# Columns of a block. Measured: 32 to 128 are equally fast, and 4 times faster than whole rows.
_COLUMNS = 64


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Return an array with undefined elements, row by row, aligned to a cache line."""
    return empty(shape, dtype).numpy()


def aligned(elements: Array) -> Array:
    """Return `elements` if they are aligned and row by row, otherwise a copy that is."""
    if _is_aligned(elements):
        return elements
    copy = aligned_empty(elements.shape, elements.dtype)
    if elements.flags.c_contiguous:
        copy[...] = elements
    else:
        for columns in column_blocks(elements.shape[-1]):
            copy[..., columns] = elements[..., columns]
    return copy


def column_blocks(count: int) -> Iterator[slice]:
    """Yield slices of a few columns each, in which an array is copied to one of another layout.

    If whole rows were written at once, each element of a transposed array would come from another
    cache line, and the line would be gone when its next element is needed.
    """
    for first in range(0, count, _COLUMNS):
        yield slice(first, first + _COLUMNS)


def constant_on(device: Device, elements: Array) -> NDArray:
    """Return a constant on a device. It shares memory with `elements` if the device can use it."""
    # Without alignment, vectors cross cache lines in each run: one copy costs less.
    if device == cpu() and _is_aligned(elements):
        return from_numpy(elements)
    return array(elements, device)


def _is_aligned(elements: Array) -> bool:
    return elements.flags.c_contiguous and address_of(elements) % ALIGNMENT == 0

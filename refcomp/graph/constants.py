"""Memory of constants: elements row by row, from the beginning of a cache line.

Compiled code on the host reads such memory where it lies. So the graph and all its executors there
share one copy of the weights, which are most of the memory of a model. Parts of a model's file are
copied, since the file may change, and their pages are given back.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator

import numpy as np

from refcomp.foundation.mapped_files import file_of, give_back
from refcomp.graph.graph import Array
from refcomp.graph.memory_plan import ALIGNMENT
from refcomp.runtime.arrays.ndarray import NDArray, array, empty, from_numpy
from refcomp.runtime.device import Device, address_of, cpu

# Columns of a block. Measured: 32 to 128 are equally fast, and 4 times faster than whole rows.
_COLUMNS = 64
# Bytes. Arrays of this size have pages of their own, which the system gets back at once. The C
# library keeps freed blocks below 32 MiB, and passes free many arrays of weights.
_MIN_PAGES = 1 << 18
_HUGE_PAGE = 1 << 21
_MAX_HELD = (
    1 << 24
)  # bytes of a file's array that are copied before its memory is given back


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Return an array with undefined elements, row by row, aligned to a cache line."""
    size = math.prod(shape) * dtype.itemsize
    if size < _MIN_PAGES:
        return empty(shape, dtype).numpy()
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= 2 * _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)  # as numpy does
    except (OSError, OverflowError):
        return empty(shape, dtype).numpy()  # whose errors name the shape
    return np.frombuffer(pages, np.uint8).view(dtype).reshape(shape)


def aligned(elements: Array) -> Array:
    """Return `elements` if they are aligned, row by row and lasting, otherwise a copy that is."""
    if _is_ready(elements):
        return elements
    copy = aligned_empty(elements.shape, elements.dtype)
    copy_elements(copy, elements)
    return copy


def lasting(elements: Array) -> Array:
    """Return `elements`, or a copy if they are a part of a file that may change."""
    file = file_of(elements)
    return elements if file is None or file.is_stable else aligned(elements)


def copy_elements(target: Array, source: Array) -> None:
    """Copy all elements of `source` to `target`, an array of the same shape.

    If `source` is a part of a mapped file, its memory is given back piece by piece. So the process
    does not hold both arrays at once, unless the order of their elements differs too much.
    """
    if not source.ndim or not source.size:
        target[...] = source
        return
    columns = [slice(None)]
    if not source.flags.c_contiguous:
        columns = list(column_blocks(source.shape[-1]))
    count = max(1, _MAX_HELD * len(source) // source.nbytes)
    for first in range(0, len(source), count):
        rows = slice(first, first + count)
        for block in columns:
            target[rows][..., block] = source[rows][..., block]
        give_back(source)


def column_blocks(count: int) -> Iterator[slice]:
    """Yield slices of a few columns each, in which an array is copied to one of another layout.

    This matters for a transposed array. If whole rows were written at once, each element would come
    from another cache line. The line would be gone when its next element is needed.
    """
    for first in range(0, count, _COLUMNS):
        yield slice(first, first + _COLUMNS)


def constant_on(device: Device, elements: Array) -> NDArray:
    """Return a constant on a device. It shares memory with `elements` if the device can use it."""
    # Without alignment, vectors cross cache lines in each run: one copy costs less.
    if device == cpu() and _is_ready(elements):
        return from_numpy(elements)
    made = array(elements, device)
    give_back(elements)
    return made


def _is_ready(elements: Array) -> bool:
    """Return True if compiled code may read the elements for as long as it likes."""
    is_aligned = elements.flags.c_contiguous and address_of(elements) % ALIGNMENT == 0
    file = file_of(elements)
    return is_aligned and (file is None or file.is_stable)

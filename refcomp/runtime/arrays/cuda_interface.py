"""The CUDA Array Interface: a dict that describes memory of an NVIDIA GPU, as it is made and read.

Refuses, with UserError, memory that is read-only, masked, has gaps, another byte order, or a start
that is not a multiple of the element's size. Refuses dtypes that refcomp or the protocol lacks.

Source: Numba, CUDA Array Interface (versions 2 and 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.records import record

_VERSION = 3
_DEFAULT_STREAM = 1  # the legacy one, to which all work of refcomp goes


@record
class CudaArray:
    """Memory of an NVIDIA GPU that another library describes."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    has_stream: bool  # True if work on it may be queued


def write_interface(
    address: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> dict[str, object]:
    """Return the description of memory in C's order. Raise Unsupported for bfloat16."""
    if as_dtype(dtype).kind == "bfloat":
        raise Unsupported(
            "a bfloat16 array has no __cuda_array_interface__",
            why="the protocol does not have the dtype",
            remedy="share it by DLPack, or as uint16",
        )
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (0 if 0 in shape else address, False),  # False: it can be written
        "strides": None,
        "version": _VERSION,
        "stream": _DEFAULT_STREAM,
    }


def read_interface(offered: Mapping[str, object], name: str) -> CudaArray:
    """Return what an array of class `name` offers. Raise UserError if it cannot be shared."""
    try:
        array, problem = _read(offered)
    except (LookupError, TypeError, ValueError) as error:
        raise UserError(
            f"the __cuda_array_interface__ of this {name} is malformed",
            why=f"{type(error).__name__}: {error}",
            remedy="use refcomp.from_dlpack",
        ) from error
    if problem:
        raise UserError(
            f"the memory of this {name} cannot be shared: {problem}",
            remedy="copy it with its own library first",
        )
    return array


def _read(offered: Mapping[str, object]) -> tuple[CudaArray, str]:
    """Return the array, and why compiled code cannot use it, "" if it can."""
    given = np.dtype(_text(offered["typestr"]))
    element = to_numpy(as_dtype(given))
    shape = _integers(offered["shape"])
    address, is_read_only = _integers(offered["data"])
    has_stream = offered.get("stream") is not None
    array = CudaArray(address, shape, element, has_stream)
    strides = offered.get("strides")
    if offered.get("mask") is not None:
        return array, "it has a mask"
    if is_read_only:
        return array, "it is read-only, which a kernel cannot respect"
    if given != element:
        return array, f"its byte order is not the GPU's (dtype {given.str})"
    if strides is not None and not _is_compact(array, _integers(strides)):
        return (
            array,
            f"it is not C-contiguous (shape {shape}, strides {strides} bytes)",
        )
    if address % element.itemsize:
        return array, f"its start is not a multiple of {element.itemsize} bytes"
    return array, ""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _integers(value: object) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError(f"{value!r} is not a tuple")
    return tuple(int(item) for item in value)


def _is_compact(array: CudaArray, strides: tuple[int, ...]) -> bool:
    """Return True if the elements lie in C's order without gaps. Strides are in bytes."""
    if len(strides) != len(array.shape):
        raise ValueError(f"strides {strides} for the shape {array.shape}")
    size = array.dtype.itemsize
    return 0 in array.shape or all(
        extent == 1 or stride == prod(array.shape[axis + 1 :]) * size
        for axis, (extent, stride) in enumerate(zip(array.shape, strides, strict=True))
    )

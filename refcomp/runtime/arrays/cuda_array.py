"""Arrays that share memory of an NVIDIA GPU by `__cuda_array_interface__`, as CuPy and Numba do."""

from __future__ import annotations

from collections.abc import Mapping

from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.cuda_interface import read_interface
from refcomp.runtime.arrays.ndarray import DLPACK_CUDA, NDArray
from refcomp.runtime.device import DeviceMemory, device_of_dlpack

_ATTRIBUTE = "__cuda_array_interface__"


def from_cuda_array(source: object, index: int = 0) -> NDArray:
    """Return an array that shares the memory of an array on an NVIDIA GPU.

    Work on the memory that the producer has queued is awaited.

    Args:
        source: an array with `__cuda_array_interface__`, such as one of CuPy, Numba or PyTorch.
        index: the number of the GPU, since the protocol does not say it.

    Raises:
        UserError: `source` does not offer the protocol, is read-only or has a mask, its elements do
            not lie in C's order without gaps, refcomp does not have its dtype, or this machine does
            not have the GPU.

    Source: Numba, CUDA Array Interface (versions 2 and 3).

    Example::

        >>> rc.from_cuda_array(np.zeros(3))
        Traceback (most recent call last):
            ...
        refcomp.foundation.errors.UserError: a ndarray does not offer __cuda_array_interface__...
    """
    name = type(source).__name__
    offered = getattr(source, _ATTRIBUTE, None)
    if not isinstance(offered, Mapping):
        raise UserError(
            f"a {name} does not offer {_ATTRIBUTE}",
            remedy="use refcomp.from_dlpack, or refcomp.array, which copies",
        )
    gpu = device_of_dlpack(DLPACK_CUDA, index)
    assert gpu is not None, "the driver of NVIDIA GPUs shares memory"
    gpu.require()
    array = read_interface(offered, name)
    if array.has_stream:
        gpu.sync()
    memory = DeviceMemory(array.address, source)
    return NDArray(memory, array.shape, array.dtype, gpu)

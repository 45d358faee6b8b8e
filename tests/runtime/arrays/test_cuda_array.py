"""Arrays that share memory of an NVIDIA GPU with other libraries, on the stand-in for pycuda."""

import gc

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.runtime.arrays.cuda_array import from_cuda_array
from refcomp.runtime.arrays.ndarray import array


class Foreign:
    """An array of another library."""

    def __init__(self, description: dict) -> None:
        self.__cuda_array_interface__ = description


def test_memory_is_shared_both_ways(cuda_gpu):
    recording, gpu = cuda_gpu
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = array(values, gpu)
    shared = from_cuda_array(there)
    assert (shared.address, shared.shape, shared.device) == (there.address, (2, 3), gpu)
    there[:] = 7
    assert (shared.asnumpy() == 7).all()
    del there
    gc.collect()
    assert recording.alive == ["memory"], "`shared` keeps the producer"
    del shared
    gc.collect()
    assert recording.alive == []


def test_queued_work_is_awaited(cuda_gpu):
    recording, gpu = cuda_gpu
    there = array(np.zeros(3), gpu)
    description = there.__cuda_array_interface__
    for stream, waits in ((1, 1), (None, 0)):
        recording.calls.clear()
        from_cuda_array(Foreign({**description, "stream": stream}))
        assert recording.calls.count("cuCtxSynchronize") == waits


def test_what_does_not_offer_the_protocol(cuda_gpu):
    for source in (np.zeros(3), array(np.zeros(3)), [1.0]):
        with pytest.raises(UserError, match="does not offer __cuda_array_interface__") as caught:
            from_cuda_array(source)
        assert "from_dlpack" in caught.value.remedy
    assert not hasattr(array(np.zeros(3)), "__cuda_array_interface__")


def test_a_missing_gpu(cuda_gpu):
    _, gpu = cuda_gpu
    with pytest.raises(UserError, match="this machine has no device cuda:4"):
        from_cuda_array(array(np.zeros(3), gpu), 4)


def test_memory_that_cannot_be_shared(cuda_gpu):
    _, gpu = cuda_gpu
    description = array(np.zeros((2, 3), np.float32), gpu).__cuda_array_interface__
    with pytest.raises(UserError, match="memory of this Foreign cannot be shared: it is not C-con"):
        from_cuda_array(Foreign({**description, "strides": (4, 8)}))

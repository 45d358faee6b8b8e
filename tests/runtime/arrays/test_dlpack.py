"""DLPack capsules, written and read without numpy, which judges both directions on the host."""

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from refcomp.foundation.dtype import SCALAR_DTYPES, as_dtype, to_numpy
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.runtime.arrays import dlpack
from refcomp.runtime.arrays.dlpack import read_capsule, write_capsule
from refcomp.runtime.arrays.ndarray import array, from_dlpack
from refcomp.runtime.device import DeviceMemory, address_of

HOST = (1, 0)
PORTABLE = [dtype for dtype in SCALAR_DTYPES if dtype.kind != "bfloat"]


def memory_of(source: np.ndarray) -> DeviceMemory:
    return DeviceMemory(address_of(source), source)


class Offered:
    """Offers one capsule, as lying on `place`."""

    def __init__(self, capsule: object, place: tuple[int, int] = HOST) -> None:
        self.capsule, self.place = capsule, place
        self.requests: list[dict[str, Any]] = []

    def __dlpack__(self, **request: Any) -> object:
        self.requests.append(request)
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place


@pytest.mark.parametrize("dtype", PORTABLE, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_numpy_reads_what_is_written(dtype, shape):
    source = np.ones(shape, to_numpy(dtype))
    there = np.from_dlpack(Offered(write_capsule(memory_of(source), shape, dtype, HOST)))
    assert (there.shape, there.dtype) == (shape, source.dtype)
    np.testing.assert_array_equal(there, source)
    assert np.shares_memory(there, source) or there.size == 0


@pytest.mark.parametrize("dtype", PORTABLE, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 2), (3,), (2, 1, 4)])
def test_what_numpy_writes_is_read(dtype, shape):
    source = np.ones(shape, to_numpy(dtype))
    tensor = read_capsule(source.__dlpack__())
    assert (tensor.shape, tensor.dtype) == (shape, dtype)
    assert tensor.memory.address == address_of(source) or source.size == 0


def test_bfloat16_goes_both_ways():
    source = np.ones((2, 3), ml_dtypes.bfloat16)
    tensor = read_capsule(write_capsule(memory_of(source), (2, 3), as_dtype("bf16"), (2, 1)))
    assert str(tensor.dtype) == "bf16" and tensor.memory.address == address_of(source)


def test_memory_lives_as_long_as_its_consumers():
    before = len(dlpack._exported)
    source = np.full(1000, 3)
    capsule = write_capsule(memory_of(source), (1000,), as_dtype("i64"), HOST)
    there = np.from_dlpack(Offered(capsule))
    del capsule, source
    gc.collect()
    assert len(dlpack._exported) == before + 1 and there.sum() == 3000
    del there
    gc.collect()
    assert len(dlpack._exported) == before
    tensor = read_capsule(write_capsule(memory_of(np.ones(3)), (3,), as_dtype("f64"), HOST))
    assert len(dlpack._exported) == before + 1
    del tensor
    gc.collect()
    assert len(dlpack._exported) == before


def test_a_capsule_that_nobody_reads_releases_the_memory():
    before = len(dlpack._exported)
    write_capsule(memory_of(np.ones(3)), (3,), as_dtype("f64"), HOST)
    gc.collect()
    assert len(dlpack._exported) == before


def test_a_capsule_is_read_once():
    capsule = np.ones(3).__dlpack__()
    kept = read_capsule(capsule)
    for wrong in (capsule, object(), None):
        with pytest.raises(UserError, match="does not return an unused capsule of DLPack"):
            read_capsule(wrong)
    assert kept.shape == (3,)


@pytest.mark.parametrize(
    ("source", "strides"), [(np.zeros((2, 3)).T, "(1, 3)"), (np.zeros((4, 4))[:, ::2], "(4, 2)")]
)
def test_gaps_are_refused(source, strides):
    capsule = source.__dlpack__()
    with pytest.raises(UserError) as caught:
        read_capsule(capsule)
    assert caught.value.what == (
        "the memory of this tensor cannot be shared: it is not C-contiguous "
        f"(shape {source.shape}, strides {strides} elements)"
    )
    assert "x.contiguous()" in caught.value.remedy


def test_strides_of_single_elements_do_not_matter():
    assert read_capsule(np.zeros((8, 3))[::8].__dlpack__()).shape == (1, 3)


def test_a_start_between_elements_is_refused():
    memory = DeviceMemory(address_of(np.zeros(3)) + 2, None)
    with pytest.raises(UserError, match="its start is not a multiple of 4 bytes"):
        read_capsule(write_capsule(memory, (1,), as_dtype("f32"), HOST))


def test_unknown_dtypes_are_refused():
    with pytest.raises(Unsupported, match=r"dtype \(code 5, 64 bits, 1 lanes\)") as caught:
        read_capsule(np.zeros(2, np.complex64).__dlpack__())
    assert "integers, floats, bfloat16 and bool" in caught.value.why
    wide = write_capsule(memory_of(np.zeros(2)), (2,), as_dtype("f64"), HOST)
    address = dlpack._pointer_of(id(wide), b"dltensor")
    for field, value in (("lanes", 2), ("bits", 128), ("code", 3)):
        dtype = dlpack._DLManagedTensor.from_address(address).tensor.dtype
        kept = getattr(dtype, field)
        setattr(dtype, field, value)
        with pytest.raises(Unsupported, match="cannot be shared"):
            read_capsule(wide)
        setattr(dtype, field, kept)
    assert read_capsule(wide).shape == (2,)


# On an NVIDIA GPU.


@pytest.mark.parametrize("dtype", SCALAR_DTYPES, ids=str)
def test_arrays_on_a_gpu_are_shared_both_ways(cuda_gpu, dtype):
    recording, gpu = cuda_gpu
    values = np.ones((2, 3), to_numpy(dtype))
    there = array(values, gpu)
    assert there.__dlpack_device__() == (2, 0)
    offered = Offered(there.__dlpack__(stream=1), (2, 0))
    back = from_dlpack(offered)
    assert offered.requests == [{"stream": 1}]
    assert (back.address, back.shape, back.type, back.device) == (
        *(there.address, (2, 3), dtype, gpu),
    )
    del there, offered
    gc.collect()
    assert recording.alive == ["memory"], "`back` needs it"
    np.testing.assert_array_equal(back.asnumpy(), values)
    del back
    gc.collect()
    assert (recording.alive, recording.leaked) == ([], [])


def test_the_producer_waits_unless_the_consumer_does_not_want_it(cuda_gpu):
    recording, gpu = cuda_gpu
    there = array(np.zeros(3), gpu)
    for stream, waits in ((1, 1), (None, 1), (-1, 0)):
        recording.calls.clear()
        there.__dlpack__(stream=stream)
        assert recording.calls.count("cuCtxSynchronize") == waits


def test_a_tensor_on_a_missing_gpu(cuda_gpu):
    with pytest.raises(UserError, match="this machine has no device cuda:3"):
        from_dlpack(Offered(None, (2, 3)))


def test_kinds_of_devices_that_are_not_shared():
    with pytest.raises(Unsupported, match=r"lies on DLPack's device \(10, 0\)") as caught:
        from_dlpack(Offered(None, (10, 0)))
    assert caught.value.why == "refcomp shares memory of the host (1, 0) and of NVIDIA GPUs only"

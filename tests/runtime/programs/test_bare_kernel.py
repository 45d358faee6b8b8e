"""Kernels that somebody else compiled, called by what their metadata tells."""

import ctypes

import numpy as np
import pytest

import refcomp
from refcomp.driver.devices import rocm_emulator
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.foundation.local_memory import LocalMemory
from refcomp.runtime.device import Device
from refcomp.runtime.launch import KernelSignature
from refcomp.runtime.programs.bare_kernel import BareKernel, PackedArgument, PackedSignature
from refcomp.runtime.programs.program import DeviceCode
from tests.emulator.opencl import compiled_opencl
from tests.runtime.hip.recording_hip import RecordingHip, driver_of

BUFFER, VALUE = "global_buffer", "by_value"
# As a compiler lays out (float *x, struct { int a; char b[5]; } s, short n).
ARGUMENTS = (
    PackedArgument(0, 8, BUFFER),
    PackedArgument(8, 12, VALUE),
    PackedArgument(20, 2, VALUE),
)


class Pair(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int), ("b", ctypes.c_char * 5))


@pytest.fixture
def hip() -> RecordingHip:
    return RecordingHip()


def _kernel(hip, arguments=ARGUMENTS, block=(), max_threads=256, shared_bytes=0):
    device = Device("rocm", 0, driver_of(hip))
    signature = PackedSignature("scale", tuple(arguments), block, max_threads, shared_bytes)
    launched = [KernelSignature("scale", "scale", ())]
    return BareKernel(DeviceCode(Binary(b"code", "hsaco"), launched, device), signature), device


def _array(device):
    return refcomp.empty((4,), "float32", device)


def test_arguments_lie_where_the_metadata_says(hip):
    kernel, device = _kernel(hip)
    x = _array(device)
    kernel(x, Pair(-2, b"abc"), np.int16(-3), grid=(3, 2), block=64, shared_bytes=40)
    (launch,) = hip.launches
    assert launch[:8] == ("scale", 3, 2, 1, 64, 1, 1, 40)
    packed = x.address.to_bytes(8, "little") + b"\xfe\xff\xff\xffabc" + bytes(5)
    assert launch[8] == packed + b"\xfd\xff"
    assert repr(kernel) == "<refcomp kernel scale(array, 12 bytes, 2 bytes)>"


def test_the_block_may_be_the_kernels_own(hip):
    kernel, device = _kernel(hip, ARGUMENTS[:1], block=(16, 4, 1))
    kernel(_array(device), grid=np.int64(2))
    assert hip.launches[0][1:8] == (2, 1, 1, 16, 4, 1, 0)
    kernel(_array(device), grid=0)
    assert len(hip.launches) == 1  # there is nothing to do
    with pytest.raises(UserError, match="called with groups of 64 x 1 x 1 threads") as caught:
        kernel(_array(device), grid=2, block=64)
    assert caught.value.why == "it was compiled for groups of 16 x 4 x 1 threads only"


def _refused(hip, *args, kind=UserError, **shape):
    kernel, device = _kernel(hip, shape.pop("arguments", ARGUMENTS))
    args = [_array(device) if arg is None else arg for arg in args]
    with pytest.raises(kind) as caught:
        kernel(*args, **{"grid": 1, "block": 64, **shape})
    assert not hip.launches
    return str(caught.value)


def test_arguments_that_do_not_fit_are_refused(hip):
    pair, short = Pair(), np.int16(1)
    assert "scale takes 3 arguments, not 1" in _refused(hip, None)
    told = _refused(hip, np.zeros(4), pair, short)
    assert "argument 0 of the kernel scale is the address of an array, not ndarray" in told
    assert "refcomp.array(values, device)" in told
    assert "but 1 has no fixed size" in _refused(hip, None, pair, 1)
    told = _refused(hip, None, pair, np.int32(7))
    assert "argument 2 of the kernel scale is 2 bytes, but" in told and "has 4 bytes" in told
    assert "numpy.float32(2), or a structure of ctypes" in told
    host = refcomp.array(np.zeros(4, np.float32))
    assert "lies on cpu:0, but the first array on rocm:0" in _refused(hip, host, pair, short)


def test_kinds_of_arguments_that_are_not_passed(hip):
    image = [PackedArgument(0, 8, "image")]
    told = _refused(hip, np.int64(0), arguments=image, kind=Unsupported)
    assert "the kernel scale takes a image as argument 0" in told
    assert "refcomp passes global memory, local memory and values only" in told


@pytest.mark.parametrize(
    "shape", [{"grid": -1}, {"grid": ()}, {"block": (1, 2, 3, 4)}, {"block": 0}]
)
def test_shapes_that_are_none(hip, shape):
    told = _refused(hip, None, Pair(), np.int16(1), **shape)
    assert "is not a shape for the kernel scale" in told and "one to 3 whole numbers" in told


def test_a_block_must_be_told_and_fit(hip):
    assert "block=() is not a shape" in _refused(hip, None, Pair(), np.int16(1), block=None)
    told = _refused(hip, None, Pair(), np.int16(1), block=(64, 8))
    assert "it was compiled for at most 256 threads of a group" in told
    kernel, device = _kernel(hip, ARGUMENTS[:1], shared_bytes=60000)
    with pytest.raises(UserError, match="needs 66000 bytes of shared memory"):
        kernel(_array(device), grid=1, block=64, shared_bytes=6000)


_LOCAL = [
    PackedArgument(0, 4, "dynamic_shared_pointer", 4),
    PackedArgument(8, 8, BUFFER),
    PackedArgument(16, 4, "dynamic_shared_pointer", 16),
]


def test_local_memory_lies_behind_the_kernels_own(hip):
    kernel, device = _kernel(hip, _LOCAL, shared_bytes=10)
    x = _array(device)
    kernel(LocalMemory(6), x, LocalMemory(40), grid=1, block=64, shared_bytes=3)
    (launch,) = hip.launches
    assert launch[7] == 32 + 40 - 10  # 10 own and 3 more end at 13: the pieces lie at 16 and 32
    places = launch[8][:4], launch[8][16:]
    assert [int.from_bytes(place, "little") for place in places] == [16, 32]
    assert repr(kernel) == "<refcomp kernel scale(local memory, array, local memory)>"


def test_local_memory_is_given_by_its_size_and_fits(hip):
    told = _refused(hip, np.int32(8), None, LocalMemory(8), arguments=_LOCAL)
    assert "argument 0 of the kernel scale is local memory of a group, not int32" in told
    assert "pass its size in bytes: refcomp.LocalMemory(256)" in told
    told = _refused(hip, LocalMemory(8), LocalMemory(8), LocalMemory(8), arguments=_LOCAL)
    assert "argument 1 of the kernel scale is the address of an array, not LocalMemory" in told
    told = _refused(hip, LocalMemory(1 << 15), None, LocalMemory(40000), arguments=_LOCAL)
    assert "needs 72768 bytes of shared memory" in told


_SOURCE = """
typedef struct { float scale; int first; } how;
kernel void saxpy(global float *x, global float *y, how s, short n) {
  int i = get_group_id(0) * get_local_size(0) + get_local_id(0);
  if (i >= s.first && i < n) y[i] += s.scale * x[i];
}
""".replace(
    "get_group_id(0) * get_local_size(0) + get_local_id(0)",
    "__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()",
)


class How(ctypes.Structure):
    _fields_ = (("scale", ctypes.c_float), ("first", ctypes.c_int))


@pytest.mark.rocm
@pytest.mark.clang
def test_a_kernel_of_another_compiler_runs(tmp_path):
    path = compiled_opencl(tmp_path, _SOURCE, "gfx942")
    kernels, device = refcomp.load_code_object(path), rocm_emulator("gfx942")
    assert "saxpy" in kernels and "sgemm" not in kernels
    saxpy = kernels["saxpy"]
    x, ones = np.arange(128, dtype=np.float32), np.ones(128, np.float32)
    arrays = [refcomp.array(values, device) for values in (x, ones)]
    saxpy(*arrays, How(2.0, 3), np.int16(100), grid=2, block=64)
    inside = (x >= 3) & (x < 100)
    np.testing.assert_array_equal(arrays[1].asnumpy(), np.where(inside, 2 * x + 1, 1))
    with pytest.raises(UserError, match="is 8 bytes, but"):
        saxpy(*arrays, np.float32(2), np.int16(100), grid=2, block=64)


_REVERSE = """
kernel void reverse(local float *t, global float *x, local int *places) {
  int i = __builtin_amdgcn_workitem_id_x();
  t[i] = x[i];
  places[63 - i] = i;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  x[i] = t[places[i]];
}
"""


@pytest.mark.rocm
@pytest.mark.clang
@pytest.mark.parametrize("gpu", ["gfx942", "gfx90a", "gfx1100"])
def test_a_kernel_with_local_memory_runs(tmp_path, gpu):
    path = compiled_opencl(tmp_path, _REVERSE, gpu)
    reverse = refcomp.load_code_object(path)["reverse"]
    x = refcomp.array(np.arange(64, dtype=np.float32), rocm_emulator(gpu, hazards=True))
    reverse(LocalMemory(256), x, LocalMemory(256), grid=1, block=64)
    np.testing.assert_array_equal(x.asnumpy(), np.arange(64)[::-1])
    with pytest.raises(UserError, match="4 bytes at 508 of 508 bytes of shared memory"):
        reverse(LocalMemory(256), x, LocalMemory(252), grid=1, block=64)

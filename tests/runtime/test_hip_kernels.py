"""Code objects are loaded, and kernels launched with their arguments as the code reads them."""

import gc
import struct

import numpy as np
import pytest

from refcomp.artifacts import Binary
from refcomp.codegen import amdgpu_statements
from refcomp.dtype import as_dtype
from refcomp.errors import ToolchainError
from refcomp.runtime import hip_kernels
from refcomp.runtime.device import Memory
from refcomp.runtime.hip_kernels import dynamic_shared_bytes, pack_arguments
from refcomp.runtime.launch import KernelSignature
from tests.runtime.recording_hip import RecordingHip, driver_of

NAMES = ("i8", None, "f16", "f32", "bool", "i64")
PARAMS = tuple(None if name is None else as_dtype(name) for name in NAMES)
KERNEL = KernelSignature("main.kernel0", "main_kernel0", PARAMS)
VALUES = [
    *(np.int8(-3), Memory(0x1234567890, None), np.float16(0.5), np.float32(1.5)),
    *(np.bool_(True), np.int64(-(2**40))),
]
PACKED = (
    struct.pack("<b7xQ", -3, 0x1234567890)
    + struct.pack("<e2xf", 0.5, 1.5)
    + struct.pack("<b7xq", 1, -(2**40))
)


@pytest.fixture
def recording() -> RecordingHip:
    return RecordingHip()


def load(recording, *kernels):
    return driver_of(recording).load(0, Binary(b"code", "hsaco"), kernels)


def test_arguments_are_packed_naturally():
    assert pack_arguments(KERNEL, VALUES) == PACKED
    assert pack_arguments(KernelSignature("f", "f", ()), []) == b""


def test_a_launch_gives_all_to_the_library(recording):
    launcher = load(recording, KERNEL, KernelSignature("g", "g", ()))
    assert (recording.code, [*recording.symbols.values()]) == (b"code", ["main_kernel0", "g"])
    launcher.launch("main.kernel0", VALUES, (5, 6, 7), (8, 9, 1), (4, 17, 0))
    launcher.launch("g", [], (1, 1, 1), (1, 1, 1), ())
    assert recording.launches == [
        ("main_kernel0", 5, 6, 7, 8, 9, 1, 48, PACKED),
        ("g", 1, 1, 1, 1, 1, 1, 0, b""),
    ]


def test_shared_buffers_lie_as_the_printer_places_them():
    assert hip_kernels.SHARED_ALIGNMENT == amdgpu_statements.SHARED_ALIGNMENT
    assert [dynamic_shared_bytes(sizes) for sizes in ((), (1,), (16, 16), (17, -5, 3))] == [
        *(0, 16, 32, 48)
    ]


def test_code_for_another_gpu_is_refused(recording):
    recording.errors["hipModuleLoadData"] = 209
    with pytest.raises(ToolchainError, match="the code is for another GPU") as caught:
        load(recording, KERNEL)
    assert "hipModuleLoadData(image=host memory) says: hipError209, error number 209 (209)" in str(
        caught.value
    )
    assert "rocm -mcpu=" in str(caught.value)


def test_a_launch_that_fails_is_told(recording):
    launcher = load(recording, KERNEL)
    recording.errors["hipModuleLaunchKernel"] = 701
    with pytest.raises(ToolchainError, match="says: hipError701"):
        launcher.launch("main.kernel0", VALUES, (1, 1, 1), (1, 1, 1), ())


def test_code_is_unloaded_when_nobody_has_it(recording):
    launcher = load(recording, KERNEL)
    assert "hipModuleUnload" not in recording.calls
    del launcher
    gc.collect()
    assert recording.calls[-2:] == ["hipDeviceSynchronize", "hipModuleUnload"]

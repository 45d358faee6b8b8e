"""Code objects are loaded, and kernels launched with their arguments as the code reads them."""

import gc
import struct

import numpy as np
import pytest

from refcomp.codegen.amdgpu import statements as amdgpu_statements
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.hip import kernels as hip_kernels
from refcomp.runtime.hip.kernels import dynamic_shared_bytes
from refcomp.runtime.launch import KernelSignature
from tests.runtime.hip.recording_hip import RecordingHip, driver_of

PAIRS = {
    **{"hipMalloc": "hipFree", "hipHostMalloc": "hipHostFree"},
    **{"hipModuleLoadData": "hipModuleUnload", "hipStreamCreate": "hipStreamDestroy"},
    **{"hipEventCreate": "hipEventDestroy"},
}
NAMES = ("i8", None, "f16", "f32", "bool", "i64")
PARAMS = tuple(None if name is None else as_dtype(name) for name in NAMES)
KERNEL = KernelSignature("main.kernel0", "main_kernel0", PARAMS)
VALUES = [
    *(np.int8(-3), DeviceMemory(0x1234567890, None), np.float16(0.5), np.float32(1.5)),
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


def test_a_launch_gives_all_to_the_library(recording):
    launcher = load(recording, KERNEL, KernelSignature("g", "g", ()))
    assert (recording.code, recording.symbols) == (b"code", {})
    launcher.launch("main.kernel0", VALUES, (5, 6, 7), (8, 9, 1), (4, 17, 0))
    launcher.launch("g", [], (1, 1, 1), (1, 1, 1), ())
    assert recording.launches == [
        ("main_kernel0", 5, 6, 7, 8, 9, 1, 48, PACKED),
        ("g", 1, 1, 1, 1, 1, 1, 0, b""),
    ]
    assert [*recording.symbols.values()] == ["main_kernel0", "g"]
    launcher.launch("g", [], (1, 1, 1), (1, 1, 1), ())
    assert recording.calls.count("hipModuleGetFunction") == 2
    assert recording.streams == [None, None, None]


def test_more_threads_than_hip_counts_are_refused(recording):
    launcher = load(recording, KernelSignature("g", "g", ()))
    launcher.launch("g", [], (1, 2**22 - 1, 1), (1, 1024, 1), ())
    with pytest.raises(UserError, match="g asks for 4194304 groups of 1024 threads in y") as told:
        launcher.launch("g", [], (1, 2**22, 1), (1, 1024, 1), ())
    assert "fewer than 4294967296 threads" in str(told.value)
    assert len(recording.launches) == 1


def test_the_occupancy_is_the_librarys(recording):
    launcher = load(recording, KERNEL)
    assert [launcher.occupancy("main.kernel0", threads) for threads in (64, 256)] == [32, 8]
    with pytest.raises(UserError, match=r"no kernel main\n.*use one of: main.kernel0"):
        launcher.occupancy("main", 64)
    recording.errors["hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"] = 1
    with pytest.raises(ToolchainError, match=r"threads=3, shared_bytes=16\) says: hipError1,"):
        launcher.occupancy("main.kernel0", 3, (5,))


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
    assert recording.calls[-3:] == ["hipSetDevice", "hipDeviceSynchronize", "hipModuleUnload"]
    assert recording.alive == {}


@pytest.mark.search
def test_ten_thousand_launches_leave_nothing_behind(recording):
    """Memory, code, streams, events and pinned memory: as many are given back as were made."""
    driver = driver_of(recording)
    launcher = load(recording, KERNEL)
    host = np.arange(4, dtype=np.float32)
    for turn in range(10_000):
        memory = driver.allocate(0, 16)
        driver.upload(0, host, memory)
        values = [np.int8(1), memory, np.float16(0), np.float32(turn), np.bool_(0), np.int64(turn)]
        launcher.launch("main.kernel0", values, (1, 1, 1), (64, 1, 1), ())
        if turn % 100 == 0:
            with driver.stream(0) as stream:
                driver.seconds(0, lambda: None)
                stream.upload(driver.pinned(0, (4,), np.float32), memory)
                launcher = load(recording, KERNEL)
                stream.sync()
    calls = recording.calls
    assert [calls.count(name) for name in ("hipMalloc", "hipModuleLaunchKernel")] == [10_000] * 2
    assert sorted({*recording.alive.values()}) == ["memory", "module", "stream"]
    assert len(recording.alive) == 3, "those that are still in use"
    del memory, launcher, stream, values
    gc.collect()
    assert recording.alive == {} and recording.memory == {}
    for made, given in PAIRS.items():
        assert calls.count(made) == calls.count(given) > 0, made

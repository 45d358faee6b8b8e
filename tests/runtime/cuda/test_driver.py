"""The driver of NVIDIA GPUs, on a stand-in for pycuda, and where there is none."""

import gc
import multiprocessing
import threading
from functools import partial

import numpy as np
import pytest

from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.cuda.driver import CudaDriver
from refcomp.runtime.device import Device, DeviceMemory, device
from refcomp.runtime.launch import KernelSignature
from tests.runtime.cuda.recording_pycuda import RecordingPycuda, driver_of, fake_cubin


@pytest.fixture
def recording():
    return RecordingPycuda()


def test_a_device_has_a_name_and_limits(recording):
    driver = driver_of(recording)
    gpu = Device("cuda", 0, driver)
    assert (gpu.exist, gpu.name) == (True, "NVIDIA H100 80GB HBM3 (sm_90)")
    assert driver.arch(0) == driver.info(0).arch == "sm_90"
    groups = (2**31 - 1, 65535, 65535)
    expected = DeviceLimits((1024, 1024, 64), 1024, 232448, frozenset(), groups, 4096)
    assert driver.limits(0) == expected
    assert driver.library_details() == {"pycuda": "13.0", "driver": "12.8"}
    assert (gpu.max_threads_per_block, gpu.max_shared_memory_per_block) == (1024, 232448)
    assert (gpu.max_thread_dimensions, gpu.warp_size) == ((1024, 1024, 64), 32)
    info = driver.info(0)
    assert gpu.multi_processor_count == info.multiprocessors
    assert gpu.max_clock_rate * 1000 == info.clock
    assert gpu.compute_version == "9.0"
    gpu.sync()
    assert recording.calls[-3:] == ["cuCtxPushCurrent", "cuCtxSynchronize", "cuCtxPopCurrent"]
    assert not Device("cuda", 1, driver).exist


def test_the_driver_is_started_by_the_first_question(recording):
    gpu = Device("cuda", 0, driver_of(recording))
    assert recording.calls == []
    assert gpu.exist and gpu.exist
    assert recording.calls == ["cuInit", "cuDeviceGetCount"]


def test_arrays_go_there_and_back(recording):
    gpu = Device("cuda", 0, driver_of(recording))
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = array(values, gpu)
    assert there.address in recording.memory
    np.testing.assert_array_equal(there.asnumpy(), values)
    empty = array(np.zeros((0, 3), np.int8), gpu)
    assert empty.address not in (0, there.address) and empty.asnumpy().shape == (0, 3)
    del there, empty
    gc.collect()
    assert (recording.alive, recording.leaked, recording.stack) == ([], [], [])


def test_each_device_has_a_context_of_its_own():
    recording = RecordingPycuda(devices=3)
    driver = driver_of(recording)
    first, last = (
        array(np.full(4, index, np.int8), Device("cuda", index, driver)) for index in (0, 2)
    )
    assert (first.asnumpy().tolist(), last.asnumpy().tolist()) == ([0] * 4, [2] * 4)
    assert recording.calls.count("cuDevicePrimaryCtxRetain") == 2
    kernel = KernelSignature("f", "f", ())
    for index in (2, 0):
        driver.load(index, fake_cubin(), [kernel]).launch("f", [], (1, 1, 1), (1, 1, 1), ())
    assert [launch.device for launch in recording.launches] == [2, 0]


def test_copies_on_a_device_and_between_devices():
    recording = RecordingPycuda(devices=2)
    driver = driver_of(recording)
    first, second = (Device("cuda", index, driver) for index in (0, 1))
    there = array(np.arange(6, dtype=np.int16), first)
    recording.calls.clear()
    beside = there.copyto(first)
    assert "cuMemcpyDtoD" in recording.calls and "cuMemcpyDtoH" not in recording.calls
    beyond = there.copyto(second)
    assert beyond.device == second
    for copied in (beside, beyond):
        assert copied.asnumpy().tolist() == [0, 1, 2, 3, 4, 5]
    nothing = array(np.zeros((0, 2), np.int8), first)
    recording.calls.clear()
    nothing.copyto(first).copyto(second)
    assert not [call for call in recording.calls if "cpy" in call]


def test_a_copy_between_devices_goes_in_pieces(monkeypatch):
    monkeypatch.setattr("refcomp.runtime.cuda.driver._PIECE_BYTES", 64)
    recording = RecordingPycuda(devices=2)
    driver = driver_of(recording)
    values = np.arange(100, dtype=np.uint8)
    source, target = driver.allocate(0, 100), driver.allocate(1, 100)
    driver.upload(0, values, source)
    recording.calls.clear()
    driver.copy(0, source, 1, target, 100)
    assert recording.calls.count("cuMemcpyDtoH") == 2
    result = np.zeros_like(values)
    driver.download(1, target, result)
    np.testing.assert_array_equal(result, values)


def test_parts_of_memory_are_filled(recording):
    driver = driver_of(recording)
    memory, host = driver.allocate(0, 5), np.zeros(5, np.uint8)
    driver.fill(0, memory, 0xAB, 5)
    driver.fill(0, driver.part(memory, 1, 2), 7, 2)
    driver.fill(0, memory, 1, 0)
    driver.download(0, memory, host)
    assert host.tolist() == [0xAB, 7, 7, 0xAB, 0xAB]
    assert recording.calls.count("cuMemsetD8") == 2


def test_pinned_arrays_are_the_hosts_and_released(recording):
    driver = driver_of(recording)
    pinned = driver.pinned(0, (3, 2), np.float32)
    pinned[:] = 7
    assert recording.alive == ["pinned"]
    view = pinned[1:]
    del pinned
    gc.collect()
    assert len(recording.alive) == 1 and (view == 7).all()
    del view
    gc.collect()
    assert (recording.alive, recording.leaked) == ([], [])
    assert driver.pinned(0, (0,), np.int8).shape == (0,)


def test_time_is_the_devices_own(recording):
    done = []
    assert driver_of(recording).seconds(0, lambda: done.append(1)) == pytest.approx(2.5e-3)
    assert done == [1] and recording.calls.count("cuEventRecord") == 2
    assert recording.alive == []


def test_several_threads_use_several_devices():
    recording = RecordingPycuda(devices=2)
    driver = driver_of(recording)
    failures = []

    def work(index):
        try:
            gpu = Device("cuda", index % 2, driver)
            for turn in range(50):
                values = np.full(7, index + turn, np.int32)
                np.testing.assert_array_equal(array(values, gpu).asnumpy(), values)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert failures == []
    assert (recording.alive, recording.leaked, recording.used_bytes) == ([], [], 0)


# Failures.


def test_lack_of_memory_loses_nothing(recording):
    recording.memory_bytes = 1 << 20
    gpu = Device("cuda", 0, driver_of(recording))
    kept = array(np.arange(1000, dtype=np.float32), gpu)
    with pytest.raises(MemoryError, match="the NVIDIA GPU has no room") as caught:
        array(np.zeros(1 << 20, np.uint8), gpu)
    assert "allocating 1048576 bytes: cuMemAlloc failed: out of memory" in str(caught.value)
    assert recording.used_bytes == 4000, "only what was kept"
    np.testing.assert_array_equal(kept.asnumpy(), np.arange(1000, dtype=np.float32))
    del kept, caught
    gc.collect()
    assert array(np.zeros(1 << 20, np.uint8), gpu).shape == (1 << 20,)


def test_a_kernel_that_traps_is_named_and_the_process_survives(recording):
    driver = driver_of(recording)
    gpu = Device("cuda", 0, driver)
    kernel = KernelSignature("gemm_kernel0", "gemm_kernel0", ())
    launch = partial(
        driver.load(0, fake_cubin(), [kernel]).launch,
        *("gemm_kernel0", [], (1, 1, 1), (1, 1, 1), ()),
    )
    values = array(np.zeros(4), gpu)
    launch()
    recording.trap = "an illegal memory access was encountered"
    with pytest.raises(ToolchainError, match="the kernel gemm_kernel0 failed on the GPU") as caught:
        values.asnumpy()
    assert (
        "copying 32 bytes from the GPU: cuCtxSynchronize failed: an illegal memory access was "
        "encountered" in caught.value.why
    )
    uses = {
        "asnumpy": values.asnumpy,
        "array": lambda: array(np.zeros(4), gpu),
        "launch": launch,
        "sync": gpu.sync,
        "stream": lambda: driver.stream(0),
        "seconds": lambda: driver.seconds(0, lambda: None),
    }
    for name, use in uses.items():
        with pytest.raises(ToolchainError, match="cannot be used any more") as caught:
            use()
        assert "gemm_kernel0" in caught.value.why, name
    assert gpu.exist and "H100" in gpu.name, "questions are still answered"
    del values, launch, caught, uses
    gc.collect()
    assert recording.leaked == [], "no destructor runs in a lost context"


def test_waiting_forgets_kernels_that_are_done(recording):
    driver = driver_of(recording)
    kernels = driver.load(0, fake_cubin(), [KernelSignature(n, n, ()) for n in ("good", "bad")])
    kernels.launch("good", [], (1, 1, 1), (1, 1, 1), ())
    driver.sync(0)
    kernels.launch("bad", [], (1, 1, 1), (1, 1, 1), ())
    recording.trap = "unspecified launch failure"
    with pytest.raises(ToolchainError, match="the kernel bad failed on the GPU"):
        driver.sync(0)


# Where there is no GPU, no driver or no pycuda.


def assert_every_use_explains(driver: CudaDriver, *words: str) -> None:
    gpu, memory = Device("cuda", 0, driver), DeviceMemory(0, None)
    host = np.zeros(3, np.float32)
    uses = {
        "require": gpu.require,
        "sync": gpu.sync,
        "name": lambda: gpu.name,
        "array": lambda: array(host, gpu),
        "driver.name": lambda: driver.name(0),
        "arch": lambda: driver.arch(0),
        "limits": lambda: driver.limits(0),
        "info": lambda: driver.info(0),
        "driver.sync": lambda: driver.sync(0),
        "allocate": lambda: driver.allocate(0, 4),
        "upload": lambda: driver.upload(0, host, memory),
        "download": lambda: driver.download(0, memory, host),
        "load": lambda: driver.load(0, Binary(b"", "cubin"), []),
        "seconds": lambda: driver.seconds(0, lambda: None),
        "copy": lambda: driver.copy(0, memory, 0, memory, 4),
        "fill": lambda: driver.fill(0, memory, 0, 4),
        "pinned": lambda: driver.pinned(0, (1,), np.int8),
        "stream": lambda: driver.stream(0),
        "event": lambda: driver.event(0),
    }
    assert not gpu.exist
    for name, use in uses.items():
        with pytest.raises(UserError, match="this machine has no device cuda:0") as caught:
            use()
        assert all(word in str(caught.value) for word in words), name


def test_without_a_gpu_every_use_says_so(recording):
    recording.errors["cuInit"] = "no CUDA-capable device is detected"
    driver = driver_of(recording)
    assert_every_use_explains(driver, "no CUDA-capable device is detected", "nvidia-smi")
    assert recording.calls == ["cuInit"]


def test_without_pycuda_every_use_gives_the_recipe():
    def load():
        raise ModuleNotFoundError("No module named 'pycuda'", name="pycuda")

    assert_every_use_explains(CudaDriver(load), "pycuda", "pip install refcomp[cuda]", "CUDA_ROOT")
    assert CudaDriver(load).library_details() == {}


def test_a_device_beyond_the_last(recording):
    with pytest.raises(UserError, match="no device cuda:3") as caught:
        driver_of(recording).sync(3)
    assert (caught.value.why, caught.value.remedy) == (
        "it has 1, counted from 0",
        "use cuda:0 or a lower index",
    )


def _use_in_child(driver: CudaDriver, answers) -> None:
    try:
        driver.sync(0)
        answers.put("nothing was refused")
    except UserError as error:
        answers.put(str(error))


def test_a_forked_process_is_refused(recording):
    driver = driver_of(recording)
    driver.sync(0)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_use_in_child, args=(driver, answers))
    child.start()
    answer = answers.get()
    child.join()
    assert "CUDA was started before this process was forked" in answer
    assert "get_context('spawn')" in answer


def test_this_machine_has_a_gpu_or_says_why_not():
    gpu = device("cuda")
    assert isinstance(gpu.driver, CudaDriver)
    why, remedy = gpu.driver.absence()
    assert gpu.exist or (why and remedy)

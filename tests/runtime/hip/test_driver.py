"""The driver of AMD GPUs, on a pretended library, on the real one, and where there is none."""

import gc
import multiprocessing
import os

import numpy as np
import pytest

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target_kind import DeviceLimits
from refcomp.hip import api as hip_api
from refcomp.runtime.arrays.ndarray import array
from refcomp.runtime.device import Device, DeviceMemory, device
from refcomp.runtime.hip import driver as hip
from refcomp.runtime.hip.driver import HipDriver
from tests.runtime.hip.recording_hip import RecordingHip, driver_of


@pytest.fixture
def recording() -> RecordingHip:
    return RecordingHip()


def test_a_device_tells_its_name_and_limits(recording):
    driver = driver_of(recording)
    gpu = Device("rocm", 0, driver)
    assert (gpu.exist, gpu.name, driver.arch(0)) == (True, "AMD Instinct (gfx90a)", "gfx90a")
    features = frozenset({"fp16", "fp64", "int64_atomics", "subgroups"})
    groups = (2**31 - 1, 65536, 65535)
    known = DeviceLimits((1024, 512, 64), 1024, 65536, features, groups, 4096, 128)
    assert driver.limits(0) == known
    assert driver.info(0).wave_lanes == 64
    assert (gpu.max_threads_per_block, gpu.max_shared_memory_per_block) == (1024, 65536)
    assert (gpu.max_thread_dimensions, gpu.warp_size) == ((1024, 512, 64), 64)
    info = driver.info(0)
    assert gpu.multi_processor_count == info.multiprocessors
    assert gpu.max_clock_rate * 1000 == info.clock
    assert gpu.compute_version == "9.0"
    gpu.sync()
    assert recording.calls[-2:] == ["hipSetDevice", "hipDeviceSynchronize"]
    assert not Device("rocm", 1, driver).exist


def test_nothing_is_asked_before_somebody_does(recording):
    gpu = Device("rocm", 0, driver_of(recording))
    assert recording.calls == []
    assert gpu.exist and gpu.exist
    assert recording.calls == ["hipGetDeviceCount"]


@pytest.mark.search
def test_arrays_go_there_and_back(recording):
    gpu = Device("rocm", 0, driver_of(recording))
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = array(values, gpu)
    assert there.address in recording.alive
    np.testing.assert_array_equal(there.asnumpy(), values)
    empty = array(np.zeros((0, 3), np.int8), gpu)
    assert empty.address not in (0, there.address) and empty.asnumpy().shape == (0, 3)
    del there, empty
    gc.collect()
    assert recording.alive == {}


def test_the_device_is_made_current_for_each_thread(recording):
    recording.devices = 3
    driver = driver_of(recording)
    driver.allocate(2, 8)
    assert recording.current == 2
    driver.sync(1)
    assert recording.current == 1


def test_time_is_the_devices_own(recording):
    done = []
    driver = driver_of(recording)
    work = lambda: done.append(recording.calls.count("hipEventRecord"))  # noqa: E731
    assert driver.seconds(0, work) == pytest.approx(2.5e-3)
    assert done == [1] and recording.calls.count("hipEventRecord") == 2
    assert recording.calls.count("hipEventDestroy") == 2


def test_copies_on_devices_do_not_pass_the_host(recording):
    recording.devices = 2
    driver = driver_of(recording)
    first, second = (Device("rocm", index, driver) for index in (0, 1))
    there = array(np.arange(6, dtype=np.int16), first)
    recording.copies.clear()
    beside, beyond = there.copyto(first), there.copyto(second)
    assert recording.copies == [(3, 12), ("peer", 1, 0, 12)]
    assert recording.calls[-1] == "hipDeviceSynchronize"
    for copied in (beside, beyond):
        assert copied.asnumpy().tolist() == [0, 1, 2, 3, 4, 5]
    recording.copies.clear()
    array(np.zeros((0, 2), np.int8), first).copyto(second)
    assert recording.copies == [], "nothing is copied for no elements"
    wider = array(np.zeros(6, np.int32), first).copyfrom(there)
    assert wider.asnumpy().tolist() == [0, 1, 2, 3, 4, 5], "what is converted goes by the host"


@pytest.mark.search
def test_pinned_arrays_are_the_hosts_and_given_back(recording):
    driver = driver_of(recording)
    pinned = driver.pinned(0, (3, 2), np.float32)
    pinned[:] = 7
    assert [*recording.alive.values()] == ["pinned"] and pinned.ctypes.data in recording.alive
    view = pinned[1:]
    del pinned
    gc.collect()
    assert len(recording.alive) == 1 and (view == 7).all()
    del view
    gc.collect()
    assert recording.alive == {}
    assert driver.pinned(0, (0,), np.int8).shape == (0,)


def test_memory_is_filled(recording):
    driver = driver_of(recording)
    memory, host = driver.allocate(0, 5), np.zeros(5, np.uint8)
    driver.fill(0, memory, 0xAB, 4)
    driver.fill(0, memory, 1, 0)
    driver.download(0, memory, host)
    assert host.tolist() == [0xAB] * 4 + [0]
    assert recording.calls.count("hipMemset") == 1


def test_lack_of_memory(recording):
    recording.errors["hipMalloc"] = hip_api.number("hipErrorOutOfMemory")
    with pytest.raises(
        MemoryError, match=r"no room. hipMalloc\(bytes=1099511627776\) says: hipError2,"
    ):
        driver_of(recording).allocate(0, 1 << 40)


def test_failures_are_told_in_the_librarys_words(recording):
    recording.errors["hipDeviceSynchronize"] = 719
    with pytest.raises(ToolchainError, match="a kernel launched before failed") as caught:
        driver_of(recording).sync(0)
    assert "hipDeviceSynchronize() says: hipError719, error number 719 (719)" in str(caught.value)


def test_a_name_that_is_not_where_it_should_be(recording):
    recording.arch = b"MI210"
    with pytest.raises(ToolchainError, match="does not return the GPU's name where it") as caught:
        driver_of(recording).arch(0)
    assert "recording" in str(caught.value) and "rocm -mcpu=gfx" in str(caught.value)


def test_what_is_no_code_object_is_refused(recording):
    for code in (Source("", "opencl"), Binary(b"", "so")):
        with pytest.raises(UserError, match="an AMD GPU takes a code object"):
            driver_of(recording).load(0, code, [])


# Where there is no GPU, or no library.


def assert_every_use_says(driver: HipDriver, *words: str) -> None:
    gpu, memory = Device("rocm", 0, driver), DeviceMemory(0, None)
    host = np.zeros(3, np.float32)
    uses = {
        "require": gpu.require,
        "sync": gpu.sync,
        "name": lambda: gpu.name,
        "array": lambda: array(host, gpu),
        "driver.name": lambda: driver.name(0),
        "arch": lambda: driver.arch(0),
        "limits": lambda: driver.limits(0),
        "driver.sync": lambda: driver.sync(0),
        "allocate": lambda: driver.allocate(0, 4),
        "upload": lambda: driver.upload(0, host, memory),
        "download": lambda: driver.download(0, memory, host),
        "load": lambda: driver.load(0, Binary(b"", "hsaco"), []),
        "seconds": lambda: driver.seconds(0, lambda: None),
        "info": lambda: driver.info(0),
        "copy": lambda: driver.copy(0, memory, 0, memory, 4),
        "fill": lambda: driver.fill(0, memory, 0, 4),
        "pinned": lambda: driver.pinned(0, (1,), np.int8),
        "stream": lambda: driver.stream(0),
    }
    assert not gpu.exist
    for name, use in uses.items():
        with pytest.raises(UserError, match="this machine has no device rocm:0") as caught:
            use()
        assert all(word in str(caught.value) for word in words), name


def test_without_a_gpu_every_use_says_so(recording):
    recording.devices = 0
    words = (
        "hipGetDeviceCount of recording says: hipErrorNoDevice, no ROCm-capable device is detected"
    )
    assert_every_use_says(driver_of(recording), words, "/dev/kfd")
    assert set(recording.calls) == {"hipGetDeviceCount"}


def test_without_a_library_every_use_says_where_it_was_sought(monkeypatch):
    monkeypatch.delenv("ROCM_PATH", raising=False)
    driver = HipDriver(lambda: None)
    words = "the HIP runtime library was not found; sought libamdhip64.so.5 and newer"
    assert_every_use_says(driver, words, "/opt/rocm/lib", "apt-get install libamdhip64-5")
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    assert_every_use_says(HipDriver(), "sought ROCM_PATH=/nowhere: lib/libamdhip64.so*")


def test_a_library_that_counts_none_without_an_error(recording, monkeypatch):
    monkeypatch.setattr(RecordingHip, "hipGetDeviceCount", lambda self, count: 0)
    assert_every_use_says(driver_of(recording), "hipGetDeviceCount of recording counts none")


@pytest.mark.rocm
def test_the_real_library_without_a_gpu():
    gpu = device("rocm")
    assert gpu.driver is not None and isinstance(gpu.driver, HipDriver)
    if os.path.exists("/dev/kfd"):
        return  # what it does with a GPU is told by the tests with the mark `gpu`
    assert_every_use_says(gpu.driver, "libamdhip64.so", "(100)", "/dev/kfd")


@pytest.mark.gpu
def test_a_real_gpu():
    gpu = device("rocm")
    if not gpu.exist:
        pytest.skip("no AMD GPU")
    values = np.arange(1000, dtype=np.int32)
    np.testing.assert_array_equal(array(values, gpu).asnumpy(), values)
    assert "gfx" in gpu.name


def _use_in_child(driver: HipDriver, answers) -> None:
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
    told = answers.get()
    child.join()
    assert "HIP was started before this process was forked" in told
    assert "get_context('spawn')" in told


def test_the_kind_is_registered():
    assert device("rocm", 1).driver is device("rocm").driver
    assert hip.HipDriver is type(device("rocm").driver)

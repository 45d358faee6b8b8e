"""OpenCL devices: memory and copies on PoCL, and what is told where something is missing."""

import multiprocessing
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import refcomp
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.errors import UserError
from refcomp.runtime.device import Device
from refcomp.runtime.opencl import driver as driver_room
from refcomp.runtime.opencl.driver import OpenCLDriver


class _Error(Exception):
    pass


def _fake_pyopencl(platforms: list[Any] | None) -> ModuleType:
    """A pyopencl with these platforms; none is installed when None."""
    module: Any = ModuleType("pyopencl")
    module.Error = _Error

    def get_platforms() -> list[Any]:
        if platforms is None:
            raise _Error("PLATFORM_NOT_FOUND_KHR")
        return platforms

    module.get_platforms = get_platforms
    return module


def _raise() -> list[Any]:
    raise _Error("DEVICE_NOT_FOUND")


def _absent(driver: OpenCLDriver) -> str:
    device = Device("opencl", 0, driver)
    assert not device.exist
    for action in (lambda: device.name, device.sync, lambda: refcomp.empty(3, "f32", device)):
        with pytest.raises(UserError) as caught:
            action()
    return str(caught.value)


class TestAbsence:
    """Never a traceback: what is missing, and how to get it."""

    def test_without_pyopencl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyopencl", None)
        message = _absent(OpenCLDriver())
        assert message.startswith(
            "this machine has no device opencl:0\n  why: pyopencl cannot be imported"
        )
        assert "what to do: pip install pyopencl; apt-get install pocl-opencl-icd" in message

    def test_without_platforms(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyopencl", _fake_pyopencl(None))
        message = _absent(OpenCLDriver())
        assert "why: no OpenCL platform is installed: PLATFORM_NOT_FOUND_KHR" in message

    def test_without_devices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        empty = SimpleNamespace(name="Portable", get_devices=list)
        refusing = SimpleNamespace(name="Vendor", get_devices=_raise)
        monkeypatch.setitem(sys.modules, "pyopencl", _fake_pyopencl([empty, refusing]))
        message = _absent(OpenCLDriver())
        assert "no platform of OpenCL has a device; the platforms are: Portable, Vendor" in message
        assert "PoCL needs a folder that it can write: set POCL_CACHE_DIR" in message

    def test_devices_of_all_platforms_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        platforms = [
            SimpleNamespace(name=name, get_devices=lambda count=count: [object()] * count)
            for name, count in (("one", 1), ("none", 0), ("two", 2))
        ]
        monkeypatch.setitem(sys.modules, "pyopencl", _fake_pyopencl(platforms))
        assert OpenCLDriver().count() == 3


@pytest.mark.parametrize("extension", ["warp_size_nv", "wavefront_width_amd"])
def test_warp_size_is_read_by_the_extension_of_the_vendor(
    extension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gpu:
        def __getattr__(self, name: str) -> int:
            if name == extension:
                return 64
            raise _Error("INVALID_VALUE")

    monkeypatch.setitem(sys.modules, "pyopencl", _fake_pyopencl([]))
    assert driver_room._warp_size(Gpu()) == 64


@pytest.mark.pocl
class TestOnPocl:
    def test_names_and_limits(self) -> None:
        device = refcomp.opencl()
        assert device.exist
        assert "Portable Computing Language" in device.name
        limits = refcomp.opencl().driver.limits(0)
        assert min(*limits.threads_per_axis, limits.threads) >= 256
        assert limits.shared_bytes >= 16 << 10
        assert {"cl_khr_fp64", "cl_khr_int64_base_atomics"} <= limits.features

    @pytest.mark.parametrize("dtype", ["bool", "u8", "i64", "f16", "bf16", "f32", "f64"])
    @pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
    def test_copies_there_and_back(self, dtype: str, shape: tuple[int, ...]) -> None:
        device = refcomp.opencl()
        host = refcomp.array(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype=dtype)
        there = refcomp.array(host, device)
        assert (there.shape, there.dtype, there.device) == (shape, host.dtype, device)
        back = there.copyto(device).copyto(refcomp.cpu())
        assert back.numpy().tobytes() == host.numpy().tobytes()
        assert there.asnumpy().tobytes() == host.numpy().tobytes()

    def test_a_copy_waits_for_what_was_queued(self) -> None:
        arrays = [refcomp.array(np.full(1000, k, np.float32), refcomp.opencl()) for k in range(8)]
        target = refcomp.empty(1000, "f32", refcomp.opencl())
        for k, array in enumerate(arrays):
            target.copyfrom(array)
            assert target.asnumpy().tolist() == [k] * 1000

    def test_its_memory_is_not_shared_with_numpy(self) -> None:
        array = refcomp.empty(3, "f32", refcomp.opencl())
        with pytest.raises(UserError, match=r"an array on opencl:0 cannot be shared with numpy"):
            array.numpy()
        assert np.asarray(refcomp.array([1.0, 2.0], refcomp.opencl())).tolist() == [1, 2]

    def test_pieces_of_memory_lie_apart(self) -> None:
        driver = OpenCLDriver()
        sizes = [0, 1, 4096, 7]
        pieces = [driver.allocate(0, size) for size in sizes]
        starts = [piece.address for piece in pieces]
        ends = [start + size for start, size in zip(starts, sizes, strict=True)]
        assert all(end < start for end, start in zip(ends[:-1], starts[1:], strict=True))
        assert all(start % 128 == 0 for start in starts)

    def test_too_much_memory(self) -> None:
        with pytest.raises(MemoryError, match=r"has no room for \d+ bytes \(.*\)\. Free arrays"):
            refcomp.empty(1 << 50, "u8", refcomp.opencl())

    def test_a_device_that_is_one_too_many(self) -> None:
        count = refcomp.opencl().driver.count()
        with pytest.raises(UserError, match=rf"it has {count} of kind opencl"):
            refcomp.opencl(count).require()

    def test_it_takes_opencl_text_only(self) -> None:
        with pytest.raises(UserError, match="an OpenCL device takes an OpenCL C text"):
            OpenCLDriver().load(0, Binary(b"", "so"), ())

    def test_several_threads_open_and_copy(self) -> None:
        driver = OpenCLDriver()
        device = Device("opencl", 0, driver)

        def there_and_back(k: int) -> bool:
            values = np.full(100, k, np.int32)
            return bool((refcomp.array(values, device).asnumpy() == values).all())

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(there_and_back, range(64)))

    def test_attributes(self) -> None:
        device = refcomp.opencl()
        limits = device.driver.limits(0)
        assert device.max_threads_per_block == limits.threads
        assert device.max_thread_dimensions == limits.threads_per_axis
        assert device.max_shared_memory_per_block == limits.shared_bytes
        assert device.multi_processor_count >= 1 and device.max_clock_rate % 1000 == 0
        assert re.fullmatch(r"\d\.\d", device.compute_version)
        assert device.warp_size is None  # PoCL's processor has no extension for it

    def test_in_a_forked_process_it_is_refused(self) -> None:
        device = refcomp.opencl()
        refcomp.array([1.0], device)
        context = multiprocessing.get_context("fork")
        told = context.Queue()
        child = context.Process(target=_use_and_tell, args=(device, told))
        child.start()
        message = told.get(timeout=60)
        child.join()
        assert message.startswith("OpenCL was started before this process was forked")
        assert "start the process by spawn" in message


def _use_and_tell(device: Device, told: Any) -> None:
    try:
        refcomp.array([1.0], device)
    except UserError as error:
        told.put(str(error))
    else:
        told.put("no error")

"""Launches: what waves find when they begin, and what a driver refuses."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator import EmulatedGpu
from refcomp.emulator.execution.launch import LaunchRequest, launch
from refcomp.emulator.limits import Limits
from refcomp.emulator.machine.observation import Observer
from refcomp.foundation.errors import UserError
from tests.codegen.amdgpu.kernels import compile_kernels
from tests.codegen.device_kernels import device_kernel
from tests.emulator.kernels import compiled_code, disassembled, make_gpu

pytestmark = pytest.mark.rocm
_BLOCK = (64, 1, 1)


def _vector_add(count=100, **changes):
    """A launch of 100 sums; what it wrote."""
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    places = [gpu.arena.allocate(4 * count, name) for name in "ABC"]
    for place in places:
        gpu.arena.write(place.address, np.arange(count, dtype=np.float32).tobytes())
    numbers = [*(place.address for place in places), count, 2]
    details = {
        "kernel": "vector_add",
        "grid": (2, 1, 1),
        "block": _BLOCK,
        "arguments": b"".join(n.to_bytes(8, "little") for n in numbers),
    }
    report = launch(loaded, LaunchRequest(**{**details, **changes}))
    return gpu.arena.read(places[2].address, 4 * count).view(np.float32), report


def test_a_kernel_runs():
    result, report = _vector_add()
    assert (result == 2 * np.arange(100)).all() and not report.findings
    assert report.steps > 40


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "other"}, "no kernel 'other'"),
        ({"grid": (0, 1, 1)}, "nothing to do"),
        ({"grid": (1, 1)}, r"cannot be launched with the grid \(1, 1\)"),
        ({"grid": (1.5, 1, 1)}, r"cannot be launched with the grid \(1.5, 1, 1\)"),
        ({"block": ("64", 1, 1)}, r"cannot be launched with the block \('64', 1, 1\)"),
        ({"block": (32, 1, 1)}, r"takes groups of \(64, 1, 1\), not \(32, 1, 1\)"),
        ({"block": (2048, 1, 1)}, "takes 64 threads in a group, not 2048"),
        ({"shared_bytes": 1 << 17}, "asks for 131072 bytes of shared memory"),
        ({"shared_bytes": -100}, "asks for -100 bytes of shared memory"),
        ({"grid": (1 << 26, 1, 1)}, "67108864 groups of 64 threads along x"),
        ({"grid": (1, 1 << 32, 1)}, "4294967296 groups of 1 thread along y"),
        ({"arguments": b"1234"}, "takes 40 bytes of arguments, not 4"),
    ],
)
def test_what_a_driver_refuses(changes, message):
    with pytest.raises(UserError, match=message) as told:
        _vector_add(**changes)
    assert told.value.remedy


def test_code_for_another_gpu_is_refused():
    other = compile_kernels([device_kernel("vector_add")], "gfx906").data
    with pytest.raises(UserError, match="is for gfx906, the emulated GPU is gfx942"):
        make_gpu().load(other)


@pytest.mark.parametrize(("cleared", "expected"), [(0, 0x7FC00001), (23, 0x7F800001)])
def test_nans_are_treated_as_the_descriptor_says(cleared, expected):
    """Bit 23 of the second word is IEEE_MODE: cleared, a signalling NaN stays one."""
    gpu = make_gpu()
    loaded = gpu.load(compiled_code("vector_add"))
    kernel = loaded.kernel("vector_add")
    rsrc1 = kernel.descriptor.rsrc1 & ~(1 << cleared if cleared else 0)
    loaded.code.kernels["vector_add"] = replace(
        kernel, descriptor=replace(kernel.descriptor, rsrc1=rsrc1)
    )
    first = np.full(64, 0x7F800001, np.uint32).view(np.float32)
    second, result = np.ones(64, np.float32), np.zeros(64, np.float32)
    arguments = [first, second, result, np.int64(64), np.int64(1)]
    gpu.run(loaded, "vector_add", (1, 1, 1), _BLOCK, arguments)
    assert (result.view(np.uint32) == expected).all()


def _damaged(code, **fields):
    """The kernel of a code object with another descriptor."""
    loaded = make_gpu().load(code)
    (kernel,) = loaded.code.kernels.values()
    loaded.code.kernels[kernel.name] = replace(
        kernel, descriptor=replace(kernel.descriptor, **fields)
    )
    return loaded


@pytest.mark.parametrize(
    ("gpu", "lanes", "most"),
    [("gfx942", 64, 131056), ("gfx90a", 64, 131056), ("gfx1100", 32, 262136)],
)
def test_no_more_private_memory_is_given_than_waves_have(gpu, lanes, most):
    loaded = _damaged(compiled_code("vector_add", gpu=gpu), private_bytes=most + 1)
    request = LaunchRequest("vector_add", (1, 1, 1), _BLOCK, bytes(40))
    with pytest.raises(UserError, match=f"{most + 1} bytes of private memory") as caught:
        launch(loaded, request)
    assert f"a {gpu} has {most} for each of the {lanes} lanes" in str(caught.value)
    assert caught.value.remedy
    loaded = _damaged(compiled_code("vector_add", gpu=gpu), private_bytes=most)
    assert launch(loaded, request).steps > 0  # nothing to do, but it begins and ends


def test_batches_have_no_more_private_memory_than_fits(monkeypatch):
    module = sys.modules[LaunchRequest.__module__]  # the package has a function of that name
    monkeypatch.setattr(module, "_BATCH_PRIVATE_BYTES", 3 * 64 * 256)
    loaded = _damaged(compiled_code("vector_add"), private_bytes=256)
    sizes = []

    class _Sizes(Observer):
        def began(self, waves):
            sizes.append(len(waves.groups))

    request = LaunchRequest("vector_add", (8, 1, 1), _BLOCK, bytes(40), observers=(_Sizes(),))
    launch(loaded, request)
    assert sizes == [3, 3, 2]
    sizes.clear()
    report = launch(loaded, replace(request, limits=Limits(1)))
    assert sizes == [3]  # once it is given up, no further groups begin
    assert [finding.kind for finding in report.findings] == ["endless"]


def test_what_a_launch_lays_out_is_given_back():
    gpu = EmulatedGpu(disassembled, size=32768)
    loaded = gpu.load(compiled_code("vector_add"))
    before = gpu.arena.free_bytes()
    request = LaunchRequest("vector_add", (1, 1, 1), _BLOCK, bytes(20000))
    with pytest.raises(MemoryError, match="no room for the arguments"):
        launch(loaded, request)
    assert gpu.arena.free_bytes() == before
    given_up = launch(loaded, replace(request, arguments=bytes(40), limits=Limits(1)))
    assert [finding.kind for finding in given_up.findings] == ["endless"]
    launch(loaded, replace(request, arguments=bytes(40)))
    assert gpu.arena.free_bytes() == before

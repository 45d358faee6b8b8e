"""Launches: what waves find when they begin, and what a driver refuses."""

from dataclasses import replace

import numpy as np
import pytest

from refcomp.emulator.launch import LaunchRequest, _unused, launch
from refcomp.errors import Unsupported, UserError
from tests.codegen.amdgpu_kernels import compile_kernels
from tests.codegen.device_kernels import device_kernel
from tests.emulator.kernels import compiled_code, make_gpu

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
        ({"block": (32, 1, 1)}, r"takes groups of \(64, 1, 1\), not \(32, 1, 1\)"),
        ({"block": (2048, 1, 1)}, "takes 64 threads in a group, not 2048"),
        ({"shared_bytes": 1 << 17}, "asks for 131072 bytes of shared memory"),
        ({"shared_bytes": -100}, "asks for -100 bytes of shared memory"),
        ({"grid": (1 << 26, 1, 1)}, "67108864 groups of 64 threads along x"),
        ({"grid": (1, 1 << 32, 1)}, "4294967296 groups of 1 threads along y"),
        ({"arguments": b"1234"}, "takes 40 bytes of arguments, not 4"),
        ({"steps": 10}, "ran more than 10 instructions"),
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


@pytest.mark.parametrize("bit", [21, 23])
def test_a_kernel_that_wants_other_nans_is_refused(bit):
    loaded = make_gpu().load(compiled_code("vector_add"))
    kernel = loaded.kernel("vector_add")
    assert kernel.descriptor.has_usual_nans
    other = replace(kernel.descriptor, rsrc1=kernel.descriptor.rsrc1 & ~(1 << bit))
    loaded.code.kernels["vector_add"] = replace(kernel, descriptor=other)
    with pytest.raises(Unsupported, match="vector_add wants other NaNs than the usual"):
        launch(loaded, LaunchRequest("vector_add", (1, 1, 1), _BLOCK, bytes(40)))


def test_no_registers_lie_between_a_kernels_own_and_its_accumulators():
    (kernel,) = make_gpu().load(compiled_code("matmul")).code.kernels.values()
    descriptor = replace(kernel.descriptor, rsrc3=10)
    assert _unused(descriptor, 260) == slice(44, 256)
    assert _unused(descriptor, 44) == slice(0, 0)

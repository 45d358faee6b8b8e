"""Code is checked and loaded; kernels are launched with the arguments that they read."""

import gc
import struct

import numpy as np
import pytest

from refcomp.foundation.artifacts import Binary, Source
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.runtime.cuda.kernels import FORMATS, checked_code, place_shared
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import KernelSignature
from refcomp.toolchain import compile_source
from tests.runtime.cuda.recording_pycuda import RecordingPycuda, driver_of, fake_cubin

KERNEL = KernelSignature("main.kernel0", "main_kernel0", (None, F32, I64))
VALUES = [DeviceMemory(0x1234567890, None), np.float32(1.5), np.int64(-7)]
PACKED = struct.pack("<Qf4xq", 0x1234567890, 1.5, -7)
ONE = (1, 1, 1)
PTX = b".version 9.0\n.target sm_80\n.address_size 64\n"


@pytest.fixture
def recording():
    return RecordingPycuda()


def load(recording, *kernels, code=None):
    return driver_of(recording).load(0, code or fake_cubin(), kernels)


def test_a_launch_passes_everything(recording):
    kernels = load(recording, KERNEL)
    kernels.launch("main.kernel0", VALUES, (2, 3, 4), (32, 2, 1), ())
    kernels.launch("main.kernel0", VALUES, (1, 1, 1), (1, 1, 1), ())
    launch = recording.launches[0]
    assert (launch.symbol, launch.arguments) == ("main_kernel0", PACKED)
    assert (launch.grid, launch.block, launch.shared) == ((2, 3, 4), (32, 2, 1), 0)
    assert recording.calls.count("cuModuleGetFunction") == 1
    assert recording.allowed == []


def test_a_kernel_without_parameters(recording):
    load(recording, KernelSignature("f", "f", ())).launch("f", [], ONE, ONE, ())
    assert recording.launches[0].arguments == b""


def test_dynamic_shared_buffers_are_placed_at_multiples_of_128():
    assert place_shared(()) == ([], 0)
    assert place_shared((4,)) == ([0], 4)
    assert place_shared((4, 128, 130, 1)) == ([0, 128, 256, 512], 513)
    assert place_shared((-8, 4)) == ([0, 0], 4)


def test_the_places_follow_the_parameters(recording):
    load(recording, KERNEL).launch("main.kernel0", VALUES, ONE, ONE, (100, 40))
    launch = recording.launches[0]
    assert launch.arguments == PACKED + struct.pack("<QQ", 0, 128)
    assert launch.shared == 168


def test_more_than_48_kib_are_allowed_once(recording):
    kernels = load(recording, KERNEL)
    for size in (48 << 10, 64 << 10, 50 << 10, 100 << 10):
        kernels.launch("main.kernel0", VALUES, ONE, ONE, (size,))
    attribute = "MAX_DYNAMIC_SHARED_SIZE_BYTES"
    assert recording.allowed == [(attribute, 64 << 10), (attribute, 100 << 10)]
    assert [launch.shared >> 10 for launch in recording.launches] == [48, 64, 50, 100]


def test_static_shared_memory_counts(recording):
    recording.kernel_attributes["SHARED_SIZE_BYTES"] = 1 << 10
    kernels = load(recording, KERNEL)
    kernels.launch("main.kernel0", VALUES, ONE, ONE, (47 << 10,))
    assert recording.allowed == []
    kernels.launch("main.kernel0", VALUES, ONE, ONE, (48 << 10,))
    assert recording.allowed == [("MAX_DYNAMIC_SHARED_SIZE_BYTES", 48 << 10)]
    with pytest.raises(UserError) as caught:
        kernels.launch("main.kernel0", VALUES, ONE, ONE, (227 << 10,))
    error = caught.value
    assert error.what == (
        "the kernel main.kernel0 needs 233472 bytes of shared memory for a group, "
        "but the GPU has 232448"
    )
    assert error.why == "1024 bytes are part of its code, and this launch adds 232448"
    assert "smaller factor" in error.remedy and error.where == "cuda:0"


def test_a_group_with_too_many_registers_is_refused(recording):
    recording.kernel_attributes |= {"MAX_THREADS_PER_BLOCK": 256, "NUM_REGS": 255}
    kernels = load(recording, KERNEL)
    with pytest.raises(UserError) as caught:
        kernels.launch("main.kernel0", VALUES, ONE, (32, 16, 1), ())
    error = caught.value
    assert error.what == (
        "the kernel main.kernel0 cannot run in groups of 512 threads (32 x 16 x 1)"
    )
    assert "255 registers" in error.why and "at most 256 threads" in error.why
    assert "unroll less" in error.remedy
    assert kernels.resources("main.kernel0") == {"registers": 255, "shared_bytes": 0}
    assert recording.launches == []


def test_a_launch_that_the_driver_refuses(recording):
    kernels = load(recording, KERNEL)
    recording.errors["cuLaunchKernel"] = "too many resources requested for launch"
    with pytest.raises(ToolchainError, match="more registers than a group can have") as caught:
        kernels.launch("main.kernel0", VALUES, ONE, ONE, ())
    assert caught.value.why == (
        "launching the kernel main.kernel0: cuLaunchKernel failed: "
        "too many resources requested for launch"
    )
    recording.errors.clear()
    kernels.launch("main.kernel0", VALUES, ONE, ONE, ())
    assert len(recording.launches) == 1, "the next launch works"


def test_a_missing_kernel(recording):
    kernels = load(recording, KERNEL)
    recording.errors["cuModuleGetFunction"] = "named symbol not found"
    with pytest.raises(UserError, match="no kernel 'main_kernel0'") as caught:
        kernels.launch("main.kernel0", VALUES, ONE, ONE, ())
    assert "named symbol not found" in caught.value.why
    assert caught.value.remedy == "build the module again"
    recording.errors.clear()
    recording.trap = "an illegal memory access was encountered"
    with pytest.raises(ToolchainError, match="a kernel that was launched before failed"):
        kernels.launch("main.kernel0", VALUES, ONE, ONE, ())


def test_a_module_and_its_kernels_are_released_together(recording):
    kernels = load(recording, KERNEL)
    kernels.launch("main.kernel0", VALUES, ONE, ONE, ())
    assert recording.alive == ["module"]
    del kernels
    gc.collect()
    assert (recording.alive, recording.leaked) == ([], [])
    assert recording.calls[-2:] == ["cuCtxSynchronize", "cuCtxPopCurrent"]


def test_a_module_in_a_cycle_is_released_with_its_context(recording):
    kernels = load(recording, KERNEL)
    kernels.launch("main.kernel0", VALUES, ONE, ONE, ())
    cycle = [kernels]
    cycle.append(cycle)
    del kernels, cycle
    gc.collect()
    assert (recording.alive, recording.leaked) == ([], [])


# Code.


def test_all_formats_are_loaded(recording):
    fatbin = bytes.fromhex("50ed55ba") + bytes(60)
    for data, format in ((PTX, "ptx"), (fatbin, "fatbin"), (fake_cubin().data, "cubin")):
        load(recording, code=Binary(data, format))
    assert recording.code == [PTX + b"\0", fatbin, fake_cubin().data]
    assert set(FORMATS) == {"ptx", "fatbin", "cubin"}


@pytest.mark.parametrize("code", [Source("int f;", "cuda"), Binary(b"", "hsaco")])
def test_other_code_is_refused(code):
    with pytest.raises(UserError, match="takes machine code or PTX: cubin, ptx, fatbin") as caught:
        checked_code(code, "sm_90")
    assert caught.value.remedy == "build for 'cuda'"


@pytest.mark.parametrize(
    ("code", "arch", "fits"),
    [
        *((fake_cubin(80), "sm_86", True), (fake_cubin(86), "sm_80", False)),
        *((fake_cubin(80), "sm_90", False), (fake_cubin(100), "sm_103", True)),
        *((Binary(PTX, "ptx"), "sm_90", True), (Binary(PTX, "ptx"), "sm_75", False)),
    ],
)
def test_code_for_another_gpu_is_refused_before_the_driver_sees_it(code, arch, fits):
    if fits:
        assert checked_code(code, arch)
        return
    with pytest.raises(ToolchainError, match=f"but the GPU is {arch}") as caught:
        checked_code(code, arch)
    assert "the code is for sm_8" in caught.value.what
    assert "major number" in caught.value.why or "higher number" in caught.value.why
    assert f"cuda -arch={arch}" in caught.value.remedy


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (Binary(fake_cubin().data[:30], "cubin"), ""),
        (Binary(b"\x7fELF", "cubin"), ""),
        (Binary(b"nothing", "cubin"), "Magic number"),
        (Binary(PTX.replace(b".target", b""), "ptx"), "does not name an architecture"),
        (Binary(b"x", "fatbin"), "does not begin as a fatbin"),
    ],
)
def test_damaged_code_is_refused(code, why):
    with pytest.raises(ToolchainError, match=f"the {code.format} is damaged") as caught:
        checked_code(code, "sm_90")
    assert why in caught.value.why and caught.value.remedy == "build it again"


@pytest.mark.parametrize(
    "words",
    ["device kernel image is invalid", "no kernel image is available for execution on the device"],
)
def test_code_that_the_driver_refuses(recording, words):
    recording.errors["cuModuleLoadDataEx"] = words
    with pytest.raises(ToolchainError, match="the code is damaged or for another GPU") as caught:
        load(recording)
    assert caught.value.why == f"cuModuleLoadDataEx failed: {words}"
    assert "cuda -arch=sm_90" in caught.value.remedy


def test_lack_of_memory_for_code(recording):
    recording.errors["cuModuleLoadDataEx"] = "out of memory"
    with pytest.raises(MemoryError, match="loading code: cuModuleLoadDataEx failed"):
        load(recording)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_real_cubins_are_read(arch):
    source = Source('extern "C" __global__ void f() {}\n', "cuda")
    cubin = compile_source(source, {"arch": arch}, "cubin", description="cuda")
    assert checked_code(cubin, arch) == cubin.data
    with pytest.raises(ToolchainError, match=f"the code is for {arch}, but the GPU is sm_80"):
        checked_code(cubin, "sm_80")
    with pytest.raises(ToolchainError, match="the cubin is damaged"):
        checked_code(Binary(cubin.data[: len(cubin.data) // 2], "cubin"), arch)
    ptx = compile_source(source, {"arch": arch}, "ptx", description="cuda")
    assert checked_code(Binary(ptx.data, "ptx"), arch).endswith(b"\0")

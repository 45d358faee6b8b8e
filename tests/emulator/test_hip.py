"""The functions of HIP on an emulated GPU: through the runtime, and by their error numbers."""

import ctypes
import struct

import numpy as np
import pytest

import refcomp
from refcomp.driver.devices import rocm_emulator
from refcomp.emulator.generations.generation import ARCHITECTURES
from refcomp.emulator.hip import EmulatedHip
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.hip import api as hip_api
from refcomp.hip.interface import function_names, offered_by
from tests.emulator.kernels import SMALL, compiled_code, disassembled


def _number(name):
    return hip_api.number(f"hipError{name}")


def _hip():
    return offered_by(EmulatedHip("gfx942", disassembled, size=SMALL))


def _address(function, *args):
    made = ctypes.c_void_p()
    assert function(ctypes.byref(made), *args) == 0
    return made


def test_all_functions_are_there():
    hip = _hip()
    # There is one layout of the properties, that of HIP 6 and later.
    lacking = [name for name in function_names() if not hasattr(hip, name)]
    assert lacking in ([], ["hipGetDeviceProperties"])


def test_other_gpus_are_not_emulated():
    with pytest.raises(UserError, match="the emulator does not support gfx906"):
        EmulatedHip("gfx906", disassembled)


def test_memory():
    hip = _hip()
    memory = _address(hip.hipMalloc, 16)
    given, taken = (ctypes.c_char * 16)(*b"0123456789abcdef"), (ctypes.c_char * 16)()
    to_device, to_host = (
        hip_api.number(f"hipMemcpy{way}") for way in ("HostToDevice", "DeviceToHost")
    )
    assert hip.hipMemcpy(memory, ctypes.addressof(given), 16, to_device) == 0
    assert hip.hipMemset(memory, ord("x"), 4) == 0
    assert hip.hipMemcpy(ctypes.addressof(taken), memory, 16, to_host) == 0
    assert taken.raw == b"xxxx456789abcdef"
    assert hip.hipMemcpy(memory, ctypes.addressof(given), 17, to_device) == _number("InvalidValue")
    assert hip.hipFree(memory) == 0 and hip.hipFree(memory) == _number("InvalidValue")
    assert hip.hipMemset(memory, 0, 1) == _number("InvalidValue")
    made = ctypes.c_void_p()
    assert hip.hipMalloc(ctypes.byref(made), 1 << 40) == _number("OutOfMemory")
    pinned = _address(hip.hipHostMalloc, 8, 0)
    assert hip.hipHostFree(pinned) == 0 and hip.hipHostFree(pinned) == _number("InvalidValue")


def test_streams_and_events():
    hip = _hip()
    stream, event = _address(hip.hipStreamCreate), _address(hip.hipEventCreate)
    assert hip.hipEventRecord(event, stream) == 0 == hip.hipStreamWaitEvent(stream, event, 0)
    other, milliseconds = _address(hip.hipEventCreate), ctypes.c_float()
    assert hip.hipEventElapsedTime(ctypes.byref(milliseconds), event, other) != 0
    assert hip.hipEventRecord(other, None) == 0
    assert hip.hipEventElapsedTime(ctypes.byref(milliseconds), event, other) == 0
    assert milliseconds.value >= 0
    assert hip.hipStreamDestroy(stream) == 0
    assert hip.hipStreamSynchronize(stream) == _number("InvalidHandle")


@pytest.mark.rocm
def test_errors_of_modules_and_launches():
    hip, code = _hip(), compiled_code("vector_add")
    module = ctypes.c_void_p()
    bad = ctypes.create_string_buffer(b"no code at all", 64)
    assert hip.hipModuleLoadData(ctypes.byref(module), ctypes.addressof(bad)) == _number(
        "InvalidImage"
    )
    image = ctypes.create_string_buffer(code, len(code))
    module = _address(hip.hipModuleLoadData, ctypes.addressof(image))
    function = ctypes.c_void_p()
    found = hip.hipModuleGetFunction(ctypes.byref(function), module, b"nothing")
    assert found == _number("NotFound")
    function = _address(hip.hipModuleGetFunction, module, b"vector_add")
    buffer, size = ctypes.create_string_buffer(40), ctypes.c_size_t(40)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
    launch = hip.hipModuleLaunchKernel
    assert launch(function, 0, 1, 1, 64, 1, 1, 0, None, None, extra) == _number("InvalidValue")
    too_many = launch(function, 1, 1, 1, 64, 64, 1, 0, None, None, extra)
    assert too_many == _number("InvalidConfiguration")
    assert launch(module, 1, 1, 1, 64, 1, 1, 0, None, None, extra) == _number("InvalidHandle")
    assert hip.hipModuleUnload(module) == 0
    assert launch(function, 1, 1, 1, 64, 1, 1, 0, None, None, extra) == _number("InvalidHandle")


@pytest.mark.rocm
def test_a_missing_tool_is_no_wrong_code():
    """A driver's number would tell the user that the code is for another GPU."""

    def disassemble(code):
        raise ToolchainError("llvm-objdump was not found", remedy="install LLVM")

    code, module = compiled_code("vector_add"), ctypes.c_void_p()
    hip = offered_by(EmulatedHip("gfx942", disassemble, size=SMALL))
    image = ctypes.create_string_buffer(code, len(code))
    hip.hipModuleLoadData(ctypes.byref(module), ctypes.addressof(image))
    with pytest.raises(ToolchainError, match="llvm-objdump was not found") as told:
        hip.raise_pending()
    assert told.value.remedy == "install LLVM"


@pytest.mark.rocm
def test_code_for_another_gpu_has_its_number():
    hip, code = _hip(), compiled_code("vector_add", gpu="gfx90a")
    image, module = ctypes.create_string_buffer(code, len(code)), ctypes.c_void_p()
    found = hip.hipModuleLoadData(ctypes.byref(module), ctypes.addressof(image))
    assert found == _number("NoBinaryForGpu")


@pytest.mark.rocm
def test_images_that_cannot_be_loaded():
    hip, code, module = _hip(), bytearray(compiled_code("vector_add")), ctypes.c_void_p()
    struct.pack_into("<Q", code, 40, 1 << 40)  # where its last table begins
    image = ctypes.create_string_buffer(bytes(code), len(code))
    address = ctypes.addressof(image)
    assert hip.hipModuleLoadData(ctypes.byref(module), address) == _number("InvalidImage")
    hip = offered_by(EmulatedHip("gfx942", disassembled, size=4096))
    code = compiled_code("vector_add")
    image = ctypes.create_string_buffer(code, len(code))
    address = ctypes.addressof(image)
    assert hip.hipModuleLoadData(ctypes.byref(module), address) == _number("OutOfMemory")


def _scaled(options="gfx942"):
    """C[i] = 2 * A[i], 64 threads in a group."""
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), "float32", "A")
    c = refcomp.compute((n,), lambda i: a[i] * 2.0, "C")
    schedule = refcomp.create_schedule(c)
    outer, inner = schedule[c].split(c.op.axis[0], 64)
    schedule[c].bind(outer, refcomp.thread_axis("blockIdx.x"))
    schedule[c].bind(inner, refcomp.thread_axis("threadIdx.x"))
    return refcomp.build(schedule, [a, c], target=f"rocm -mcpu={options}", name="scaled")


@pytest.mark.rocm
@pytest.mark.parametrize(
    ("gpu", "options"),
    [*((gpu, gpu) for gpu in ARCHITECTURES), ("gfx1100", "gfx1100 -wavefront=64")],
)
def test_the_runtime_works_above_it(gpu, options):
    device, module = rocm_emulator(gpu), _scaled(options)
    values = np.arange(1000, dtype=np.float32)
    a, c = refcomp.array(values, device), refcomp.array(np.zeros_like(values), device)
    module(a, c)
    assert (c.asnumpy() == 2 * values).all()
    assert device.name == f"emulated AMD GPU ({gpu})"


@pytest.mark.rocm
def test_what_is_found_is_raised():
    device, module = rocm_emulator("gfx942"), _scaled()
    a, c = (refcomp.empty((100,), "float32", device) for _ in range(2))
    with pytest.raises(UserError, match="the emulator found errors in the kernel") as caught:
        module(a, c)
    assert "what is stored depends on bits that nothing wrote (100 times)" in str(caught.value)
    assert "made of kernels.ir:" in str(caught.value)


@pytest.mark.rocm
def test_what_is_found_names_the_arguments(tmp_path):
    """While the kernel runs: what is out of bounds in a later one is behind other memory."""
    device = rocm_emulator("gfx942")
    (tmp_path / "k.hsaco").write_bytes(compiled_code("vector_add"))
    add = refcomp.load_code_object(tmp_path / "k.hsaco")["vector_add"]
    a, b, c = (refcomp.array(np.ones(64, np.float32), device) for _ in "abc")
    n, groups = np.int64(65), np.int64(2)
    for arrays in ((a, b, c), (b, a, c)):
        with pytest.raises(UserError, match=r"\(3 findings\)") as caught:
            add(*arrays, n, groups, grid=2, block=64)
        for name in "ABC":
            end = f"4 bytes behind the memory of {name} (256 bytes)"
            assert f"out of bounds: 4 bytes that end {end}" in str(caught.value)


@pytest.mark.rocm
def test_its_work_is_counted_and_not_timed():
    device, module = rocm_emulator("gfx942"), _scaled()
    values = np.arange(1000, dtype=np.float32)
    arrays = [refcomp.array(values, device) for _ in "ac"]
    result = module.time_evaluator("scaled", device)(*arrays)
    (counts,) = result.counts.kernels
    assert (counts.launches, counts.groups, counts.written) == (1, 16, 4096)
    assert str(result).startswith("counted, not timed: scaled_kernel0: 0 multiply-adds; instr")
    with pytest.raises(UserError, match="time of an emulated device cannot be measured"):
        _ = result.mean
    module(*arrays)
    assert result.counts.kernels[0].launches == 1  # nobody counts any more

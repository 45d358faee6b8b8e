"""The names of pycuda on an emulated GPU, behind the driver that real GPUs have."""

import numpy as np
import pytest

from refcomp.emulator.ptx.cuda import EmulatedKernel, KernelRun, LoadedKernels, emulated_pycuda
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.runtime.cuda.driver import CudaDriver
from refcomp.runtime.cuda.interface import missing_names
from refcomp.runtime.launch import KernelSignature

PTX = b".version 8.0\n.target sm_90\n.address_size 64\n"


def _fake(runs):
    """Return a loader of one kernel, which adds 1 to each byte of its only argument."""

    def load(arena, text):
        assert text.encode() == PTX

        def run(request):
            runs.append(request)
            address = int.from_bytes(request.arguments, "little")
            arena.write(address, arena.read(address, 4) + np.uint8(1))

        return LoadedKernels({"k": EmulatedKernel(run, shared_bytes=16)})

    return load


def _cuda(runs=None, **options):
    return emulated_pycuda(
        "sm_90", _fake([] if runs is None else runs), **{"size": 1 << 20} | options
    )


def test_it_has_all_names():
    assert missing_names(_cuda()) == []


def test_memory_is_protected_unless_an_argument_lets_the_kernel_write_it():
    runs = []
    loaded = LoadedKernels({"k": EmulatedKernel(runs.append, shared_bytes=0)})
    cuda = emulated_pycuda("sm_90", lambda arena, text: loaded, size=1 << 20)
    driver = CudaDriver(lambda: cuda)
    places = [driver.allocate(0, 64) for _ in range(3)]
    signature = KernelSignature("k", "k", (None, None, I64, None), read_only=(0, 3))
    kernels = driver.load(0, Binary(PTX, "ptx"), [signature])
    first, second, third = places

    def protected(a, b, c):
        values = (a, b, np.int64(places[2].address), c)
        kernels.launch("k", values, (1, 1, 1), (1, 1, 1), ())
        return runs[-1].read_only

    assert protected(first, second, third) == (first.address, third.address)
    assert protected(first, second, second) == (first.address,)
    assert protected(second, second, driver.part(second, 4, 8)) == ()
    inside = driver.part(first, 16, 8)
    assert protected(inside, second, first) == (first.address,)


def test_the_driver_copies_and_launches():
    runs = []
    driver = CudaDriver(lambda: _cuda(runs))
    assert driver.count() == 1
    assert driver.name(0) == "emulated NVIDIA GPU (sm_90)"
    memory = driver.allocate(0, 4)
    driver.upload(0, np.arange(4, dtype=np.uint8), memory)
    kernels = driver.load(0, Binary(PTX, "ptx"), [KernelSignature("k", "k", ())])
    arguments = memory.address.to_bytes(8, "little")
    kernels.launch_packed("k", arguments, (2, 1, 1), (32, 1, 1), 100_000)
    result = np.zeros(4, np.uint8)
    driver.download(0, memory, result)
    assert result.tolist() == [1, 2, 3, 4]
    assert runs == [KernelRun((2, 1, 1), (32, 1, 1), arguments, 100_000)]
    assert kernels.resources("k") == {"registers": 0, "shared_bytes": 16}
    driver.fill(0, memory, 7, 4)
    driver.download(0, memory, result)
    assert result.tolist() == [7] * 4
    assert driver.seconds(0, lambda: None) >= 0


def test_failures_have_the_drivers_words():
    cuda = _cuda()
    with pytest.raises(cuda.MemoryError, match="out of memory"):
        cuda.mem_alloc(1 << 30)
    with pytest.raises(cuda.Error, match="cuMemcpyHtoD failed: invalid argument"):
        cuda.memcpy_htod(0, np.zeros(4, np.uint8))
    with pytest.raises(cuda.Error, match="invalid device ordinal"):
        cuda.Device(1)
    function = cuda.module_from_buffer(PTX + b"\0").get_function("k")
    with pytest.raises(cuda.Error, match="cuLaunchKernel failed: invalid argument"):
        function(grid=(1, 1, 1), block=(1, 1, 1), shared=49 << 10, stream=None)
    with pytest.raises(cuda.Error, match="cuFuncSetAttribute failed: invalid argument"):
        function.set_attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES", 227 << 10)
    with pytest.raises(cuda.Error, match="named symbol not found"):
        cuda.module_from_buffer(PTX + b"\0").get_function("no")


def test_memory_is_released_once():
    cuda = _cuda()
    free, _ = cuda.mem_get_info()
    memory = cuda.mem_alloc(4096)
    assert cuda.mem_get_info()[0] < free
    memory.free()
    memory.free()
    assert cuda.mem_get_info()[0] == free


def test_machine_code_and_unknown_gpus_are_refused():
    with pytest.raises(UserError, match="does not run machine code"):
        _cuda().module_from_buffer(b"\x7fELF\0")
    with pytest.raises(UserError, match="'gfx942' is not an NVIDIA GPU"):
        emulated_pycuda("gfx942", _fake([]))

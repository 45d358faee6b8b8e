"""From te to cubins and launches: what nvcc compiled is loaded, and launched on a stand-in.

No GPU runs here. The interpreter computes each launch from the arguments that a GPU would get. The
tests with the mark `gpu` run the same schedules on a real one.
"""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import refcomp as rc
from refcomp.driver.backends.loading import device_limits
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.errors import ToolchainError, UserError
from refcomp.foundation.target import as_target
from refcomp.runtime.device import Device
from refcomp.runtime.module import Module
from tests.codegen.cuda.host_kernels import HostKernels
from tests.runtime.cuda.interpreted_kernels import interpret_launches

TARGET = "cuda -arch=sm_90"


def bind(stage, **axes):
    for name, axis in axes.items():
        kind, _, dim = name.partition("_")
        stage.bind(axis, rc.thread_axis(f"{kind}Idx.{dim}"))


def vector_add():
    n = rc.var("n")
    a, b = (rc.placeholder((n,), name=name) for name in "AB")
    c = rc.compute((n,), lambda i: a[i] + b[i], name="C")
    s = rc.create_schedule(c)
    group, item = s[c].split(c.op.axis[0], factor=64)
    bind(s[c], block_x=group, thread_x=item)
    return s, [a, b, c]


def rows():
    """Two kernels for each row, with a workspace between them."""
    m, n = rc.var("m"), rc.var("n")
    a = rc.placeholder((m, n), name="A")
    b = rc.compute((m, n), lambda i, j: a[i, j] * 2.0, name="B")
    c = rc.compute((m, n), lambda i, j: b[i, n - 1 - j] + 1.0, name="C")
    s = rc.create_schedule(c)
    for tensor in (b, c):
        group, item = s[tensor].split(tensor.op.axis[1], factor=32)
        bind(s[tensor], block_x=group, thread_x=item)
    return s, [a, c]


def product(n, m, k, step):
    """Groups of 16 x 16 threads compute 64 x 64 elements, from tiles of `step` columns of A."""
    a, b = rc.placeholder((n, k), name="A"), rc.placeholder((k, m), name="B")
    r = rc.reduce_axis((0, k), name="r")
    c = rc.compute((n, m), lambda i, j: rc.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = rc.create_schedule(c)
    sums = s.cache_write(c, "local")
    tiles = [s.cache_read(tensor, "shared", [sums]) for tensor in (a, b)]
    by, bx, i, j = s[c].tile(*s[c].op.axis, 64, 64)
    ty, i = s[c].split(i, nparts=16)
    tx, j = s[c].split(j, nparts=16)
    s[c].reorder(by, bx, ty, tx, i, j)
    bind(s[c], block_y=by, block_x=bx, thread_y=ty, thread_x=tx)
    s[sums].compute_at(s[c], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=step)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    for tile in tiles:
        s[tile].compute_at(s[sums], outer)
        ty, rest = s[tile].split(s[tile].fuse(*s[tile].op.axis), nparts=16)
        tx, _ = s[tile].split(rest, nparts=16)
        bind(s[tile], thread_y=ty, thread_x=tx)
    return s, [a, b, c]


def kernels_of(schedule, args, name, target=TARGET):
    func = rc.lower(schedule, args, name)
    kind = as_target(target)
    return run_device_passes(func, kind.kind, device_limits(kind)).kernels


def built(recording, schedule, args, name, target=TARGET) -> Module:
    interpret_launches(recording, kernels_of(schedule, args, name, target))
    return rc.build(schedule, args, target, name=name)


def operands(n, m, k):
    """Two matrices of small integers, whose product is exact."""
    a = np.random.default_rng(0).integers(-4, 4, (n, k)).astype(np.float32)
    b = np.random.default_rng(1).integers(-4, 4, (k, m)).astype(np.float32)
    return a, b


def check_add(module: Module, device: Device, n: int) -> None:
    a, b = np.random.default_rng(n).standard_normal((2, n), dtype=np.float32)
    out = rc.empty(n, "f32", device)
    module(rc.array(a, device), rc.array(b, device), out)
    np.testing.assert_array_equal(out.asnumpy(), a + b)


@pytest.mark.nvcc
def test_vector_add(cuda_gpu):
    recording, gpu = cuda_gpu
    module = built(recording, *vector_add(), "add")
    assert recording.code[0].startswith(b"\x7fELF"), "a real cubin"
    for n in (1, 64, 1000):
        check_add(module, gpu, n)
    grids = [(1, 1, 1), (1, 1, 1), (16, 1, 1)]
    assert [launch.grid for launch in recording.launches] == grids
    assert {launch.block for launch in recording.launches} == {(64, 1, 1)}
    assert {launch.shared for launch in recording.launches} == {0}
    check_add(module, gpu, 0)
    assert len(recording.launches) == 3, "nothing runs for no elements"
    time = module.time_evaluator("add", gpu, number=4, repeat=2)
    arrays = [rc.array(np.zeros(8, np.float32), gpu) for _ in range(3)]
    assert time(*arrays).results == pytest.approx([2.5e-3, 2.5e-3])
    del module, arrays, time
    gc.collect()
    assert (recording.alive, recording.leaked) == ([], [])


@pytest.mark.nvcc
def test_a_product_with_more_than_48_kib_of_shared_memory(cuda_gpu):
    recording, gpu = cuda_gpu
    # nvcc puts one of the two tiles of 32 KiB in static memory. The other one is dynamic.
    recording.kernel_attributes["SHARED_SIZE_BYTES"] = 32768
    module = built(recording, *product(64, 64, 128, step=128), "product")
    a, b = operands(64, 64, 128)
    out = rc.empty((64, 64), "f32", gpu)
    module(rc.array(a, gpu), rc.array(b, gpu), out)
    np.testing.assert_array_equal(out.asnumpy(), a @ b)
    (launch,) = recording.launches
    assert (launch.grid, launch.block, launch.shared) == ((1, 1, 1), (16, 16, 1), 32768)
    assert recording.allowed == [("MAX_DYNAMIC_SHARED_SIZE_BYTES", 32768)]
    # Three addresses, the extent of the moved tile, and where it begins.
    assert len(launch.arguments) == 5 * 8
    assert launch.arguments[24:] == (8192).to_bytes(8, "little") + bytes(8)


@pytest.mark.llvm
@pytest.mark.nvcc
def test_the_same_product_for_nvptx(cuda_gpu):
    recording, gpu = cuda_gpu
    module = built(recording, *product(64, 64, 256, step=256), "product", "nvptx -arch=sm_90")
    a, b = operands(64, 64, 256)
    out = rc.empty((64, 64), "f32", gpu)
    module(rc.array(a, gpu), rc.array(b, gpu), out)
    np.testing.assert_array_equal(out.asnumpy(), a @ b)
    # Both tiles are dynamic: each takes more than is left.
    (launch,) = recording.launches
    assert launch.shared == 2 * 65536 and len(launch.arguments) == 7 * 8
    assert recording.allowed == [("MAX_DYNAMIC_SHARED_SIZE_BYTES", 2 * 65536)]


@pytest.mark.gcc
def test_the_printed_product_computes_on_this_machine():
    """g++ judges the text whose tile is dynamic; it knows nothing of the interpreter."""
    kernels = kernels_of(*product(64, 64, 128, step=128), "product")
    a, b = operands(64, 64, 128)
    out = np.zeros((64, 64), np.float32)
    HostKernels(kernels).call(kernels[0], [a, b, out, 8192], shared_bytes=(32768,))
    np.testing.assert_array_equal(out, a @ b)


@pytest.mark.nvcc
def test_lack_of_memory_for_a_workspace(cuda_gpu):
    recording, gpu = cuda_gpu
    module = built(recording, *rows(), "rows")
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    there, out = rc.array(a, gpu), rc.empty((3, 4), "f32", gpu)
    recording.memory_bytes = recording.used_bytes
    with pytest.raises(MemoryError, match="the NVIDIA GPU has no room"):
        module(there, out)
    gc.collect()
    assert recording.used_bytes == 2 * 48, "the arrays, and nothing of the call"
    recording.memory_bytes = 1 << 20
    module(there, out)
    np.testing.assert_array_equal(out.asnumpy(), a[:, ::-1] * 2 + 1)
    assert recording.used_bytes == 2 * 48


@pytest.mark.nvcc
def test_a_saved_module_is_loaded_without_tools(cuda_gpu, tmp_path, monkeypatch):
    recording, gpu = cuda_gpu
    path = tmp_path / "add.module"
    built(recording, *vector_add(), "add").save(path)
    recording.code.clear()

    def refuse(*args, **options):
        raise AssertionError(f"{args} was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    module = rc.load_module(path)
    check_add(module, gpu, 100)
    assert module.target == TARGET and recording.code[0].startswith(b"\x7fELF")
    assert "__global__" in module.imported_modules[0].get_source("cuda")


@pytest.mark.nvcc
def test_a_module_file_on_a_machine_without_a_gpu(tmp_path):
    schedule, args = vector_add()
    path = tmp_path / "add.module"
    rc.build(schedule, args, TARGET, name="add").save(path)
    module = rc.load_module(path)
    assert "__global__" in module.imported_modules[0].get_source("cuda")
    if rc.cuda().exist:
        return
    arrays = [rc.array(np.zeros(3, np.float32)) for _ in range(3)]
    with pytest.raises(UserError, match="this machine has no device cuda:0") as caught:
        module(*arrays)
    assert "pycuda" in caught.value.why or "driver" in caught.value.why


@pytest.mark.nvcc
def test_a_module_for_another_gpu(cuda_gpu, tmp_path):
    recording, _ = cuda_gpu
    path = tmp_path / "add.module"
    built(recording, *vector_add(), "add").save(path)
    recording.capability = (8, 9)
    with pytest.raises(ToolchainError, match="the code is for sm_90, but the GPU is sm_89"):
        rc.load_module(path)


@pytest.mark.nvcc
def test_calls_run_where_their_arrays_are(cuda_gpu):
    recording, _ = cuda_gpu
    recording.devices = 2
    module = built(recording, *vector_add(), "add")
    for index in (1, 0, 1):
        check_add(module, rc.cuda(index), 70)
    assert [launch.device for launch in recording.launches] == [1, 0, 1]
    assert len(recording.code) == 2, "loaded once on each GPU"


def test_the_target_nvptx_runs_on_the_same_device():
    assert rc.context("nvptx") == rc.context("cuda") == rc.cuda(0)


# On a real GPU.


@pytest.fixture
def real_gpu() -> Device:
    gpu = rc.cuda(0)
    if not gpu.exist:
        why, remedy = gpu.driver.absence()
        pytest.skip(f"no NVIDIA GPU: {why}; {remedy}")
    return gpu


@pytest.mark.gpu
@pytest.mark.nvcc
def test_vector_add_on_a_gpu(real_gpu):
    module = rc.build(*vector_add(), "cuda", name="add")
    for n in (0, 1, 64, 100_000):
        check_add(module, real_gpu, n)


@pytest.mark.gpu
@pytest.mark.nvcc
def test_a_product_with_more_than_48_kib_of_shared_memory_on_a_gpu(real_gpu):
    module = rc.build(*product(256, 256, 512, step=128), "cuda", name="product")
    a, b = operands(256, 256, 512)
    out = rc.empty((256, 256), "f32", real_gpu)
    module(rc.array(a, real_gpu), rc.array(b, real_gpu), out)
    np.testing.assert_array_equal(out.asnumpy(), a @ b)


@pytest.mark.gpu
def test_lack_of_memory_on_a_gpu(real_gpu):
    kept = rc.array(np.arange(1000, dtype=np.float32), real_gpu)
    with pytest.raises(MemoryError, match="the NVIDIA GPU has no room"):
        rc.empty((1 << 44,), "int8", real_gpu)
    np.testing.assert_array_equal(kept.asnumpy(), np.arange(1000, dtype=np.float32))


TRAP = """
import numpy as np, refcomp as rc
from refcomp.foundation.artifacts import Source
from refcomp.foundation.errors import ToolchainError
from refcomp.runtime.launch import KernelSignature
from refcomp.toolchain import compile_source

text = 'extern "C" __global__ void astray(float* a) { a[1ll << 40] = 1; }\\n'
gpu = rc.cuda(0)
arch = gpu.driver.arch(0)
code = compile_source(Source(text, "cuda"), {"arch": arch}, "cubin", description="cuda")
kernels = gpu.driver.load(0, code, [KernelSignature("astray", "astray", (None,))])
a = rc.array(np.zeros(4, "float32"), gpu)
kernels.launch("astray", [a.memory], (1, 1, 1), (1, 1, 1), ())
for turn in range(2):
    try:
        a.asnumpy()
    except ToolchainError as error:
        print(error.what, "|", error.why)
"""


@pytest.mark.gpu
@pytest.mark.nvcc
def test_a_kernel_that_traps_on_a_gpu(real_gpu):
    """In a process of its own, since a trap ends the use of the GPU in this one."""
    done = subprocess.run(
        [sys.executable, "-c", TRAP],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("the kernel astray failed on the GPU")
    assert "illegal memory access" in first
    assert "cannot be used any more" in second and "illegal memory access" in second

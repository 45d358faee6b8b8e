"""The kernels that the emulator is timed on, as machine code of an emulated GPU.

`product` is an f32 product of matrices by groups of 16 x 16 threads that bring tiles of both
matrices to shared memory; each thread adds up `each` x `each` elements in registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import refcomp
from refcomp.driver.host_tools import host_tools, kernel_tools
from refcomp.emulator import EmulatedGpu, LaunchReport
from refcomp.emulator.execution.launch import Extents, LoadedCode
from refcomp.emulator.ptx.execution.launch import LoadedPtx, PtxReport
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.emulator.run import explicit_arguments
from refcomp.foundation.artifacts import Binary
from refcomp.runtime.module import Module
from refcomp.schedule.schedule import create_schedule
from refcomp.toolchain import disassemble

_THREADS = 16
_GROUP = 64
_ARENA_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Ready:
    """A kernel, loaded, with all that it takes to run it: `arrays` are two that it reads and one
    that it writes, `arguments` the same in the kernel's order."""

    gpu: EmulatedGpu
    loaded: LoadedCode
    grid: Extents
    block: Extents
    arrays: tuple[Any, ...]
    arguments: tuple[Any, ...]

    @property
    def lanes(self) -> int:
        """Return the number of lanes of a wave."""
        (kernel,) = self.loaded.code.kernels.values()
        return self.loaded.program(kernel).assembly.lanes

    def run(self) -> LaunchReport:
        """Run the kernel once on the arrays, which are copied to the GPU and back."""
        (name,) = self.loaded.code.kernels
        return self.gpu.run(self.loaded, name, self.grid, self.block, self.arguments)


@dataclass(frozen=True, slots=True)
class ReadyPtx:
    """A kernel of PTX, loaded, with the arrays that it reads and the one that it writes."""

    gpu: EmulatedNvidiaGpu
    loaded: LoadedPtx
    grid: Extents
    block: Extents
    arrays: tuple[Any, ...]
    lanes: int = 32  # of a warp

    def run(self) -> PtxReport:
        """Run the kernel once on the arrays, which are copied to the GPU and back."""
        (name,) = self.loaded.program.functions
        return self.gpu.run(self.loaded, name, self.grid, self.block, self.arrays)


def read_code(code: bytes) -> str:
    """Disassemble a code object."""
    return disassemble(Binary(code, "hsaco"))


def _ready(
    module: Module, grid: Extents, block: Extents, named: dict[str, Any], is_watched: bool
) -> Ready:
    # Code is translated by the first runs, before anything is timed.
    tools = replace(host_tools(), hot=0, is_concurrent=False)
    gpu = EmulatedGpu(read_code, size=_ARENA_BYTES, is_watched=is_watched, tools=tools)
    loaded = gpu.load(code_of(module))
    (kernel,) = loaded.code.kernels.values()
    arguments = tuple(named[argument.name] for argument in explicit_arguments(kernel))
    return Ready(gpu, loaded, grid, block, tuple(named.values()), arguments)


def code_of(module: Module) -> bytes:
    """Return the code object of a module with kernels."""
    code: Any = module.imported_modules[0].code
    data: bytes = code.data
    return data


def product(n: int, each: int, arch: str, *, is_watched: bool, is_fused: bool = False) -> Ready:
    """C = A B of n x n matrices; n is a multiple of 16 times `each`."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-1, 1, (2, n, n)).astype(np.float32)
    groups = n // (_THREADS * each)
    named = {"A": a, "B": b, "C": np.zeros((n, n), np.float32)}
    module, block = build_product(n, each, arch, is_fused), (_THREADS, _THREADS, 1)
    return _ready(module, (groups, groups, 1), block, named, is_watched)


def ptx_product(n: int, each: int, target: str, *, is_watched: bool) -> ReadyPtx:
    """The same as PTX of a target with the option `-code=ptx`."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-1, 1, (2, n, n)).astype(np.float32)
    groups = n // (_THREADS * each)
    tools = replace(kernel_tools(), hot=0)
    gpu = EmulatedNvidiaGpu(size=_ARENA_BYTES, is_watched=is_watched, tools=tools)
    loaded = gpu.load(code_of(build_product_for(n, each, target)).decode())
    arrays = (a, b, np.zeros((n, n), np.float32))
    return ReadyPtx(gpu, loaded, (groups, groups, 1), (_THREADS, _THREADS, 1), arrays)


def build_product(n: int, each: int, arch: str, is_fused: bool = False) -> Module:
    """Build the module of `product`. A multiply-add rounds once if `is_fused`, else twice."""
    return build_product_for(n, each, f"rocm -mcpu={arch}", is_fused)


def build_product_for(n: int, each: int, target: str, is_fused: bool = False) -> Module:
    """Build the module of `product` for any target of GPUs."""
    a, b = (refcomp.placeholder((n, n), name=letter) for letter in "AB")
    k = refcomp.reduce_axis((0, n), name="k")
    c = refcomp.compute((n, n), lambda i, j: refcomp.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = create_schedule(c)
    tiles = [s.cache_read(tensor, "shared", [c]) for tensor in (a, b)]
    sums = s.cache_write(c, "local")
    by, bx, i, j = s[c].tile(*s[c].op.axis, _THREADS * each, _THREADS * each)
    (ty, i), (tx, j) = s[c].split(i, factor=each), s[c].split(j, factor=each)
    s[c].reorder(by, bx, ty, tx, i, j)
    _bind(s[c], by, bx, "blockIdx")
    _bind(s[c], ty, tx, "threadIdx")
    s[sums].compute_at(s[c], tx)
    outer, inner = s[sums].split(s[sums].op.reduce_axis[0], factor=_THREADS)
    s[sums].reorder(outer, inner, *s[sums].op.axis)
    s[sums].unroll(inner)
    for tile in tiles:
        s[tile].compute_at(s[sums], outer)
        rest, tx = s[tile].split(s[tile].fuse(*s[tile].op.axis), factor=_THREADS)
        _, ty = s[tile].split(rest, factor=_THREADS)
        _bind(s[tile], ty, tx, "threadIdx")
    with refcomp.build_options(contract=is_fused):
        module: Module = refcomp.build(s, [a, b, c], target, name="product")
    return module


def _bind(stage: Any, y: Any, x: Any, tag: str) -> None:
    stage.bind(y, refcomp.thread_axis(f"{tag}.y"))
    stage.bind(x, refcomp.thread_axis(f"{tag}.x"))


def vector_add(n: int, arch: str, *, is_watched: bool) -> Ready:
    """c = a + b of n elements, a thread each."""
    a, b = (refcomp.placeholder((n,), name=letter) for letter in "ab")
    c = refcomp.compute((n,), lambda i: a[i] + b[i], name="c")
    s = create_schedule(c)
    block, thread = s[c].split(c.op.axis[0], factor=_GROUP)
    s[c].bind(block, refcomp.thread_axis("blockIdx.x"))
    s[c].bind(thread, refcomp.thread_axis("threadIdx.x"))
    module = refcomp.build(s, [a, b, c], f"rocm -mcpu={arch}", name="vector_add")
    x, y = np.random.default_rng(4).uniform(-1, 1, (2, n)).astype(np.float32)
    named = {"a": x, "b": y, "c": np.zeros(n, np.float32)}
    return _ready(module, (-(-n // _GROUP), 1, 1), (_GROUP, 1, 1), named, is_watched)

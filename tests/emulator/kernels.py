"""Kernels of the device level, compiled for the emulated GPU and run on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from refcomp.emulator import EmulatedGpu, LaunchReport
from refcomp.emulator.execution.launch import Extents, LoadedCode
from refcomp.emulator.generations.generation import ARCHITECTURES
from refcomp.emulator.observers.coverage import Coverage
from refcomp.foundation.artifacts import Binary
from refcomp.foundation.dtype import to_numpy
from refcomp.ir.func import PrimFunc
from refcomp.runtime.launch import kernel_signature
from refcomp.toolchain import disassemble
from tests.codegen.amdgpu.kernels import compile_kernels
from tests.codegen.device_kernels import device_kernel

GPU = "gfx942"  # where no other is named
# What kernels are compiled for where all GPUs are meant; `:64` has waves of 64 lanes.
GPUS = (*ARCHITECTURES, "gfx1100:64")
SMALL = 1 << 26


def disassembled(code: bytes) -> str:
    return disassemble(Binary(code, "hsaco"))


@cache
def compiled_code(*names: str, gpu: str = GPU) -> bytes:
    """The code object of kernels of `tests.codegen.device_kernels`."""
    return code_for(gpu, [device_kernel(name) for name in names])


def code_for(gpu: str, kernels: Sequence[PrimFunc], **options: str) -> bytes:
    """The code object of kernels for one of `GPUS`."""
    mcpu, _, lanes = gpu.partition(":")
    wishes = {"wavefront": int(lanes)} if lanes else None
    return compile_kernels(list(kernels), mcpu, wishes, **options).data


def make_gpu(**options: Any) -> EmulatedGpu:
    """With options of `EmulatedGpu`."""
    return EmulatedGpu(disassembled, size=SMALL, **options)


class Kernels:
    """Kernels compiled together for a GPU and loaded; `coverage` tells what their runs showed.
    `hazards` has the GPU look for them."""

    def __init__(
        self,
        kernels: Sequence[PrimFunc],
        gpu: str = GPU,
        *,
        hazards: bool = False,
        **options: str,
    ) -> None:
        self.coverage = Coverage()
        self.gpu = make_gpu(observers=[self.coverage], hazards=hazards)
        code = code_for(gpu, kernels, **options)
        self.loaded: LoadedCode = self.gpu.load(code)

    def run(
        self,
        kernel: PrimFunc,
        args: Sequence[Any],
        grid: Extents = (1, 1, 1),
        block: Extents = (1, 1, 1),
        shared_bytes: int = 0,
    ) -> LaunchReport:
        """Runs one on numpy arrays, written in place, and numbers."""
        signature = kernel_signature(kernel)
        values = [
            np.ascontiguousarray(arg) if param is None else to_numpy(param).type(arg)
            for param, arg in zip(signature.params, args, strict=True)
        ]
        return self.gpu.run(
            self.loaded, kernel.name, grid, block, values, shared_bytes=shared_bytes
        )

"""Kernels of loop IR as PTX on an emulated NVIDIA GPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from refcomp.codegen.signature import machine_symbol
from refcomp.emulator.ptx.run import EmulatedNvidiaGpu
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import kernel_nest, kernels_in

_SHARED_BYTES = 16 << 10  # more than any of the kernels asks for


class EmulatedPtx:
    """Kernels of a PTX file; `call(kernel, args)` runs one, and returns its report."""

    def __init__(self, text: str) -> None:
        self.gpu = EmulatedNvidiaGpu(size=64 << 20)
        self.loaded = self.gpu.load(text)

    def call(self, kernel: PrimFunc, args: Sequence[Any], begins: Sequence[int] = ()) -> Any:
        """Run the kernel on numpy arrays, written in place, and numbers.

        `begins` are further arguments: where shared buffers of unknown size begin.
        """
        values = [
            arg if isinstance(param, Buffer) else np.asarray(arg, param.dtype.dtype)[()]
            for param, arg in zip(kernel.params, args, strict=True)
        ]
        values += [np.uint64(begin) for begin in begins]
        known = dict(zip(kernel.params, args, strict=True))
        nest = next(kernel_nest(loop) for loop in kernels_in(kernel.body))
        grid, block = (
            tuple(e.value if isinstance(e, IntImm) else int(known[e]) for e in part)
            for part in (nest.grid, nest.block)
        )
        name = machine_symbol(kernel.name)
        return self.gpu.run(self.loaded, name, grid, block, values, shared_bytes=_SHARED_BYTES)

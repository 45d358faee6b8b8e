"""CUDA kernels that g++ compiles for this machine: an independent judge of the printed text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from refcomp.codegen.cuda.module import print_cuda
from refcomp.codegen.signature import machine_symbol
from refcomp.driver.cuda_on_host import JUDGED_ARCH, Sanitizers, compile_on_host, device_on_host
from refcomp.foundation.dtype import DType, to_numpy
from refcomp.ir.buffer import Buffer
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, kernel_nest
from refcomp.runtime.device import DeviceMemory
from refcomp.runtime.launch import Argument, kernel_signature


class HostKernels:
    """Kernels compiled as one file; `call(kernel, args)` runs one on numpy arrays and scalars."""

    def __init__(
        self,
        kernels: Sequence[PrimFunc],
        text: str | None = None,
        sanitizers: Sanitizers = "",
        limit_s: float = 120.0,
    ) -> None:
        source = print_cuda(kernels, JUDGED_ARCH)
        self.text = source.text if text is None else text
        code = compile_on_host(replace(source, text=self.text), sanitizers)
        self._driver: Any = device_on_host(sanitizers, limit_s).driver
        signatures = [kernel_signature(k, machine_symbol(k.name)) for k in kernels]
        self._launcher = self._driver.load(0, code, signatures)

    def call(
        self,
        kernel: PrimFunc,
        args: Sequence[Any],
        grid: Sequence[int] = (),
        block: Sequence[int] = (),
        shared_bytes: Sequence[int] = (),
    ) -> None:
        """Run `kernel`; arrays are written in place. By default the extents are its loops'."""
        pairs = list(zip(kernel.params, args, strict=True))
        values: list[Argument] = []
        for param, arg in pairs:
            if isinstance(param, Buffer):
                values.append(self._driver.allocate(0, arg.nbytes))
                self._driver.upload(0, arg, values[-1])
            else:
                values.append(_stored(arg, param.dtype))
        known = {param: arg for param, arg in pairs if isinstance(param, Var)}
        grid = grid or _extents(kernel, "grid", known)
        block = block or _extents(kernel, "block", known)
        if 0 not in (*grid, *block):
            self._launcher.launch(kernel.name, values, grid, block, tuple(shared_bytes))
        for (_, arg), value in zip(pairs, values, strict=True):
            if isinstance(value, DeviceMemory):
                self._driver.download(0, value, arg)


def _stored(value: Any, dtype: DType) -> Any:
    """Return a scalar argument as memory holds it."""
    return np.uint8(value) if dtype.is_bool else np.array(value, to_numpy(dtype))


def _extents(kernel: PrimFunc, which: str, known: dict[Var, int]) -> tuple[int, ...]:
    if not is_bound(kernel.body):
        return (1, 1, 1)
    return tuple(_number(extent, known) for extent in getattr(kernel_nest(kernel.body), which))


def _number(extent: Expr, known: dict[Var, int]) -> int:
    return extent.value if isinstance(extent, IntImm) else known[extent]

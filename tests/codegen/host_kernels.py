"""Compiles functions of the host level and calls them by their C interface, for tests alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refcomp.codegen.llvm.module import print_llvm
from refcomp.codegen.signature import machine_symbol
from refcomp.foundation.artifacts import Source
from refcomp.ir.buffer import Buffer
from refcomp.ir.func import PrimFunc, symbol_of
from refcomp.toolchain import compile_source, host_triple_and_layout, vector_bits

GENERIC = {
    "triple": "x86_64-unknown-linux-gnu",
    "layout": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
    "vector_bits": 512,
}


def print_generic(funcs: Sequence[PrimFunc], vector_bits: int = 512) -> Source:
    """The functions for an x86-64 processor, whatever this host is."""
    return print_llvm(funcs, **(GENERIC | {"vector_bits": vector_bits}))


def print_for_host(funcs: Sequence[PrimFunc]) -> Source:
    """The functions for the processor that runs the tests."""
    triple, layout = host_triple_and_layout()
    return print_llvm(funcs, triple=triple, layout=layout, vector_bits=vector_bits("native"))


class Kernels:
    """Compiled functions; `call(func, args)` returns the status."""

    def __init__(
        self, funcs: Sequence[PrimFunc], folder: Path, source: Source | None = None, **options: str
    ) -> None:
        self.source = print_for_host(funcs) if source is None else source
        path = folder / "kernels.so"
        path.write_bytes(compile_source(self.source, options, "so").data)
        self._library = ctypes.CDLL(str(path))

    def call(self, func: PrimFunc, args: Sequence[Any], num_threads: int = 1) -> int:
        """Runs `func` on numpy arrays and scalars, as its ABI says."""
        values: list[Any] = []
        extents: dict[Any, int] = {}
        for param, arg in zip(func.params, args, strict=True):
            if isinstance(param, Buffer):
                values.append(ctypes.c_void_p(arg.ctypes.data))
                for dim, extent in zip(param.shape, arg.shape, strict=True):
                    extents.setdefault(symbol_of(dim), extent)
            else:
                values.append(scalar_argument(arg, param.dtype.kind, param.dtype.bits))
        values += [ctypes.c_int64(extents[symbol]) for symbol in func.symbols]
        entry: Callable[..., int] = getattr(self._library, machine_symbol(func.name))
        return entry(*values, ctypes.c_int32(num_threads))


def scalar_argument(value: Any, kind: str, bits: int) -> Any:
    """A number as a C argument, f16 by its bits."""
    if kind == "float" and bits > 16:
        return ctypes.c_float(value) if bits == 32 else ctypes.c_double(value)
    if kind == "float":
        return ctypes.c_int16(int(np.float16(value).view(np.int16)))
    return {1: ctypes.c_int8, 8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32}.get(
        bits, ctypes.c_int64
    )(int(value))


def same_bits(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays agree to the bit; any NaN equals any other."""
    if actual.dtype.kind != "f":
        return actual == expected
    both_nan = np.isnan(actual) & np.isnan(expected)
    bits = f"i{actual.dtype.itemsize}"
    return both_nan | (actual.view(bits) == expected.view(bits))

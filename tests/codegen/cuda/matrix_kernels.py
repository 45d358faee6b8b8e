"""Kernels that call each instruction of NVIDIA GPUs once, with numpy's meaning of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.driver.backends import as_target
from refcomp.driver.pipeline import run_device_passes
from refcomp.foundation.dtype import as_dtype, to_numpy
from refcomp.foundation.target import limits_of
from refcomp.ir.func import PrimFunc
from refcomp.ir.gpu_instructions.nvidia import NVIDIA
from refcomp.ir.gpu_instructions.records import DotProduct, MatrixProduct
from refcomp.ir.parser import parse_func

PRODUCTS = [row for row in NVIDIA if isinstance(row, MatrixProduct)]
DOTS = [row for row in NVIDIA if isinstance(row, DotProduct)]


def as_kernel(func: PrimFunc, target: str = "cuda") -> PrimFunc:
    """The only kernel of a function, after all passes for a target."""
    program = run_device_passes(func, target, limits_of(as_target(target)))
    (kernel,) = program.kernels
    return kernel


def product_func(product: MatrixProduct, name: str, numbers: list[int]) -> PrimFunc:
    """Each thread stores elements `numbers` of A B + C; each array has a row for each thread."""
    counts = [*product.counts, product.c.count]
    operands = ", ".join(
        f"{matrix}[t, {k}]" for matrix, n in zip("ABC", counts, strict=True) for k in range(n)
    )
    stores = " ".join(
        f"D[t, {n}] = extern {product.sum} {product.name}({operands}, {n}i32)" for n in numbers
    )
    dtypes = (product.element, product.element, product.sum)
    params = ", ".join(
        f"{matrix}: {dtype}[32, {n}]"
        for matrix, dtype, n in zip("ABC", dtypes, counts, strict=True)
    )
    body = f"for t in range(32) threadIdx.x {{ {stores} }}"
    output = f"D: {product.sum}[32, {product.c.count}] out"
    return parse_func(f"func {name}({params}, {output}) {{ {body} }}")


@dataclass
class Case:
    """Operands of a product by lanes, and the result."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray


def draw_case(product: MatrixProduct, seed: int = 0) -> Case:
    """Draw whole numbers, of which every order of the additions gives the same sum."""
    rng = np.random.default_rng(seed)
    rows = 8 if ".m8n8" in product.name else 16
    low = 0 if product.element.kind == "uint" else -8
    a = rng.integers(low, 9, (rows, product.depth))
    b = rng.integers(low, 9, (product.depth, 8))
    c = rng.integers(-99, 99, (rows, 8))
    return Case(
        *(
            by_lanes(fragment, matrix).astype(to_numpy(dtype))
            for fragment, matrix, dtype in (
                (product.a, a, product.element),
                (product.b, b, product.element),
                (product.c, c, product.sum),
                (product.c, a @ b + c, product.sum),
            )
        )
    )


def by_lanes(fragment, matrix: np.ndarray) -> np.ndarray:
    """The elements of each lane, a row each."""
    return np.array(
        [[matrix[fragment.place(t, n)] for n in range(fragment.count)] for t in range(32)]
    )


def dot_func(product):
    """Each of 8 threads adds a product of four bytes to its number."""
    factors = ", ".join(f"{name}[t, {k}]" for name in "AB" for k in range(4))
    e, s = product.element, product.sum
    return parse_func(
        f"func dot_{product.element}(A: {e}[8, 4], B: {e}[8, 4], C: {s}[8], D: {s}[8] out) {{ "
        f"for t in range(8) threadIdx.x {{ D[t] = extern {s} {product.name}({factors}, C[t]) }} }}"
    )


LOADS = [("", "f16"), (".trans", "f16"), ("", "bf16"), (".trans", "bf16"), ("", "i8")]


def load_func(case, row=24):
    """Each thread copies a row to shared memory, and stores what it gets of four matrices.

    A row of the shared memory has `row` elements of 16 bits.
    """
    transposed, dtype = case
    count = 128 // as_dtype(dtype).bits
    elements = ", ".join(f"S[t, {k}]" for k in range(count))
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{transposed}.b16"
    stores = " ".join(
        f"D[t, {k}] = extern {dtype} {name}({elements}, {k}i32)" for k in range(count)
    )
    padded = row * 16 // as_dtype(dtype).bits
    return parse_func(
        f"func load{transposed.replace('.', '_')}_{dtype}(A: {dtype}[32, {count}], "
        f"D: {dtype}[32, {count}] out) {{ for t in range(32) threadIdx.x {{ "
        f"alloc S: {dtype}[32, {padded}] shared {{ for k in range({count}) {{ S[t, k] = A[t, k] }} "
        f"{stores} }} }} }}"
    )


# What nvdisasm calls the instructions of a kernel, by a part of the kernel's name.
OPCODES = {
    "m16n8k8.row.col.f32": "HMMA.1688.F32",
    "m16n8k16.row.col.f32": "HMMA.16816.F32",
    "m16n8k16.row.col.f16": "HMMA.16816.F16",
    "m16n8k16.row.col.bf16": "HMMA.16816.F32.BF16",
    "m16n8k8.row.col.tf32": "HMMA.1688.F32.TF32",
    "m8n8k16": "IMMA.8816",
    "m16n8k32": "IMMA.16832",
    "idp4a": "IDP.4A",
    "ldmatrix": "LDSM.16.M",
}

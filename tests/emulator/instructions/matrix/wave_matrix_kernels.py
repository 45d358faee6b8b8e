"""Products of matrices of RDNA3 by the functions that LLVM has for them, held against numpy.

One kernel for each instruction: each lane loads what it holds of A, B and C, calls the function,
and stores what it holds of D. Where elements lie is written out here, element by element, from
AMD's "RDNA3 Instruction Set Architecture", section on wave matrix multiply accumulate.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from refcomp.emulator.observers.coverage import Coverage
from refcomp.foundation.artifacts import Source
from refcomp.toolchain import compile_source, device_layout
from tests.emulator.agreement import Outcome
from tests.emulator.kernels import make_gpu

BITS = {"f16": 16, "bf16": 16, "iu8": 8, "iu4": 4}
_TYPES = {
    **{"f16": "<16 x half>", "bf16": "<16 x i16>", "iu8": "<4 x i32>", "iu4": "<2 x i32>"},
    **{"f32": "<8 x float>", "i32": "<8 x i32>"},
}
# Instruction: types of sums and of elements, and what LLVM calls it.
PRODUCTS = {
    "v_wmma_f32_16x16x16_f16": ("f32", "f16", "v8f32.v16f16"),
    "v_wmma_f32_16x16x16_bf16": ("f32", "bf16", "v8f32.v16i16"),
    "v_wmma_f16_16x16x16_f16": ("f16", "f16", "v16f16.v16f16"),
    "v_wmma_bf16_16x16x16_bf16": ("bf16", "bf16", "v16i16.v16i16"),
    "v_wmma_i32_16x16x16_iu8": ("i32", "iu8", "v8i32.v4i32"),
    "v_wmma_i32_16x16x16_iu4": ("i32", "iu4", "v8i32.v2i32"),
}
_KERNEL = """
define amdgpu_kernel void @{name}({params}) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
{loads}
  %d = call {sum} @llvm.amdgcn.{function}({args})
  %d.words = bitcast {sum} %d to <8 x i32>
  %to = getelementptr <8 x i32>, ptr addrspace(1) %D, i32 %i
  store <8 x i32> %d.words, ptr addrspace(1) %to, align 4
  ret void
}}
declare {sum} @llvm.amdgcn.{function}({types})
"""
_END = """
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="32,32" }
"""


# Where elements lie.


def encode(value: Any, kind: str) -> int:
    """The bits of a number of a type."""
    if kind in ("f32", "i32"):
        return int({"f32": np.float32, "i32": np.int32}[kind](value).view(np.uint32))
    if kind == "f16":
        return int(np.float16(value).view(np.uint16))
    if kind == "bf16":
        return int(np.float32(value).view(np.uint32)) >> 16
    return int(value) & ((1 << BITS[kind]) - 1)


def decode(word: Any, kind: str, half: int = 0) -> float:
    """The sum in a register; of 16 bits that in its lower or upper half."""
    if kind in ("f32", "i32"):
        return float(np.uint32(word).view({"f32": np.float32, "i32": np.int32}[kind]))
    bits = int(word) >> 16 * half & 0xFFFF
    if kind == "f16":
        return float(np.uint16(bits).view(np.float16))
    return float(np.uint32(bits << 16).view(np.float32))


def factor_words(matrix: Any, kind: str, lanes: int) -> Any:
    """[lane, register]: of lane l row l % 16, elements that follow each other in its registers."""
    bits = BITS[kind]
    words = np.zeros((lanes, 16 * bits // 32), np.uint32)
    for lane, k in np.ndindex(lanes, 16):
        words[lane, k * bits // 32] |= encode(matrix[lane % 16, k], kind) << k * bits % 32
    return words


def place_of_sum(row: int, column: int, lanes: int) -> tuple[int, int]:
    """The lane that holds a sum, and the register."""
    step = lanes // 16
    return row % step * 16 + column, row // step


def sum_words(matrix: Any, kind: str, lanes: int) -> Any:
    """[lane, register]."""
    words = np.zeros((lanes, 256 // lanes), np.uint32)
    for row, column in np.ndindex(16, 16):
        words[place_of_sum(row, column, lanes)] = encode(matrix[row, column], kind)
    return words


# Products by LLVM's functions.


@cache
def wave_products(gpu: str) -> Outcome:
    """Every such product, in waves of 32 lanes."""
    coverage, wrong = Coverage(), []
    device = make_gpu(observers=[coverage])
    loaded = device.load(_compiled(gpu))
    rng = np.random.default_rng(6)
    for name, (total, element, _) in PRODUCTS.items():
        a, b = rng.integers(-3, 4, (2, 16, 16))
        c = rng.integers(-9, 10, (16, 16))
        given = [factor_words(m, element, 32) for m in (a, b.T)] + [sum_words(c, total, 32)]
        result = np.zeros(256, np.uint32)
        arrays = [np.ascontiguousarray(words).ravel() for words in given]
        report = device.run(loaded, name, (1, 1, 1), (32, 1, 1), [*arrays, result])
        found = [decode(result[8 * lane + n], total) for lane, n in _all_places()]
        wrong += [] if (np.reshape(found, (16, 16)) == a @ b + c).all() else [name]
        wrong += [f"{name}: {finding}" for finding in report.findings]
    wrong += [f"{name} did not run" for name in PRODUCTS if name not in coverage.seen]
    return Outcome(len(PRODUCTS), tuple(wrong), coverage.seen)


def _all_places() -> list[tuple[int, int]]:
    return [place_of_sum(row, column, 32) for row, column in np.ndindex(16, 16)]


def _compiled(gpu: str) -> bytes:
    head = f'target datalayout = "{device_layout("rocm")}"\ntarget triple = "amdgcn-amd-amdhsa"\n'
    text = head + "".join(map(_kernel, PRODUCTS)) + _END
    source = Source(text, "llvm", entries=tuple(PRODUCTS))
    options = {"mcpu": gpu, "passes": "always-inline", "verify": "0"}
    return compile_source(source, options, "hsaco", description="rocm").data


def _kernel(name: str) -> str:
    total, element, ending = PRODUCTS[name]
    factor, sums = _TYPES[element], _TYPES[total]
    words = {"a": BITS[element] // 2, "b": BITS[element] // 2, "c": 8}
    loads = []
    for one, count in words.items():
        vector, kind = f"<{count} x i32>", sums if one == "c" else factor
        loads.append(
            f"  %{one}.at = getelementptr {vector}, ptr addrspace(1) %{one.upper()}, i32 %i"
        )
        loads.append(f"  %{one}.words = load {vector}, ptr addrspace(1) %{one}.at, align 4")
        loads.append(f"  %{one} = bitcast {vector} %{one}.words to {kind}")
    args = [f"{factor} %a", f"{factor} %b", f"{sums} %c"]
    if total == "i32":  # both factors have a sign, and sums wrap
        args = ["i1 1", args[0], "i1 1", args[1], args[2], "i1 0"]
    elif total != "f32":  # sums in the lower halves
        args.append("i1 0")
    return _KERNEL.format(
        name=name,
        params=", ".join(f"ptr addrspace(1) noalias %{place}" for place in "ABCD"),
        loads="\n".join(loads),
        function=f"{name[2:].replace('_', '.')}.{ending}",
        args=", ".join(args),
        types=", ".join(arg.rpartition(" ")[0] for arg in args),
        sum=sums,
    )

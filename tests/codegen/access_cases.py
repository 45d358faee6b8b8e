"""Every shape of access on every dtype, masked or not: kernels and their arguments."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from refcomp.foundation.dtype import SCALAR_DTYPES, DType, to_numpy
from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify

DTYPES = [dtype for dtype in SCALAR_DTYPES if dtype.kind != "bfloat"]
COUNT = 64
# Name, index of the read, of the write; `k` in range(4), `I` holds indices, `M` a mask.
_ACCESSES = {
    "scalar": ("k * 3 + 1", "k"),
    "contiguous": ("ramp(k * 8 + 1, 1, 8)", "ramp(k * 8, 1, 8)"),
    "strided": ("ramp(k, 5, 8)", "ramp(k, 4, 8)"),
    "backwards": ("ramp(k + 20, -1, 8)", "ramp(k * 8 + 7, -1, 8)"),
    "standing": ("ramp(k, 0, 8)", "ramp(k, 0, 8)"),
    "step_unknown": ("ramp(k, I@[k + 40], 8)", "ramp(k, I@[k + 40], 8)"),
    "anywhere": ("I@[ramp(k * 8, 1, 8)]", "I@[ramp(k * 8, 1, 8)]"),
    "narrow": ("i32x8(I@[ramp(k * 8, 1, 8)])", "ramp(i32(k) * 8i32, 1i32, 8)"),
    "many": ("ramp(k, 1, {many})", "ramp(k, 2, {many})"),
    "two": ("ramp(k, 3, 2)", "ramp(k * 2, 1, 2)"),
}


def accesses(dtype: DType, many: int) -> Iterator[tuple[str, str, str, str]]:
    """Name, index read, index written and mask of each; the longest vectors have `many` lanes."""
    for name, (read, write) in _ACCESSES.items():
        read, write = read.replace("{many}", str(many)), write.replace("{many}", str(many))
        lanes = read.rpartition(", ")[2].strip("]) ") if "ramp" in read else "1"
        for masked in (False, True):
            mask = f" if M@[ramp(k, 1, {lanes})]" if lanes != "1" else " if M@[k]"
            yield f"{name}_{masked}_{dtype}", read, write, mask if masked else ""


def access_kernel(name: str, read: str, write: str, mask: str, dtype: DType) -> PrimFunc:
    """A kernel of four such accesses."""
    func = parse_func(f"""
    func {name}(A: {dtype}[{COUNT}], I: i64[{COUNT}], M: bool[{COUNT}], B: {dtype}[{COUNT}] out) {{
      for k in range(4) {{ B@[{write}] = A@[{read}{mask}]{mask} }}
    }}
    """)
    verify(func, "host")
    return func


def access_arguments(dtype: DType) -> list[Any]:
    """Arrays for the parameters of `access_kernel`."""
    rng = np.random.default_rng(5)
    kind = to_numpy(dtype)
    values = rng.integers(0, 2 if dtype.is_bool else 100, COUNT).astype(kind)
    indices = rng.integers(0, COUNT, COUNT)
    indices[40:] = [3, 0, 7, 1] * 6  # strides
    mask = rng.integers(0, 2, COUNT).astype(np.bool_)
    return [values, indices, mask, np.arange(COUNT).astype(kind)]

"""Kernels with atomic updates: each operator with each dtype that it has."""

from refcomp.ir.func import PrimFunc
from refcomp.ir.parser import parse_func
from refcomp.ir.verify import verify

ATOMIC_KINDS = [
    *((operator, dtype) for operator in ("add", "min", "max") for dtype in ("f16", "f32", "f64")),
    *(
        (operator, f"{sign}{bits}")
        for operator in ("add", "min", "max", "and", "or", "xor")
        for sign in "iu"
        for bits in (8, 16, 32, 64)
    ),
]


def atomic_kernel(operator: str, dtype: str) -> PrimFunc:
    """Return a kernel whose threads each update an element of global and one of shared memory."""
    kernel = parse_func(f"""
    func {operator}_{dtype}(A: {dtype}[8], G: {dtype}[3] out, R: {dtype}[2] out) {{
      for t in range(8) threadIdx.x {{
        alloc S: {dtype}[2] shared {{
          if (t < 2) {{ S@[t] = G@[2] }}
          barrier
          atomic {operator} G[t % 2] with A@[t]
          atomic {operator} S[t % 2] with A@[t]
          barrier
          if (t < 2) {{ R@[t] = S@[t] }}
        }}
      }}
    }}
    """)
    verify(kernel, "device")
    return kernel

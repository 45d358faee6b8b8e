"""Cuts vectors into pieces of 8, 4 or 2 lanes, for LLVM's NVPTX.

Before::

    func f(A: i64[n], B: i64[n] out) {
      B@[ramp(0, 1, 16)] = A@[ramp(8, 2, 16)]
    }

After::

    func f(A: i64[n], B: i64[n] out) {
      B@[ramp(0, 1, 8)] = A@[ramp(8, 2, 8)]
      B@[ramp(8, 1, 8)] = A@[ramp(24, 2, 8)]
    }

LLVM 19 makes a loop over bytes of a vector of 128 bytes or more that is loaded and only stored. The
loop stands where the store stood, and reads memory that may have changed since the load. So all
vectors of a function are cut if it stores such a vector. If it also calls instructions of NVIDIA on
vectors, whose lengths are fixed, it is left as it is.

Requires: as `fit_vector_lanes`. Ensures: no vector of 128 bytes is stored, but beside such calls.
Level: flat, host or device, kept. It refuses nothing.
"""

from __future__ import annotations

from refcomp.ir.expr import Expr, PureExtern
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import Store
from refcomp.passes.fit_vector_lanes import LANES, cut_vectors

_LENGTHS = tuple(length for length in LANES if length <= 8)
_MOVED_BITS = 8 * 128  # vectors of so many bits are moved


def limit_vector_lanes(func: PrimFunc) -> PrimFunc:
    """Return `func` with vectors of at most 8 lanes, if it stores one of 128 bytes."""
    nodes = list(walk(func.body))
    is_moved = any(
        isinstance(node, Store) and _bits(node.value) >= _MOVED_BITS for node in nodes
    )
    is_fixed = any(
        isinstance(node, PureExtern) and node.dtype.lanes > 1 for node in nodes
    )
    return cut_vectors(func, _LENGTHS) if is_moved and not is_fixed else func


def _bits(value: Expr) -> int:
    return value.dtype.bits * value.dtype.lanes

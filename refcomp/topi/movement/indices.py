"""Indices that are elements of tensors, and how each is brought into range.

An index of any integer dtype is clamped before it is converted, so that it does not wrap.
"""

from __future__ import annotations

from refcomp.ir.expr import Expr
from refcomp.te import maths
from refcomp.te.tensor import as_dim
from refcomp.topi.shapes import Extent


def clamp_count(count: Expr, greatest: Extent) -> Expr:
    """Return an integer of any dtype as an i64 between 0 and `greatest`, both included."""
    most = as_dim(greatest)
    if count.dtype.min_value == 0:
        # An i64 does not hold each u64; `most` is a u64, too.
        limited = maths.minimum(count.astype("uint64"), most.astype("uint64"))
        return limited.astype("int64")
    limited = maths.minimum(count.astype("int64"), most)
    return maths.maximum(limited, as_dim(0))

"""Multiply-adds that round twice, v_mad and v_mac of floats.

They flush denormals of operands and results.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.instructions.operation import Semantics, operation
from refcomp.emulator.machine.arrays import Array


def flushed(value: Array) -> Array:
    """Return the value with denormals made zeros of their sign."""
    value = np.asarray(value)
    is_denormal = np.abs(value) < np.finfo(value.dtype).tiny
    zero: Array = np.copysign(value.dtype.type(0), value)
    return np.where(is_denormal, zero, value)


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a * b, rounded, + c, rounded."""
    product = flushed(np.multiply(flushed(a), flushed(b)))
    return flushed(product + flushed(c))


def legacy_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a * b, rounded, + c, rounded, where 0 times anything is 0."""
    is_zero = (flushed(a) == 0) | (flushed(b) == 0)
    zero = np.asarray(a).dtype.type(0)
    return np.where(is_zero, flushed(zero + flushed(c)), multiply_add(a, b, c))


def _rows_of(kind: str) -> dict[str, Semantics]:
    three = f"{kind} = {kind} {kind} {kind}"
    keeps = {"keeps_high": kind == "f16"}
    return {
        f"v_mad_{kind}": operation(three, multiply_add, **keeps),
        f"v_mac_{kind}": operation(
            f"{kind} = {kind} {kind}; result", multiply_add, **keeps
        ),
        f"v_madmk_{kind}": operation(
            three, lambda a, k, b: multiply_add(a, k, b), **keeps
        ),
        f"v_madak_{kind}": operation(three, multiply_add, **keeps),
    }


UNFUSED_F16: dict[str, Semantics] = {
    **_rows_of("f16"),
    "v_mad_legacy_f16": operation("f16 = f16 f16 f16", multiply_add),
}
UNFUSED_F32: dict[str, Semantics] = {
    **_rows_of("f32"),
    "v_mad_legacy_f32": operation("f32 = f32 f32 f32", legacy_multiply_add),
}

"""Pow: floats and integers, with an exponent of another type.

The result has the type of the base. Integers wrap; a negative exponent gives the truncated
reciprocal, and that of 0 is 0.
"""

from __future__ import annotations

import numpy as np

from refcomp.foundation.dtype import F32, F64, DType
from refcomp.frontend.onnx.broadcasting import (
    legacy_operands,
    require_alignment,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converter
from refcomp.graph.graph import Array, Value

# A power of at least 64 of an even number is 0, as integers wrap.
_MAX_EXPONENT = 64


@converter("Pow")
def legacy_pow(node: OnnxNode) -> Value:
    """Convert Pow-1."""
    return _power(node, *legacy_operands(node))


@converter("Pow", since=7)
def pow(node: OnnxNode) -> Value:
    """Convert Pow, whose types may differ since version 12."""
    return _power(node, node.required(0), node.required(1))


def _power(node: OnnxNode, base: Value, exponent: Value) -> Value:
    require_alignment([base, exponent])
    stored = node.builder.elements(exponent)
    is_two = stored is not None and stored.size == 1 and stored.item() == 2
    if is_two and len(exponent.shape) <= len(base.shape):
        return node.make("square", [base])
    if base.dtype.is_int and exponent.dtype.is_int:
        return _integer_power(node, base, exponent, stored)
    kind = _float_for(base.dtype, exponent.dtype, stored)
    made = node.make("power", [node.cast(base, kind), node.cast(exponent, kind)])
    return node.cast(made, base.dtype)


def _float_for(base: DType, exponent: DType, stored: Array | None) -> DType:
    """Return a float dtype that holds both operands, as exactly as f64 can."""
    if base == exponent:
        return base
    if base.kind == "float" and stored is not None:
        with np.errstate(over="ignore"):
            rounded = stored.astype(np.float16).astype(np.float64)
        if np.array_equal(rounded, stored):
            return base
    kinds = (base, exponent)
    is_wide = any(one.bits > (32 if one.is_float else 16) for one in kinds)
    return F64 if is_wide else F32


def _integer_power(
    node: OnnxNode, base: Value, exponent: Value, stored: Array | None
) -> Value:
    """Return a power of integers by repeated squaring."""
    zero = node.constant(0, exponent.dtype.dtype)
    one = node.constant(1, exponent.dtype.dtype)
    is_signed = exponent.dtype.kind == "int"
    magnitude = node.make("abs", [exponent]) if is_signed else exponent
    # Of a great exponent, only the parity matters, for a base of 1, 0 or -1.
    limit = node.constant(_MAX_EXPONENT, exponent.dtype.dtype)
    parity = node.make("bitwise_and", [magnitude, one])
    great = node.make("bitwise_or", [parity, limit])
    is_small = node.make("less", [magnitude, limit])
    reduced = node.make("where", [is_small, magnitude, great])
    most = 2 * _MAX_EXPONENT - 1
    if stored is not None:
        most = min(most, int(np.abs(stored).max(initial=0)))
    unit = node.constant(1, base.dtype.dtype)
    result, power = unit, base
    for place in range(most.bit_length()):
        mask = node.constant(1 << place, exponent.dtype.dtype)
        bit = node.make("bitwise_and", [reduced, mask])
        is_set = node.make("not_equal", [bit, zero])
        product = node.make("multiply", [result, power])
        result = node.make("where", [is_set, product, result])
        power = node.make("multiply", [power, power])
    if not is_signed:
        return result
    is_negative = node.make("less", [exponent, zero])
    reciprocal = node.make("divide", [unit, result])
    return node.make("where", [is_negative, reciprocal, result])

"""Conversions between the element types of ONNX, as nodes of a graph."""

from __future__ import annotations

from refcomp.foundation.dtype import F32, F64, I32
from refcomp.frontend.onnx.element_types import (
    BOOLS,
    ELEMENT_TYPES,
    FLOAT4E2M1,
    FLOAT6E2M3,
    FLOAT6E3M2,
    FLOAT8E4M3FN,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    INT2,
    INT4,
    UINT2,
    UINT4,
)
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.graph.graph import Value

_FLOAT8 = {
    FLOAT8E4M3FN: "e4m3fn",
    FLOAT8E4M3FNUZ: "e4m3fnuz",
    FLOAT8E5M2: "e5m2",
    FLOAT8E5M2FNUZ: "e5m2fnuz",
}
_FLOAT6 = {FLOAT6E2M3: "e2m3fn", FLOAT6E3M2: "e3m2fn"}
_NARROW_FLOATS = {*_FLOAT8, *_FLOAT6, FLOAT4E2M1, FLOAT8E8M0}
# Integers of less than 8 bits -> their bits.
_NARROW_INTEGERS = {INT4: 4, UINT4: 4, INT2: 2, UINT2: 2}


def is_narrow_float(code: int) -> bool:
    """Return True for a float of at most 8 bits, which a graph holds as its bits."""
    return code in _NARROW_FLOATS


def width_of(code: int) -> int:
    """Return the number of bits of an element type other than strings."""
    if code in _FLOAT6:
        return 6
    if code == FLOAT4E2M1:
        return 4
    if code in _NARROW_INTEGERS:
        return _NARROW_INTEGERS[code]
    return ELEMENT_TYPES[code].storage.bits if code != BOOLS else 8


def is_narrow_integer(code: int) -> bool:
    """Return True for an integer of less than 8 bits, which a graph holds in a byte."""
    return code in _NARROW_INTEGERS


def plain_numbers(node: OnnxNode, value: Value) -> Value:
    """Return a value whose dtype says what its elements are: narrow floats become f32."""
    code = node.element_type(value)
    if code in _FLOAT8:
        return node.make("from_float8", [value], format=_FLOAT8[code])
    if code in _FLOAT6:
        return node.make("from_float6", [value], format=_FLOAT6[code])
    if code == FLOAT4E2M1:
        return node.make("from_float4", [value])
    if code == FLOAT8E8M0:
        return node.make("from_float8_e8m0", [value])
    return value


def converted(
    node: OnnxNode,
    value: Value,
    code: int,
    *,
    saturate: bool = True,
    round_mode: str = "up",
) -> Value:
    """Return a value whose elements are converted to an element type.

    Args:
        node: the node that is converted.
        value: a tensor of numbers or bool, of any element type.
        code: the number of the wanted element type.
        saturate: for floats of 8 bits, True if what is too large becomes the greatest value.
        round_mode: how powers of two (float8e8m0) are rounded: up, down, or nearest.
    """
    if node.element_type(value) == code:
        return value
    plain = plain_numbers(node, value)
    if code in _NARROW_FLOATS:
        exact = plain if plain.dtype.is_float else node.cast(plain, _float_for(plain))
        made = _narrowed(node, exact, code, saturate, round_mode)
    elif code in _NARROW_INTEGERS:
        made = wrapped(node, plain, code)
    else:
        made = node.cast(plain, ELEMENT_TYPES[code].storage)
    if made is value:  # the dtype is the same, but not the type that is meant
        made = node.make("identity", [value])
    return node.typed(made, code)


def _float_for(value: Value) -> str:
    """Return a float dtype that holds integers with enough digits to round them once."""
    return str(F32 if value.dtype.bits <= 16 else F64)


def _narrowed(
    node: OnnxNode, value: Value, code: int, saturate: bool, round_mode: str
) -> Value:
    """Return floats rounded to a narrow float, as bits."""
    if code in _FLOAT8:
        form = _FLOAT8[code]
        return node.make("to_float8", [value], format=form, saturate=saturate)
    if code in _FLOAT6:
        return node.make("to_float6", [value], format=_FLOAT6[code])
    if code == FLOAT4E2M1:
        return node.make("to_float4", [value])
    return node.make(
        "to_float8_e8m0", [value], saturate=saturate, round_mode=round_mode
    )


def wrapped(node: OnnxNode, value: Value, code: int) -> Value:
    """Return numbers as integers of less than 8 bits; higher bits are discarded.

    Floats are truncated to i32 first. `code` is the number of the integer type.
    """
    storage = ELEMENT_TYPES[code].storage
    whole = node.cast(value, I32) if value.dtype.is_float else value
    kept = node.cast(whole, storage)
    bits = _NARROW_INTEGERS[code]
    if storage.kind == "uint":
        mask = node.constant((1 << bits) - 1, "uint8")
        return node.make("bitwise_and", [kept, mask])
    unused = node.constant(8 - bits, "int8")
    shifted = node.make("left_shift", [kept, unused])
    return node.make("right_shift", [shifted, unused])

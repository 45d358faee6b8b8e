"""Results of all float types: NaN, and the modifiers `.sat`, `.relu` and `.satfinite`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.floats import saturated, with_plain_nan
from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.rounding import Rounded, narrowed
from refcomp.emulator.ptx.instructions.small_floats import bf16_of, f32_of_bf16
from refcomp.emulator.ptx.instructions.types import as_unsigned, dtype_of

_NAN_F16 = np.uint16(0x7FFF).view(np.float16)
# Type -> the bits of infinity.
_INFINITY = {
    "f16": 0x7C00,
    "bf16": 0x7F80,
    "f32": 0x7F800000,
}


def float_value(value: Array, kind: str) -> Array:
    """Return floats of f16, bf16, f32 or f64 as numpy's floats. bf16 becomes f32."""
    return f32_of_bf16(value) if kind == "bf16" else np.asarray(value)


def float_of(rounded: Rounded, kind: str, mode: str = "rn") -> Array:
    """Return numbers as floats of a type. NaN has the bits that GPUs return, except in f64."""
    if kind == "bf16":
        return bf16_of(rounded, mode)
    number = narrowed(rounded, dtype_of(kind), mode)
    result = with_plain_nan(number)
    if kind == "f16":
        return np.where(np.isnan(result), _NAN_F16, result)
    return result


def finish_of(form: Form, kind: str, may_end: str) -> Callable[[Array], Array]:
    """Return the function that applies the last modifiers of a form to the result.

    Args:
        form: it may have `.sat`, or `.relu` and `.satfinite`.
        kind: the type of the floats.
        may_end: the modifiers that are legal, such as "relu satfinite".
    """
    legal = may_end.split()
    saturates = "sat" in legal and form.has("sat")
    is_finite = "satfinite" in legal and form.has("satfinite")
    is_positive = "relu" in legal and not saturates and form.has("relu")

    def finish(value: Array) -> Array:
        if is_finite:
            value = made_finite(value, kind)
        if is_positive:
            value = not_negative(value, kind)
        if saturates:
            value = saturated(value)
        return value

    return finish


def made_finite(value: Array, kind: str) -> Array:
    """Replace infinities by the greatest number of the same sign, in f16, bf16 or f32."""
    bits = as_unsigned(value)
    number = bits.dtype.type
    magnitude = bits & _all_but_sign(bits)
    is_infinite = magnitude == number(_INFINITY[kind])
    # In the order of the bits, the greatest number comes just before infinity.
    finite = np.where(is_infinite, bits - number(1), bits)
    return finite.view(dtype_of(kind))


def not_negative(value: Array, kind: str) -> Array:
    """Replace negative numbers by 0, in f16, bf16 or f32. NaN has the bits that GPUs return."""
    bits = as_unsigned(value)
    zero = bits.dtype.type(0)
    plain_nan = _all_but_sign(bits)
    is_negative = bits > plain_nan
    is_nan = np.isnan(float_value(value, kind))
    positive = np.where(is_negative, zero, bits)
    result = np.where(is_nan, plain_nan, positive)
    return result.view(dtype_of(kind))


def _all_but_sign(bits: Array) -> Array:
    """Return a word of the same type, whose bits are all set except for the sign bit."""
    greatest = np.iinfo(bits.dtype).max
    return np.asarray(greatest >> 1, bits.dtype)

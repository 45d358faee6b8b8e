"""Conversions that make or take packed floats, and those to tf32.

    cvt.rn.f16x2.f32 d, a, b             a is the upper half, b the lower one
    cvt.rn.satfinite.e4m3x2.f32 d, a, b
    cvt.rn.f16x2.e4m3x2 d, a

Source: NVIDIA, "Parallel Thread Execution ISA", section "cvt".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Describe, Form
from refcomp.emulator.ptx.instructions.results import (
    finish_of,
    float_of,
    float_value,
    not_negative,
)
from refcomp.emulator.ptx.instructions.rounding import exactly
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.small_floats import (
    f32_of_small,
    power_of_two_of,
    small_of,
    tf32_of,
)
from refcomp.emulator.ptx.instructions.types import (
    as_unsigned,
    bits_of,
    dtype_of,
    unsigned_of,
)
from refcomp.emulator.ptx.instructions.undefined import all_bits

_GREATEST_TF32 = np.uint32(0x7F7FE000).view(np.float32)


def _both(kind: str, lower: Array, upper: Array) -> Array:
    """Return two parts as a packed value."""
    dtype = unsigned_of(kind)
    step = dtype.type(bits_of(kind) // 2)
    low, high = as_unsigned(lower), as_unsigned(upper)
    return np.asarray(low.astype(dtype) | high.astype(dtype) << step)


def _undefined_both(result: str) -> Callable[..., Array]:
    """Return the spread of undefined bits from two sources to the parts of a packed result."""
    part = f"b{bits_of(result) // 2}"

    def undefined(*both: Array) -> Array:
        upper, lower = (all_bits(part, shadow != 0) for shadow in both[2:])
        return _both(result, lower, upper)

    return undefined


def _undefined_parts(result: str, source: str) -> Callable[..., Array]:
    """Return the spread of undefined bits from the parts of a source to those of a result."""
    spread = _undefined_both(result)
    width = bits_of(source) // 2

    def undefined(_: Array, shadow: Array) -> Array:
        wide = np.asarray(shadow, np.uint32)
        lower = wide & np.uint32((1 << width) - 1)
        upper = wide >> np.uint32(width)
        return spread(upper, lower, upper, lower)

    return undefined


def _parts(kind: str, value: Array) -> tuple[Array, Array]:
    """Return the lower and the upper part of a packed value."""
    value = np.asarray(value)
    width = bits_of(kind) // 2
    part = np.dtype(f"u{width // 8}")
    shifted = value >> value.dtype.type(width)
    element = dtype_of(kind.removesuffix("x2"))
    return value.astype(part).view(element), shifted.astype(part).view(element)


def _pair_of_f32(form: Form) -> ValueRule:
    """Describe the conversion of two f32 to f16x2 or bf16x2."""
    result = form.types[0]
    kind = result.removesuffix("x2")
    mode = form.must_take("rn", "rz")
    finish = finish_of(form, kind, "relu satfinite")

    def compute(upper: Array, lower: Array) -> Array:
        parts = (finish(float_of(exactly(part), kind, mode)) for part in (lower, upper))
        return _both(result, *parts)

    return ValueRule(
        compute=compute,
        sources=("f32", "f32"),
        results=(result,),
        undefined=_undefined_both(result),
    )


def _small_pair(form: Form) -> ValueRule:
    """Describe conversions to e4m3x2 and e5m2x2, which are clamped to finite numbers."""
    result, source = form.types
    kind = result.removesuffix("x2")
    form.must_take("rn")
    form.must_take("satfinite")
    is_positive = form.has("relu")

    def convert(part: Array) -> Array:
        number = float_value(part, source.removesuffix("x2")).astype(np.float32)
        return small_of(not_negative(number, "f32") if is_positive else number, kind)

    if source == "f32":

        def of_two(upper: Array, lower: Array) -> Array:
            return _both(result, convert(lower), convert(upper))

        return ValueRule(
            compute=of_two,
            sources=("f32", "f32"),
            results=(result,),
            undefined=_undefined_both(result),
        )

    def of_packed(value: Array) -> Array:
        lower, upper = _parts(source, value)
        return _both(result, convert(lower), convert(upper))

    return ValueRule(
        compute=of_packed,
        sources=(source,),
        results=(result,),
        undefined=_undefined_parts(result, source),
    )


def _halves_of_small(form: Form) -> ValueRule:
    """Describe conversions of e4m3x2 and e5m2x2 to f16x2, and of ue8m0x2 to bf16x2."""
    result, source = form.types
    form.must_take("rn")
    kind = result.removesuffix("x2")
    finish = finish_of(form, kind, "relu" if kind == "f16" else "")

    def compute(value: Array) -> Array:
        parts = _parts(source, value)
        numbers = (f32_of_small(part, source.removesuffix("x2")) for part in parts)
        halves = (finish(float_of(exactly(number), kind)) for number in numbers)
        return _both(result, *halves)

    return ValueRule(
        compute=compute,
        sources=(source,),
        results=(result,),
        undefined=_undefined_parts(result, source),
    )


def _powers_of_two(form: Form) -> ValueRule:
    """Describe conversions to ue8m0x2."""
    source = form.type
    mode = form.must_take("rz", "rp")
    is_finite = form.has("satfinite")

    def convert(part: Array) -> Array:
        number = float_value(part, source.removesuffix("x2"))
        return power_of_two_of(number, mode, is_finite=is_finite)

    if source == "f32":

        def of_two(upper: Array, lower: Array) -> Array:
            return _both("ue8m0x2", convert(lower), convert(upper))

        return ValueRule(
            compute=of_two,
            sources=("f32", "f32"),
            results=("ue8m0x2",),
            undefined=_undefined_both("ue8m0x2"),
        )

    def of_packed(value: Array) -> Array:
        lower, upper = _parts(source, value)
        return _both("ue8m0x2", convert(lower), convert(upper))

    return ValueRule(
        compute=of_packed,
        sources=(source,),
        results=("ue8m0x2",),
        undefined=_undefined_parts("ue8m0x2", source),
    )


def _to_tf32(form: Form) -> ValueRule:
    mode = form.must_take("rna", "rn", "rz")
    is_finite = form.has("satfinite")
    is_positive = form.has("relu")

    def compute(value: Array) -> Array:
        number = tf32_of(value, mode).view(np.float32)
        if is_finite:
            number = np.clip(number, -_GREATEST_TF32, _GREATEST_TF32)
        if is_positive:
            number = not_negative(number, "f32")
        return number.view(np.uint32)

    return ValueRule(
        compute=compute,
        sources=("f32",),
        results=("tf32",),
    )


# (type of the result, type of the source) -> what describes the conversion.
PACKED_CONVERSIONS: dict[tuple[str, str], Describe] = {
    ("f16x2", "f32"): _pair_of_f32,
    ("bf16x2", "f32"): _pair_of_f32,
    ("e4m3x2", "f32"): _small_pair,
    ("e5m2x2", "f32"): _small_pair,
    ("e4m3x2", "f16x2"): _small_pair,
    ("e5m2x2", "f16x2"): _small_pair,
    ("f16x2", "e4m3x2"): _halves_of_small,
    ("f16x2", "e5m2x2"): _halves_of_small,
    ("bf16x2", "ue8m0x2"): _halves_of_small,
    ("ue8m0x2", "f32"): _powers_of_two,
    ("ue8m0x2", "bf16x2"): _powers_of_two,
    ("tf32", "f32"): _to_tf32,
}

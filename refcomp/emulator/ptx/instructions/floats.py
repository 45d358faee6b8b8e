"""Arithmetic of f32 and f64 that is rounded once.

Source: NVIDIA, "Parallel Thread Execution ISA", section "Floating Point Instructions". An f32 NaN
is 0x7fffffff. `.ftz` flushes denormals of operands, and those of results after rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions import rounding
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import as_unsigned, dtype_of
from refcomp.emulator.ptx.instructions.undefined import shadows_first

MODES = ("rn", "rz", "rm", "rp")
_NAN_F32 = np.uint32(0x7FFFFFFF).view(np.float32)
_SIGNS: dict[str, Array] = {
    "f32": np.array(1 << 31, np.uint32),
    "f64": np.array(1 << 63, np.uint64),
}
# Opcodes that may have `.sat`.
_SATURATED = ("add", "sub", "mul", "fma", "mad")


def with_plain_nan(value: Array) -> Array:
    """Return a float. Each NaN of an f32 becomes the NaN that GPUs return."""
    value = np.asarray(value)
    if value.dtype != np.float32:
        return value
    return np.where(np.isnan(value), _NAN_F32, value)


def saturated(value: Array) -> Array:
    """Return a float clamped to [0, 1]. A NaN is 0."""
    value = np.asarray(value)
    number = value.dtype.type
    # Comparisons with NaN are false, and so is -0 > 0.
    is_positive = value > 0
    at_most_1: Array = np.minimum(value, number(1))
    return np.where(is_positive, at_most_1, number(0))


def arithmetic(form: Form, count: int, function: Callable[..., Array]) -> ValueRule:
    """Return the rule of a function of `count` floats, after reading `.ftz` and `.sat`."""
    kind = form.type
    may_flush = kind == "f32" and form.opcode != "tanh"
    flushes = may_flush and form.has("ftz")
    may_saturate = kind == "f32" and form.opcode in _SATURATED
    saturates = may_saturate and form.has("sat")

    def compute(*operands: Array) -> Array:
        if flushes:
            operands = tuple(flushed(operand) for operand in operands)
        result = with_plain_nan(function(*operands))
        if flushes:
            result = flushed(result)
        if saturates:
            result = saturated(result)
        return result

    return ValueRule(
        compute=compute,
        sources=(kind,) * count,
        results=(kind,),
    )


def reciprocal(value: Array, mode: str) -> Array:
    """Return 1 / value, rounded once."""
    value = np.asarray(value)
    one = np.ones_like(value)
    return rounding.divide(one, value, mode)


def _subtract(a: Array, b: Array, mode: str) -> Array:
    if mode == "rn":  # numpy keeps the sign of a NaN
        return np.subtract(a, b)
    return rounding.add(a, np.negative(b), mode)


_ROUNDED: dict[str, tuple[int, Callable[..., Array]]] = {
    "add": (2, rounding.add),
    "sub": (2, _subtract),
    "mul": (2, rounding.multiply),
    "fma": (3, rounding.fused),
    "mad": (3, rounding.fused),
    "div": (2, rounding.divide),
    "rcp": (1, reciprocal),
    "sqrt": (1, rounding.square_root),
}
# Opcodes that round to nearest if the text does not say how.
_HAVE_DEFAULT = ("add", "sub", "mul")


def _rounded(form: Form) -> ValueRule:
    default = "rn" if form.opcode in _HAVE_DEFAULT else ""
    mode = form.take(*MODES, default=default)
    if not mode:
        raise form.damaged(f"{form.opcode}.{form.type} needs a rounding, such as .rn")
    return rounded_rule(form, mode)


def rounded_rule(form: Form, mode: str) -> ValueRule:
    """Return the rule of an instruction that is rounded once, in the direction `mode`."""
    count, function = _ROUNDED[form.opcode]

    def in_mode(*values: Array) -> Array:
        return function(*values, mode)

    return arithmetic(form, count, in_mode)


# Signs.


def _absolute(form: Form) -> ValueRule:
    return _of_sign(form, lambda bits, sign: bits & ~sign)


def _negated(form: Form) -> ValueRule:
    return _of_sign(form, lambda bits, sign: bits ^ sign)


def _of_sign(form: Form, change: Callable[[Array, Array], Array]) -> ValueRule:
    """Return the rule of an instruction that changes the sign bit only.

    Args:
        change: the function of the bits and of a word in which only the sign bit is set.
    """
    kind = form.type
    sign = _SIGNS[kind]
    flushes = kind == "f32" and form.has("ftz")

    def compute(value: Array) -> Array:
        operand = flushed(value) if flushes else np.asarray(value)
        changed = change(as_unsigned(operand), sign)
        return np.asarray(changed).view(dtype_of(kind))

    rule = ValueRule(
        compute=compute,
        sources=(kind,),
        results=(kind,),
    )
    if flushes:
        return rule
    # A bit of the result depends on the bit of the source at the same place only.
    return replace(rule, undefined=shadows_first(lambda shadow, value: shadow))


def _copied_sign(form: Form) -> ValueRule:
    """Describe copysign: the sign of a with the magnitude of b."""
    kind = form.type
    sign = _SIGNS[kind]

    def combine(a: Array, b: Array) -> Array:
        sign_of_a = a & sign
        magnitude_of_b = b & ~sign
        return np.asarray(sign_of_a | magnitude_of_b)

    def compute(a: Array, b: Array) -> Array:
        bits = combine(as_unsigned(a), as_unsigned(b))
        return bits.view(dtype_of(kind))

    return ValueRule(
        compute=compute,
        sources=(kind, kind),
        results=(kind,),
        undefined=shadows_first(lambda s, t, a, b: combine(s, t)),
    )


# Minima and maxima.


def extreme(a: Array, b: Array, *, is_min: bool, keeps_nan: bool) -> Array:
    """Return the lesser or the greater of two floats. -0 is less than 0.

    If one of the two is NaN, the result is the other one, or with `keeps_nan` NaN.
    """
    a, b = np.broadcast_arrays(a, b)
    # Equal numbers may be 0 and -0.
    if is_min:
        comes_first = np.signbit(a)
        takes_first = (a < b) | ((a == b) & comes_first)
    else:
        comes_first = ~np.signbit(a)
        takes_first = (a > b) | ((a == b) & comes_first)
    result = np.where(takes_first | np.isnan(b), a, b)
    if not keeps_nan:
        return result
    result = np.where(np.isnan(b), b, result)
    return np.where(np.isnan(a), a, result)


def extreme_of_magnitudes(
    a: Array, b: Array, *, is_min: bool, keeps_nan: bool
) -> Array:
    """Return the extreme of the two magnitudes. Its sign is the product of the two signs."""
    magnitude = extreme(np.abs(a), np.abs(b), is_min=is_min, keeps_nan=keeps_nan)
    is_negative = np.signbit(a) ^ np.signbit(b)
    return np.where(is_negative, -magnitude, magnitude)


def extreme_of(form: Form) -> Callable[..., Array]:
    """Return the function of `min` or `max`, after reading `.NaN` and `.xorsign.abs`."""
    is_min = form.opcode == "min"
    keeps_nan = form.has("NaN")
    function = extreme
    if form.has("xorsign"):
        form.must_take("abs")
        function = extreme_of_magnitudes

    def of_two_or_more(first: Array, *more: Array) -> Array:
        result = first
        for value in more:
            result = function(result, value, is_min=is_min, keeps_nan=keeps_nan)
        return np.asarray(result)

    return of_two_or_more


def _extreme(form: Form) -> ValueRule:
    if form.type == "f64":
        is_min = form.opcode == "min"
        function = partial(extreme, is_min=is_min, keeps_nan=False)
        return arithmetic(form, 2, function)
    # f32 has a form of two sources, and a form of three.
    has_three = len(form.instruction.operands) > 3
    return arithmetic(form, 3 if has_three else 2, extreme_of(form))


# Classes.


def _is_denormal(value: Array) -> Array:
    value = np.asarray(value)
    least_normal = np.finfo(value.dtype).tiny
    is_small = np.abs(value) < least_normal
    return np.asarray(is_small & (value != 0))


_CLASSES: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda value: ~np.isnan(value),
    "notanumber": np.isnan,
    # Zeros count as normal numbers.
    "normal": lambda value: np.isfinite(value) & ~_is_denormal(value),
    "subnormal": _is_denormal,
}


def _tested(form: Form) -> ValueRule:
    """Describe testp, a predicate that holds for one class of floats."""
    name = form.must_take(*_CLASSES)
    return ValueRule(
        compute=_CLASSES[name],
        sources=(form.type,),
        results=("pred",),
    )


_BOTH = "f32 f64"
FLOATS: Table = joined(
    [
        rows("add sub mul fma mad", _BOTH, _rounded),
        rows("abs", _BOTH, _absolute),
        rows("neg", _BOTH, _negated),
        rows("copysign", _BOTH, _copied_sign),
        rows("min max", _BOTH, _extreme),
        rows("testp", _BOTH, _tested),
    ]
)

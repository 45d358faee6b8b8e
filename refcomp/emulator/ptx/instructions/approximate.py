"""Quotients, roots and functions, most of which GPUs approximate.

An approximation is computed in f64 here, and rounded once to its type. So its error is at most half
a unit in the last place (ulp). A GPU's error may be larger. The ISA bounds it for f32:
    rcp 1 ulp, div 2 ulp, sqrt 2**-23 (relative), rsqrt 2**-22.9 (relative),
    sin and cos 2**-20.5 in [-2 pi, 2 pi] (absolute), lg2 2**-22 (absolute near 1, else relative),
    ex2 2 ulp + 2**-22.5 (relative), tanh 2**-11 (relative)
With .rn, .rz, .rm or .rp the results are exact instead.
Source: NVIDIA, "Parallel Thread Execution ISA", section "Floating Point Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.floats import (
    MODES,
    arithmetic,
    rounded_rule,
)
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule

_UPPER_WORD = np.uint64(0xFFFFFFFF00000000)
_FAR = np.float32(2.0**126)

Function = Callable[[Array], Array]


def _inverse(value: Array) -> Array:
    return np.asarray(1.0 / value)


def _inverse_root(value: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(value))


FUNCTIONS: dict[str, Function] = {
    "rcp": _inverse,
    "rsqrt": _inverse_root,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def _in_f32(function: Function) -> Function:
    """Return a function of f64 as a function of f32."""
    return lambda value: function(np.asarray(value, np.float64)).astype(np.float32)


def _approximate(form: Form) -> ValueRule:
    if form.opcode in ("rcp", "sqrt"):
        mode = form.take(*MODES)
        if mode:
            return rounded_rule(form, mode)
    form.must_take("approx")
    if form.type == "f64":
        is_whole = form.opcode == "rsqrt" and "ftz" not in form.instruction.modifiers
        if not is_whole:
            return _of_upper_words(form)
        return arithmetic(form, 1, FUNCTIONS["rsqrt"])
    return arithmetic(form, 1, _in_f32(FUNCTIONS[form.opcode]))


def _of_upper_words(form: Form) -> ValueRule:
    """Describe rcp and rsqrt of f64, which use only the upper 32 bits of the source."""
    form.must_take("ftz")
    function = FUNCTIONS[form.opcode]

    def upper(value: Array) -> Array:
        bits = np.asarray(value).view(np.uint64) & _UPPER_WORD
        return flushed(bits.view(np.float64))

    def compute(value: Array) -> Array:
        result = function(upper(value))
        plain = np.uint64(0x7FFFFFFF00000000).view(np.float64)
        return np.where(np.isnan(value) | np.isnan(result), plain, upper(result))

    return ValueRule(
        compute=compute,
        sources=("f64",),
        results=("f64",),
    )


def _divide(form: Form) -> ValueRule:
    mode = form.take(*MODES)
    if mode:
        return rounded_rule(form, mode)
    if form.type != "f32":
        raise form.damaged("div.f64 needs a rounding, such as .rn")
    if form.must_take("approx", "full") == "full":
        return arithmetic(form, 2, np.divide)
    return arithmetic(form, 2, _quotient)


def _quotient(a: Array, b: Array) -> Array:
    """Return a / b as div.approx does: a finite divisor beyond 2**126 counts as infinite."""
    is_far = (np.abs(b) > _FAR) & np.isfinite(b)
    far = np.where(np.isinf(a), np.float32(np.nan), np.float32(0) * a * np.sign(b))
    return np.where(is_far, far, np.divide(a, b))


APPROXIMATE: Table = joined(
    [
        rows("div", "f32 f64", _divide),
        rows("rcp rsqrt", "f32 f64", _approximate),
        rows("sqrt", "f32", _approximate),
        rows("sqrt", "f64", lambda form: rounded_rule(form, form.must_take(*MODES))),
        rows("sin cos lg2 ex2 tanh", "f32", _approximate),
    ]
)

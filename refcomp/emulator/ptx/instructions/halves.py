"""Arithmetic of f16 and bf16, single or packed in pairs.

Arithmetic is done in f64, and rounded once. A NaN is 0x7fff. `.ftz` exists for f16 only; bf16
keeps denormals.
Source: NVIDIA, "Parallel Thread Execution ISA", section "Half Precision Floating Point
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.approximate import FUNCTIONS
from refcomp.emulator.ptx.instructions.floats import extreme_of
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.integers import rule_of_one_type
from refcomp.emulator.ptx.instructions.results import finish_of, float_of, float_value
from refcomp.emulator.ptx.instructions.rounding import Rounded, exact_sum, exactly
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import as_unsigned, dtype_of
from refcomp.emulator.ptx.instructions.undefined import shadows_first

_KINDS = "f16 bf16 f16x2 bf16x2"
_SIGN = np.uint16(0x8000)  # of f16 and of bf16

_ROUNDED: dict[str, tuple[int, Callable[..., Rounded]]] = {
    "add": (2, exact_sum),
    "sub": (2, lambda a, b: exact_sum(a, -b)),
    "mul": (2, lambda a, b: exactly(a * b)),
    "fma": (3, lambda a, b, c: exact_sum(a * b, c)),
}


def _on_f64(
    form: Form, function: Callable[..., Rounded], *, flushes: bool, may_end: str = ""
) -> Callable[..., Array]:
    """Return a function of f64 as a function of halves.

    Args:
        flushes: whether denormals are flushed.
        may_end: the modifiers that the form may have at its end, such as "sat relu". They change
            the result.
    """
    kind = form.type.removesuffix("x2")
    finish = finish_of(form, kind, may_end)
    # bf16 is flushed only before approximations, whose results are near enough.
    flushes_result = flushes and kind == "f16"

    def of_half(*values: Array) -> Array:
        numbers = _numbers(values, kind, flushes=flushes)
        wide = [number.astype(np.float64) for number in numbers]
        result = float_of(function(*wide), kind)
        if flushes_result:
            result = flushed(result)
        return finish(result)

    return of_half


def _numbers(halves: Iterable[Array], kind: str, *, flushes: bool) -> list[Array]:
    """Return halves as floats of numpy: f16 as such, bf16 as f32."""
    numbers = [float_value(half, kind) for half in halves]
    if not flushes:
        return numbers
    return [flushed(number) for number in numbers]


def _rounded(form: Form) -> ValueRule:
    is_fused = form.opcode == "fma"
    if not form.has("rn") and is_fused:
        raise form.damaged(f"fma.{form.type} needs the rounding .rn")
    endings = []
    if _is_f16(form):
        endings.append("sat")
    if is_fused:
        endings.append("relu")
    flushes = _takes_ftz(form)
    count, function = _ROUNDED[form.opcode]
    of_half = _on_f64(form, function, flushes=flushes, may_end=" ".join(endings))
    return rule_of_one_type(form.type, count, of_half)


def _is_f16(form: Form) -> bool:
    return form.type in ("f16", "f16x2")


def _takes_ftz(form: Form) -> bool:
    """Take `.ftz` of f16. Return False if it is missing, and for bf16."""
    return _is_f16(form) and form.has("ftz")


def _extreme(form: Form) -> ValueRule:
    kind = form.type.removesuffix("x2")
    function = extreme_of(form)
    flushes = _takes_ftz(form)

    def of_half(*values: Array) -> Array:
        numbers = _numbers(values, kind, flushes=flushes)
        chosen = function(*numbers)
        return float_of(exactly(chosen), kind)

    return rule_of_one_type(form.type, 2, of_half)


def _signs_changed(form: Form) -> ValueRule:
    """Describe abs and neg."""
    kind = form.type.removesuffix("x2")
    is_abs = form.opcode == "abs"
    flushes = _takes_ftz(form)

    def of_half(value: Array) -> Array:
        number = flushed(value) if flushes else value
        bits = as_unsigned(number)
        changed = bits & ~_SIGN if is_abs else bits ^ _SIGN
        return np.asarray(changed).view(dtype_of(kind))

    rule = rule_of_one_type(form.type, 1, of_half)
    if flushes:
        return rule
    # A bit of the result depends on the bit of the source at the same place only.
    return replace(rule, undefined=shadows_first(lambda shadow, value: shadow))


def _approximate(form: Form) -> ValueRule:
    form.must_take("approx")
    approximate = FUNCTIONS[form.opcode]
    flushes = form.opcode == "ex2" and not _is_f16(form)
    if flushes:
        form.must_take("ftz")

    def function(value: Array) -> Rounded:
        return exactly(approximate(value))

    of_half = _on_f64(form, function, flushes=flushes)
    return rule_of_one_type(form.type, 1, of_half)


HALVES: Table = joined(
    [
        rows("add sub mul fma", _KINDS, _rounded),
        rows("min max", _KINDS, _extreme),
        rows("abs neg", _KINDS, _signs_changed),
        rows("ex2 tanh", _KINDS, _approximate),
    ]
)

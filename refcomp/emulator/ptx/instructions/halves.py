"""Arithmetic of f16 and bf16, single or packed in pairs.

Arithmetic is done in f64, and rounded once. A NaN is 0x7fff. f16 has `.ftz`; bf16 keeps denormals.
Source: NVIDIA, "Parallel Thread Execution ISA", section "Half Precision Floating Point
Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.approximate import FUNCTIONS
from refcomp.emulator.ptx.instructions.floats import extreme_of
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.integers import packed
from refcomp.emulator.ptx.instructions.results import finish_of, float_of, float_value
from refcomp.emulator.ptx.instructions.rounding import Rounded, exact_sum, exactly
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import as_unsigned, dtype_of
from refcomp.emulator.ptx.instructions.undefined import shadows_first

_KINDS = "f16 bf16 f16x2 bf16x2"
# f16 and bf16 have the same sign bit, packed types have two.
_SIGN = np.uint16(0x8000)

_ROUNDED: dict[str, tuple[int, Callable[..., Rounded]]] = {
    "add": (2, exact_sum),
    "sub": (2, lambda a, b: exact_sum(a, -b)),
    "mul": (2, lambda a, b: exactly(a * b)),
    "fma": (3, lambda a, b, c: exact_sum(a * b, c)),
}


def _rule(form: Form, count: int, of_half: Callable[..., Array]) -> ValueRule:
    """Return the rule of a function of halves, for a packed type as well."""
    kind = form.type
    function = packed(kind, of_half) if kind.endswith("x2") else of_half
    return ValueRule(function, (kind,) * count, (kind,))


def _on_f64(
    form: Form, function: Callable[..., Rounded], *, flushes: bool, may_end: str = ""
) -> Callable[..., Array]:
    """Return a function of f64 as one of halves.

    Args:
        flushes: whether denormals are flushed.
        may_end: the modifiers that the form may have at its end, such as "sat relu". They change
            the result.
    """
    kind = form.type.removesuffix("x2")
    finish = finish_of(form, kind, may_end)

    def of_half(*values: Array) -> Array:
        operands = (float_value(value, kind) for value in values)
        numbers = [flushed(x) if flushes else x for x in operands]
        wide = [number.astype(np.float64) for number in numbers]
        result = float_of(function(*wide), kind)
        # bf16 is flushed only before approximations, whose results are near enough.
        return finish(flushed(result) if flushes and kind == "f16" else result)

    return of_half


def _rounded(form: Form) -> ValueRule:
    is_fused = form.opcode == "fma"
    if not form.has("rn") and is_fused:
        raise form.damaged(f"fma.{form.type} needs the rounding .rn")
    is_f16 = _is_f16(form)
    flushes = is_f16 and form.has("ftz")
    endings = ("sat " if is_f16 else "") + ("relu" if is_fused else "")
    count, function = _ROUNDED[form.opcode]
    of_half = _on_f64(form, function, flushes=flushes, may_end=endings)
    return _rule(form, count, of_half)


def _is_f16(form: Form) -> bool:
    return form.type in ("f16", "f16x2")


def _extreme(form: Form) -> ValueRule:
    kind = form.type.removesuffix("x2")
    function = extreme_of(form)
    flushes = _is_f16(form) and form.has("ftz")

    def of_half(a: Array, b: Array) -> Array:
        operands = (float_value(value, kind) for value in (a, b))
        numbers = [flushed(x) if flushes else x for x in operands]
        return float_of(exactly(function(*numbers)), kind)

    return _rule(form, 2, of_half)


def _signs_changed(form: Form) -> ValueRule:
    """Describe abs and neg."""
    kind = form.type.removesuffix("x2")
    is_abs = form.opcode == "abs"
    flushes = _is_f16(form) and form.has("ftz")

    def of_half(value: Array) -> Array:
        number = flushed(value) if flushes else value
        bits = as_unsigned(number)
        changed = bits & ~_SIGN if is_abs else bits ^ _SIGN
        return np.asarray(changed).view(dtype_of(kind))

    rule = _rule(form, 1, of_half)
    if flushes:
        return rule
    spread = shadows_first(lambda shadow, value: shadow)
    return ValueRule(rule.compute, rule.sources, rule.results, spread)


def _approximate(form: Form) -> ValueRule:
    form.must_take("approx")
    function = FUNCTIONS[form.opcode]
    flushes = form.opcode == "ex2" and not _is_f16(form)
    if flushes:
        form.must_take("ftz")
    of_half = _on_f64(form, lambda value: exactly(function(value)), flushes=flushes)
    return _rule(form, 1, of_half)


HALVES: Table = joined(
    [
        rows("add sub mul fma", _KINDS, _rounded),
        rows("min max", _KINDS, _extreme),
        rows("abs neg", _KINDS, _signs_changed),
        rows("ex2 tanh", _KINDS, _approximate),
    ]
)

"""Rounding, denormals and NaNs other than IEEE's, as the MODE register asks for them.

MODE has four fields of two bits. Two are the rounding of f32, and of f64 and f16: 0 to nearest
even, 1 up, 2 down, 3 towards zero. Two are the denormals that are kept of f32, and of f64 and f16:
1 of operands, 2 of results. Instructions are bound for the mode that they run in, so that
IEEE's costs nothing. Other rounding of f32 and f16 computes in f64, rounded to odd, and rounds that
as the mode says; f64 is computed by fractions.
Refuses, by Unsupported, other rounding of instructions for which it is not implemented.
Manuals: the CDNA3 and RDNA3 ISA manuals, sections on the MODE register.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, IEEE_NANS, Instruction
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.exact import add_to_odd
from refcomp.emulator.instructions.operation import Function, Semantics
from refcomp.emulator.instructions.signalling import keep_signalling
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import NUMPY, Array

_NEAREST, _UP, _DOWN, _TO_ZERO = range(4)
_FLOATS = ("f16", "f32", "f64")
_PART = re.compile(r"v_(?:pk_)?(\w+?)(?:_legacy)?_(?:f16|f32|f64)$")


def rounding_of(mode: int, kind: str) -> int:
    """Return how results of a type are rounded: 0 to 3, as MODE has it."""
    return mode & 3 if kind == "f32" else mode >> 2 & 3


def keeps_denormals(mode: int, kind: str, *, of_results: bool) -> bool:
    """Return whether denormals of a type are kept, of operands or of results."""
    kept = mode >> 4 & 3 if kind == "f32" else mode >> 6 & 3
    return bool(kept & (2 if of_results else 1))


def in_mode(instruction: Instruction, row: Semantics) -> Semantics:
    """Return the row as it computes in the instruction's mode."""
    mode = instruction.mode
    result = row.results[0]
    implicit = (result if name == "result" else name for name in row.implicit)
    kinds = [*row.sources, *implicit]
    if mode == IEEE_MODE or {result, *kinds}.isdisjoint(_FLOATS):
        return row
    if "class" in row_name(instruction):  # it must see denormals and signalling NaNs
        return row
    rounded = _rounded(instruction, row)
    if not mode & IEEE_NANS:
        rounded = keep_signalling(row_name(instruction), row, rounded)
    flushes = [_is_flushed(mode, kind, of_results=False) for kind in kinds]
    flushes_result = _is_flushed(mode, result, of_results=True)

    def compute(*values: Array) -> Array | tuple[Array, ...]:
        pairs = zip(values, flushes, strict=True)
        operands = [
            flushed(value) if is_flushed else value for value, is_flushed in pairs
        ]
        found: Array | tuple[Array, ...] = rounded(*operands)
        if not flushes_result:
            return found
        if isinstance(found, tuple):
            return (flushed(found[0]), *found[1:])
        return flushed(found)

    return replace(row, function=compute)


def row_name(instruction: Instruction) -> str:
    """Return the mnemonic, of a packed instruction that of its halves."""
    return instruction.mnemonic.replace("v_pk_", "v_")


def _is_flushed(mode: int, kind: str, *, of_results: bool) -> bool:
    return kind in _FLOATS and not keeps_denormals(mode, kind, of_results=of_results)


# Rounding.

# Instructions that are always exact, or always approximate.
_NEVER = re.compile(
    r"v_(min|max|min3|max3|med3|floor|ceil|trunc|rndne|fract|frexp_mant|div_scale|div_fixup"
    r"|rcp|rsq|sqrt|rcp_iflag|exp|log|sin|cos|trig_preop)(_legacy)?_f(16|32|64)$"
)
_CONVERSION = re.compile(r"v_cvt_f(16|32)_(f32|f64|[iu](16|32))$")
_FRACTIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "subrev": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "fmac": lambda a, b, c: a * b + c,
    "fmaak": lambda a, b, c: a * b + c,
    "fmamk": lambda a, k, b: a * k + b,
    # Beyond 5000 all results are infinite or 0, and the fractions would grow.
    "ldexp": lambda a, n: a * Fraction(2) ** max(-5000, min(n, 5000)),
    "div_fmas": lambda a, b, c, is_scaled: (
        (a * b + c) * Fraction(2) ** (is_scaled and (128 if abs(c) >= 2 else -128))
    ),
}


def _wide(value: Array) -> Array:
    return np.asarray(value, np.float64)


def _product_and(a: Array, b: Array, c: Array) -> Array:
    return add_to_odd(_wide(a) * _wide(b), _wide(c))


def _scaled_back(a: Array, b: Array, c: Array, is_scaled: Array) -> Array:
    factor = np.where(np.abs(c) >= 2, 2.0**64, 2.0**-64)
    return _product_and(a, b, c) * np.where(is_scaled, factor, 1.0)


# The operations on f32 and f16 in f64, rounded to odd.
_TO_ODD: dict[str, Function] = {
    "add": lambda a, b: add_to_odd(_wide(a), _wide(b)),
    "sub": lambda a, b: add_to_odd(_wide(a), -_wide(b)),
    "subrev": lambda a, b: add_to_odd(_wide(b), -_wide(a)),
    "mul": lambda a, b: _wide(a) * _wide(b),
    "fma": _product_and,
    "fmac": _product_and,
    "fmaak": _product_and,
    "fmamk": _product_and,
    "ldexp": lambda a, n: np.ldexp(_wide(a), np.clip(n, -600, 600).astype(np.int32)),
    "fma_mix": _product_and,
    "div_fmas": _scaled_back,
    "cvt": lambda a: np.asarray(a).astype(np.float64),
}
_SUMS = {"add", "sub", "subrev", "fma", "fmac", "fmaak", "fmamk", "fma_mix"}


def _rounded(instruction: Instruction, row: Semantics) -> Function:
    """Return the row's function with the rounding of the instruction's mode."""
    kind = row.results[0]
    name = row_name(instruction)
    rounding = rounding_of(instruction.mode, kind)
    if rounding == _NEAREST or kind not in _FLOATS or _NEVER.match(name):
        return row.function
    if _CONVERSION.match(name):
        part = "cvt"
    elif name.startswith("v_cvt_"):
        return row.function
    else:
        match = _PART.match(name)
        part = match[1] if match else ""
    if part not in _TO_ODD:
        what = f"{instruction.mnemonic} that does not round to nearest"
        raise not_emulated(what, instruction)
    nearest = row.function
    if part in _SUMS and rounding == _DOWN:
        nearest = _with_negative_zeros(nearest)
    if kind == "f64":
        return _by_fractions(nearest, _FRACTIONS[part], rounding)
    odd = _TO_ODD[part]
    return lambda *values: towards(
        odd(*values), np.asarray(nearest(*values)), kind, rounding
    )


def _with_negative_zeros(usual: Function) -> Function:
    """Return the sum as it is when rounding down.

    A sum that is 0 is then -0, unless all its terms are +0. That is the negation of the usual sum
    of the negated terms.
    """

    def compute(first: Array, *middle: Array) -> Array:
        near = np.asarray(usual(first, *middle))
        last = np.negative(middle[-1])
        mirrored = np.negative(usual(np.negative(first), *middle[:-1], last))
        return np.where(near == 0, mirrored, near)

    return compute


def towards(exact: Array, near: Array, kind: str, rounding: int) -> Array:
    """Return `exact`, an f64, rounded to type `kind`.

    `near` is `exact` rounded to nearest. Where it lies on the wrong side, its neighbour on the
    other side is the result.
    """
    dtype = NUMPY[kind]
    wide = near.astype(np.float64)
    if rounding == _UP:
        is_wrong = wide < exact
        goal = dtype(np.inf)
    elif rounding == _DOWN:
        is_wrong = wide > exact
        goal = dtype(-np.inf)
    else:
        is_wrong = np.abs(wide) > np.abs(exact)
        goal = dtype(0)
    neighbour: Array = np.nextafter(near, goal)
    return np.where(is_wrong & np.isfinite(exact), neighbour, near)


def _by_fractions(
    nearest: Function, exact: Callable[..., Fraction], rounding: int
) -> Function:
    def compute(*values: Array) -> Array:
        near = np.array(nearest(*values))
        given = np.broadcast_arrays(near, *values)[1:]
        finite = np.logical_and.reduce([np.isfinite(value) for value in given])
        for place in map(tuple, np.argwhere(finite)):
            operands = [_fraction(value[place]) for value in given]
            near[place] = _towards_fraction(
                exact(*operands), float(near[place]), rounding
            )
        return near

    return compute


def _fraction(value: np.floating | np.integer | np.bool_) -> Fraction | int:
    return Fraction(float(value)) if isinstance(value, np.floating) else int(value)


def _towards_fraction(exact: Fraction, near: float, rounding: int) -> float:
    """Return `exact` rounded to f64, as `towards` does."""
    if math.isinf(near):
        is_over = near > 0
        is_under = near < 0
    else:
        is_over = Fraction(near) > exact
        is_under = Fraction(near) < exact
    if rounding == _UP:
        return math.nextafter(near, math.inf) if is_under else near
    if rounding == _DOWN:
        return math.nextafter(near, -math.inf) if is_over else near
    is_away = is_over if exact > 0 else is_under
    return math.nextafter(near, 0.0) if is_away else near

"""Rounding, denormals and NaNs other than IEEE's, as the MODE register asks for them.

MODE holds two bits each: the rounding of f32, that of f64 and f16 (0 to nearest even, 1 up, 2 down,
3 towards zero), and which denormals of f32, and of f64 and f16, are kept (1: of operands, 2: of
results). Instructions are bound for the mode that they run in, so that the usual one costs nothing.
f32 and f16 are computed in f64, rounded to odd, and then rounded as asked for; f64 by fractions.
Refuses, by Unsupported, other rounding of instructions of which it is not known.
Manuals: the CDNA3 and RDNA3 ISA manuals, sections on the MODE register.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, IEEE_NANS, Instruction
from refcomp.emulator.instructions.exact import add_to_odd
from refcomp.emulator.instructions.operation import Function, Semantics
from refcomp.emulator.instructions.signalling import keep_signalling
from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import NUMPY, Array
from refcomp.foundation.errors import Unsupported

_NEAREST, _UP, _DOWN, _TO_ZERO = range(4)
_FLOATS = ("f16", "f32", "f64")
_PART = re.compile(r"v_(?:pk_)?(\w+?)(?:_legacy)?_(?:f16|f32|f64)$")


def rounding_of(mode: int, kind: str) -> int:
    """How results of a type are rounded."""
    return mode & 3 if kind == "f32" else mode >> 2 & 3


def keeps_denormals(mode: int, kind: str, *, of_results: bool) -> bool:
    """Whether denormals of a type are kept."""
    kept = mode >> 4 & 3 if kind == "f32" else mode >> 6 & 3
    return bool(kept & (2 if of_results else 1))


def in_mode(instruction: Instruction, row: Semantics) -> Semantics:
    """The row as the instruction's mode has it."""
    mode, result = instruction.mode, row.results[0]
    kinds = [
        *row.sources,
        *(result if name == "result" else name for name in row.implicit),
    ]
    if (
        mode == IEEE_MODE
        or {result, *kinds}.isdisjoint(_FLOATS)
        or "class" in row_name(instruction)
    ):
        return row
    rounded = _rounded(instruction, row)
    if not mode & IEEE_NANS:
        rounded = keep_signalling(row_name(instruction), row, rounded)
    flushes = [_is_flushed(mode, kind, of_results=False) for kind in kinds]
    flushes_result = _is_flushed(mode, result, of_results=True)

    def computed(*values: Array) -> Array:
        pairs = zip(values, flushes, strict=True)
        found = rounded(
            *(flushed(value) if is_flushed else value for value, is_flushed in pairs)
        )
        if not flushes_result:
            return found
        return (
            (flushed(found[0]), *found[1:]) if len(row.results) > 1 else flushed(found)
        )

    return replace(row, function=computed)


def row_name(instruction: Instruction) -> str:
    """The name without what says that it is packed."""
    return instruction.mnemonic.replace("v_pk_", "v_")


def _is_flushed(mode: int, kind: str, *, of_results: bool) -> bool:
    return kind in _FLOATS and not keeps_denormals(mode, kind, of_results=of_results)


# Rounding.

# What never rounds, or is approximate anyhow.
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
    # What lies beyond all exponents is no less beyond for being farther.
    "ldexp": lambda a, n: a * Fraction(2) ** max(-5000, min(n, 5000)),
    "div_fmas": lambda a, b, c, s: (
        (a * b + c) * Fraction(2) ** (s and _up_or_down(c, 128))
    ),
}


def _up_or_down(number: Array, power: int) -> int:
    """How the last step of a division is scaled, if it is."""
    return power if abs(number) >= 2 else -power


def _wide(value: Array) -> Array:
    return np.asarray(value, np.float64)


def _product_and(a: Array, b: Array, c: Array) -> Array:
    return add_to_odd(_wide(a) * _wide(b), _wide(c))


def _scaled_back(a: Array, b: Array, c: Array, is_scaled: Array) -> Array:
    factor = np.where(np.abs(c) >= 2, 2.0**64, 2.0**-64)
    return _product_and(a, b, c) * np.where(is_scaled, factor, 1.0)


# In f64, rounded to odd, of f32 and f16.
_TO_ODD: dict[str, Function] = {
    "add": lambda a, b: add_to_odd(_wide(a), _wide(b)),
    "sub": lambda a, b: add_to_odd(_wide(a), -_wide(b)),
    "subrev": lambda a, b: add_to_odd(_wide(b), -_wide(a)),
    "mul": lambda a, b: _wide(a) * _wide(b),
    "fma": _product_and,
    "fmac": _product_and,
    "fmaak": _product_and,
    "fmamk": lambda a, k, b: _product_and(a, k, b),
    "ldexp": lambda a, n: np.ldexp(_wide(a), np.clip(n, -600, 600).astype(np.int32)),
    "fma_mix": _product_and,
    "div_fmas": _scaled_back,
    "cvt": lambda a: np.asarray(a).astype(np.float64),
}
_SUMS = {"add", "sub", "subrev", "fma", "fmac", "fmaak", "fmamk", "fma_mix"}


def _rounded(instruction: Instruction, row: Semantics) -> Function:
    kind, name = row.results[0], row_name(instruction)
    rounding = rounding_of(instruction.mode, kind)
    if rounding == _NEAREST or kind not in _FLOATS or _NEVER.match(name):
        return row.function
    match = _PART.match(name)
    part = "cvt" if _CONVERSION.match(name) else match[1] if match else ""
    if name.startswith("v_cvt_") and part != "cvt":
        return row.function
    if part not in _TO_ODD:
        told = f"{instruction.mnemonic} that does not round to nearest is not known"
        raise Unsupported(told, where=str(instruction))
    nearest = _with_signed_zeros(row.function, part, rounding)
    return (_by_fractions if kind == "f64" else _by_odd)(nearest, part, kind, rounding)


def _with_signed_zeros(usual: Function, part: str, rounding: int) -> Function:
    """A sum that is 0 is -0 when rounding down, unless all its terms are 0: as that of the negated
    terms is +0."""
    if part not in _SUMS or rounding != _DOWN:
        return usual

    def computed(first: Array, *middle: Array) -> Array:
        near = np.asarray(usual(first, *middle))
        mirrored = np.negative(
            usual(np.negative(first), *middle[:-1], np.negative(middle[-1]))
        )
        return np.where(near == 0, mirrored, near)

    return computed


def _by_odd(nearest: Function, part: str, kind: str, rounding: int) -> Function:
    odd = _TO_ODD[part]
    return lambda *values: towards(
        odd(*values), np.asarray(nearest(*values)), kind, rounding
    )


def towards(exact: Array, near: Array, kind: str, rounding: int) -> Array:
    """`near`, or where it lies on the wrong side of `exact`, an f64, its neighbour on the other."""
    numpy, wide = NUMPY[kind], near.astype(np.float64)
    if rounding == _UP:
        is_wrong, goal = wide < exact, numpy(np.inf)
    elif rounding == _DOWN:
        is_wrong, goal = wide > exact, numpy(-np.inf)
    else:
        is_wrong, goal = np.abs(wide) > np.abs(exact), numpy(0)
    return np.where(is_wrong & np.isfinite(exact), np.nextafter(near, goal), near)


def _by_fractions(nearest: Function, part: str, kind: str, rounding: int) -> Function:
    exact = _FRACTIONS[part]

    def computed(*values: Array) -> Array:
        near = np.array(nearest(*values))
        given = np.broadcast_arrays(near, *values)[1:]
        finite = np.logical_and.reduce([np.isfinite(value) for value in given])
        for place in map(tuple, np.argwhere(finite)):
            sizes = [_fraction(value[place]) for value in given]
            near[place] = _stepped(exact(*sizes), near[place], rounding)
        return near

    return computed


def _fraction(value: Array) -> Array:
    return Fraction(float(value)) if isinstance(value, np.floating) else int(value)


def _stepped(exact: Fraction, near: Array, rounding: int) -> Array:
    """The same of one f64."""
    is_over = near > 0 if np.isinf(near) else Fraction(float(near)) > exact
    is_under = near < 0 if np.isinf(near) else Fraction(float(near)) < exact
    if rounding == _UP:
        return np.nextafter(near, np.inf) if is_under else near
    if rounding == _DOWN:
        return np.nextafter(near, -np.inf) if is_over else near
    is_away = is_over if exact > 0 else is_under
    return np.nextafter(near, 0.0) if is_away else near

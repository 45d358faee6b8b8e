"""Signalling NaNs of waves whose MODE register has IEEE_MODE cleared.

Compilers set the bit unless asked otherwise. Then every instruction that computes with floats makes
signalling NaNs quiet, as the tables of instructions do. With the bit cleared, a NaN keeps its bits;
and a minimum or maximum of a number and a NaN of either kind is the number. Conversions to f16 and
dot products quiet NaNs in both modes; `v_div_scale` never does.
Sources: the manuals' pseudocode of v_min and v_max; LLVM's `isCanonicalized` (SIISelLowering.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from refcomp.emulator.instructions.exact import quiet
from refcomp.emulator.instructions.operation import Function, Semantics
from refcomp.emulator.instructions.tables.floats import (
    is_signalling,
    maximum,
    median_by,
    minimum,
    quiet_bit,
)
from refcomp.emulator.machine.arrays import NUMPY, Array

_FLOATS = ("f16", "f32", "f64")
_ALWAYS_QUIET = re.compile(
    r"v_cvt_f16_f32|v_cvt_pk_?rtz_f16_f32|v_dot2.*|v_dual_dot2.*"
)
_CHOICE = re.compile(r"v_(min|max|min3|max3|med3|minmax|maxmin)_f(?:16|32|64)$")


def _passing_over(chosen: Function) -> Function:
    """Return the choice of two which, where one operand is a NaN, takes the other one."""

    def choose(a: Array, b: Array) -> Array:
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, chosen(a, b)))

    return choose


_least = _passing_over(minimum)
_greatest = _passing_over(maximum)
_CHOICES: dict[str, Function] = {
    "min": _least,
    "max": _greatest,
    "min3": lambda a, b, c: _least(_least(a, b), c),
    "max3": lambda a, b, c: _greatest(_greatest(a, b), c),
    "minmax": lambda a, b, c: _greatest(_least(a, b), c),
    "maxmin": lambda a, b, c: _least(_greatest(a, b), c),
    "med3": median_by(_least, _greatest),
}


def keep_signalling(name: str, row: Semantics, function: Function) -> Function:
    """Return `function`, which computes the row of that name, as it is without IEEE_MODE."""
    if match := _CHOICE.match(name):
        return _CHOICES[match[1]]
    if _ALWAYS_QUIET.match(name) or row.results[0] not in _FLOATS:
        return function
    kind = row.results[0]

    def compute(*values: Array) -> Array | tuple[Array, ...]:
        found = function(*values)
        if len(row.results) > 1:
            return (_with_signalling(found[0], values, kind), *found[1:])
        return _with_signalling(found, values, kind)

    return compute


def _with_signalling(found: Array, values: Sequence[Array], kind: str) -> Array:
    """Return the result with the quiet bit cleared in each NaN that was a signalling operand."""
    found = np.asarray(found)
    if not np.isnan(found).any():
        return found
    unsigned = np.dtype(f"u{found.itemsize}")
    mark = unsigned.type(1 << quiet_bit(found))
    bits = found.view(unsigned)
    for value in map(np.asarray, values):
        if value.dtype.kind != "f":
            continue
        # The bits of the NaN that the instruction made of this operand.
        made = quiet(quiet(value).astype(NUMPY[kind])).view(unsigned)
        loud = (bits & ~mark).view(found.dtype)
        came = is_signalling(value) & (bits == made) & np.isnan(loud)
        bits = np.where(came, bits & ~mark, bits)
    return bits.view(found.dtype)

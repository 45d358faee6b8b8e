"""Conversions between all types: cvt.

    cvt.rzi.s32.f32      float -> integer: rounded to an integer, clamped to the range
    cvt.rn.f32.s64       integer -> float
    cvt.rn.f16x2.f32     two floats -> a packed pair; the first source is the upper half
    cvt.sat.s8.s32       integer -> integer, clamped instead of cut off

Source: NVIDIA, "Parallel Thread Execution ISA", sections "cvt" and "cvt.pack".
A NaN becomes the integer 0, or 2**(bits - 1) if either type has 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.floats import MODES
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.integers import clamped
from refcomp.emulator.ptx.instructions.packed_conversions import PACKED_CONVERSIONS
from refcomp.emulator.ptx.instructions.packs import pack
from refcomp.emulator.ptx.instructions.results import (
    finish_of,
    float_of,
    float_value,
)
from refcomp.emulator.ptx.instructions.rounding import exactly, of_integer
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import bits_of, dtype_of, is_signed
from refcomp.emulator.ptx.instructions.undefined import shadows_first

_INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_TO_INTEGERS: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
# Conversions to wider floats, which hold each number exactly.
_EXACT = (
    ("f32", "f16"),
    ("f32", "bf16"),
    ("f64", "f16"),
    ("f64", "bf16"),
    ("f64", "f32"),
)


def _convert(form: Form) -> ValueRule:
    if "pack" in form.instruction.modifiers:
        return pack(form)
    if len(form.types) != 2:
        raise form.damaged("cvt needs the type of its result and that of its source")
    result, source = form.types
    describe = PACKED_CONVERSIONS.get((result, source))
    if describe is not None:
        return describe(form)
    is_known = {result, source} <= {*_INTEGERS, *_FLOATS}
    is_byte_of_bf16 = "bf16" in form.types and 8 in map(bits_of, form.types)
    if not is_known or is_byte_of_bf16:
        raise form.damaged(f"cvt does not make .{result} of .{source}")
    if source in _INTEGERS:
        return _resized(form) if result in _INTEGERS else _to_float(form)
    return _to_integer(form) if result in _INTEGERS else _between_floats(form)


# Integers.


def _resized(form: Form) -> ValueRule:
    """Return the rule of an integer of another width: cut off, extended, or clamped."""
    result, source = form.types
    dtype = dtype_of(result)
    is_extended = np.can_cast(dtype_of(source), dtype)
    if not is_extended and form.has("sat"):
        return ValueRule(
            compute=lambda value: _clamped(value, dtype.type),
            sources=(source,),
            results=(result,),
        )

    def convert(value: Array) -> Array:
        return np.asarray(value).astype(dtype)

    def undefined(shadow: Array, value: Array) -> Array:
        # An undefined sign is extended like any other.
        signed = shadow.view(dtype_of(source))
        return convert(signed).view(f"u{dtype.itemsize}")

    return ValueRule(
        compute=convert,
        sources=(source,),
        results=(result,),
        undefined=shadows_first(undefined),
    )


def _clamped(value: Array, kind: type[np.integer]) -> Array:
    """Return integers as another type. A number that does not fit becomes the nearest one."""
    value = np.asarray(value)
    if value.dtype.kind == "u":
        most = np.uint64(np.iinfo(kind).max)
        return np.minimum(value.astype(np.uint64), most).astype(kind)
    if np.dtype(kind).kind == "u":
        return np.minimum(
            np.maximum(value, 0).astype(np.uint64), np.uint64(np.iinfo(kind).max)
        ).astype(kind)
    return clamped(value.astype(np.int64), kind)


def _to_integer(form: Form) -> ValueRule:
    result, source = form.types
    mode = form.take(*_TO_INTEGERS)
    if not mode:
        raise form.damaged(
            f"cvt of .{source} to .{result} needs a rounding, such as .rzi"
        )
    if source != "bf16":
        form.has("sat")  # changes nothing: results are clamped without it, too
    flushes = source == "f32" and form.has("ftz")
    on_nan = 1 << (bits_of(result) - 1) if 64 in map(bits_of, form.types) else 0

    def compute(value: Array) -> Array:
        number = float_value(value, source)
        number = flushed(number) if flushes else number
        whole = _TO_INTEGERS[mode](number.astype(np.float64))
        return integer_of(whole, result, on_nan)

    return ValueRule(
        compute=compute,
        sources=(source,),
        results=(result,),
    )


def integer_of(whole: Array, kind: str, on_nan: int) -> Array:
    """Return f64 without a fraction as integers, clamped to their range.

    Args:
        kind: the type of the integers.
        on_nan: the bits of the result for NaN.
    """
    dtype = dtype_of(kind)
    limits = np.iinfo(dtype)
    # The integer after the greatest is a power of two, which f64 holds exactly.
    beyond = whole >= float(limits.max + 1)
    below = whole < float(limits.min)
    is_nan = np.isnan(whole)
    inside = np.where(beyond | below | is_nan, 0.0, whole)
    number = inside.astype(np.int64 if is_signed(kind) else np.uint64).astype(dtype)
    number = np.where(beyond, dtype.type(limits.max), number)
    number = np.where(below, dtype.type(limits.min), number)
    other = np.array(on_nan, f"u{dtype.itemsize}").view(dtype)
    return np.where(is_nan, other, number)


# Floats.


def _to_float(form: Form) -> ValueRule:
    result, source = form.types
    mode = form.must_take(*MODES)
    if result == "f32":
        form.has("ftz")  # no integer becomes a denormal
    finish = finish_of(form, result, "" if result == "bf16" else "sat")

    def compute(value: Array) -> Array:
        return finish(float_of(of_integer(value), result, mode))

    return ValueRule(
        compute=compute,
        sources=(source,),
        results=(result,),
    )


def _between_floats(form: Form) -> ValueRule:
    result, source = form.types
    whole = form.take(*_TO_INTEGERS) if result == source else ""
    is_exact = result == source or form.types in _EXACT
    mode = "rn"
    if not is_exact or (source == "bf16" and result != source):
        mode = form.take(*MODES, default="rn" if is_exact else "")
    if not mode:
        raise form.damaged(
            f"cvt of .{source} to .{result} needs a rounding, such as .rn"
        )
    flushes = "f32" in form.types and form.has("ftz")
    finish = finish_of(form, result, _endings(form, mode))

    def compute(value: Array) -> Array:
        number = float_value(value, source)
        if flushes and source == "f32":
            number = flushed(number)
        if whole:
            number = _TO_INTEGERS[whole](number)
        found = float_of(exactly(number), result, mode)
        if flushes and result == "f32":
            found = flushed(found)
        return finish(found)

    return ValueRule(
        compute=compute,
        sources=(source,),
        results=(result,),
    )


def _endings(form: Form, mode: str) -> str:
    """Return the last modifiers that a conversion between floats may have."""
    result, source = form.types
    endings = "" if "bf16" in form.types else "sat"
    narrows = result in ("f16", "bf16") and source == "f32"
    return f"{endings} relu satfinite" if narrows and mode in ("rn", "rz") else endings


CONVERSIONS: Table = joined(
    [
        rows("cvt", " ".join((*_INTEGERS, *_FLOATS)), _convert),
        rows("cvt", "b32", pack),
        rows("cvt", "f16x2 bf16x2 e4m3x2 e5m2x2 ue8m0x2", _convert),
    ]
)

"""Comparisons, and choices between two values.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "Comparison and Selection Instructions"
and "Half Precision Comparison Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.instructions.tables.unfused import flushed
from refcomp.emulator.machine.arrays import Array, Mask
from refcomp.emulator.ptx.instructions.form import Form, Table, joined, rows
from refcomp.emulator.ptx.instructions.integers import (
    halves_of,
    of_halves,
    undefined_in_halves,
)
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.small_floats import f32_of_bf16
from refcomp.emulator.ptx.instructions.types import dtype_of
from refcomp.emulator.ptx.instructions.undefined import all_bits, of_selp
from refcomp.emulator.ptx.text.module import Pair

Compare = Callable[[Array, Array], Array]

_ORDERED: dict[str, Compare] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
# Other names of comparisons of unsigned integers.
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINED: dict[str, Compare] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_FLOATS = ("f16", "f32", "f64", "f16x2", "bf16", "bf16x2")
_FLUSHED = ("f16", "f32", "f16x2")
_INTEGERS = "u16 u32 u64 s16 s32 s64"
_SOURCES = f"b16 b32 b64 {_INTEGERS} f32 f64 f16 f16x2 bf16 bf16x2"


def _is_unordered(a: Array, b: Array) -> Array:
    return np.asarray(np.isnan(a) | np.isnan(b))


def _comparison_of_floats(name: str) -> Compare:
    """Return a comparison by its name. For a NaN it is True if the name ends in `u`."""
    if name == "num":
        return lambda a, b: ~_is_unordered(a, b)
    if name == "nan":
        return _is_unordered
    if name[-1] == "u":
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: np.asarray(ordered(a, b) | _is_unordered(a, b))
    if name == "ne":  # numpy's != is True for a NaN
        return lambda a, b: np.asarray((a != b) & ~_is_unordered(a, b))
    return _ORDERED[name]


def _comparison(form: Form) -> Compare:
    """Return the comparison that a form names, on values of its last type."""
    kind = form.type
    if kind in _FLOATS:
        names = [*_ORDERED, *(f"{name}u" for name in _ORDERED), "num", "nan"]
        compare = _comparison_of_floats(form.must_take(*names))
        may_flush = kind in _FLUSHED and "bf16" not in form.types
        return _viewed(kind, compare, may_flush and form.has("ftz"))
    if kind[0] == "b":
        return _ORDERED[form.must_take("eq", "ne")]
    names = [*_ORDERED, *(_UNSIGNED if kind[0] == "u" else ())]
    name = form.must_take(*names)
    return _ORDERED[_UNSIGNED.get(name, name)]


def _viewed(kind: str, compare: Compare, flushes: bool) -> Compare:
    """Return a comparison of floats as a function of values in the form that rules get."""

    def view(value: Array) -> Array:
        if kind.endswith("x2"):
            value = halves_of(kind, value)
        floats = f32_of_bf16(value) if kind.startswith("bf16") else np.asarray(value)
        return flushed(floats) if flushes else floats

    return lambda a, b: compare(view(a), view(b))


def _combined(form: Form) -> Compare | None:
    """Return the function that combines the comparison with a predicate; None without one."""
    name = form.take(*_COMBINED)
    return _COMBINED[name] if name else None


def _set_predicate(form: Form) -> ValueRule:
    """Describe setp.

    For packed types, the first result compares the lower halves, the second the upper halves. For
    other types, the second result is the opposite of the first. Each result is then combined with
    the predicate.
    """
    kind = form.type
    compare = _comparison(form)
    combine = _combined(form)
    is_packed = kind.endswith("x2")
    operands = form.instruction.operands
    has_two = bool(operands) and isinstance(operands[0], Pair)
    if has_two and kind in ("f16", "bf16"):
        raise form.damaged(f"setp.{kind} does not have a second result")

    def compute(a: Array, b: Array, *more: Array) -> Array | tuple[Array, ...]:
        holds = np.asarray(compare(a, b))
        both = (holds[..., 0], holds[..., 1]) if is_packed else (holds, ~holds)
        if combine is not None:
            both = (combine(both[0], more[0]), combine(both[1], more[0]))
        return both if has_two else both[0]

    def undefined(*both: Array) -> Array | tuple[Array, ...]:
        found = _undefined_halves(*both)
        return (found[..., 0], found[..., 1]) if has_two else found[..., 0]

    sources = (kind, kind) if combine is None else (kind, kind, "pred")
    return ValueRule(
        compute=compute,
        sources=sources,
        results=("pred",) * (2 if has_two else 1),
        undefined=undefined if is_packed else None,
    )


def _undefined_halves(*both: Array) -> Mask:
    """Return where a comparison of packed values is undefined: the last axis has both halves."""
    shadows = both[len(both) // 2 :]
    found = undefined_in_halves(*shadows[:2])
    for predicate in shadows[2:]:
        found = found | (np.asarray(predicate)[..., None] != 0)
    return found


# Type of a result of `set` -> its bits where the comparison holds.
_TRUE: dict[str, int] = {
    "u16": 0xFFFF,
    "s16": 0xFFFF,
    "u32": 0xFFFFFFFF,
    "s32": 0xFFFFFFFF,
    "f32": 0x3F800000,
    "f16": 0x3C00,
    "bf16": 0x3F80,
    "f16x2": 0x3C00,
    "bf16x2": 0x3F80,
}


def _can_set(result: str, kind: str) -> bool:
    """Return True if `set` has results of the type `result` for a comparison of type `kind`."""
    if result in ("u32", "s32"):
        return True
    if result in ("u16", "s16"):
        return kind in ("f16", "bf16")
    if result.endswith("x2") or kind.endswith("x2"):
        return result == kind
    refused = {"f32": ("f16", "bf16"), "f16": ("bf16",)}
    return result in _TRUE and kind not in refused.get(result, ())


def _set(form: Form) -> ValueRule:
    """Describe set: all ones or 1.0 where the comparison holds, else 0."""
    if len(form.types) != 2 or not _can_set(*form.types):
        raise form.damaged("set does not have the type of the result")
    result, kind = form.types
    compare = _comparison(form)
    combine = _combined(form)
    is_packed = kind.endswith("x2")
    # The halves of an integer result of packed operands are masks of 16 bits.
    bits = _TRUE[result] & 0xFFFF if is_packed else _TRUE[result]
    unsigned = np.uint16 if is_packed else f"u{dtype_of(result).itemsize}"

    def compute(a: Array, b: Array, *more: Array) -> Array:
        holds = np.asarray(compare(a, b))
        if combine is not None:
            other = np.asarray(more[0])
            holds = combine(holds, other[..., None] if is_packed else other)
        chosen = np.where(holds, bits, 0).astype(unsigned)
        words = of_halves(chosen) if is_packed else chosen
        return words.view(dtype_of(result))

    def undefined(*both: Array) -> Array:
        return of_halves(all_bits("b16", _undefined_halves(*both)))

    sources = (kind, kind) if combine is None else (kind, kind, "pred")
    return ValueRule(
        compute=compute,
        sources=sources,
        results=(result,),
        undefined=undefined if is_packed else None,
    )


def _chosen(form: Form) -> ValueRule:
    kind = form.type

    def compute(a: Array, b: Array, chosen: Array) -> Array:
        return np.where(chosen, a, b)

    return ValueRule(
        compute=compute,
        sources=(kind, kind, "pred"),
        results=(kind,),
        undefined=of_selp,
    )


def _chosen_by_sign(form: Form) -> ValueRule:
    """Describe slct: a where c >= 0, else b."""
    if len(form.types) != 2:
        raise form.damaged("slct needs the type of its result and .s32 or .f32")
    kind, decider = form.types
    if kind not in _CHOSEN.split():
        raise form.damaged(f"slct does not choose between .{kind}")
    flushes = decider == "f32" and form.has("ftz")

    def compute(a: Array, b: Array, c: Array) -> Array:
        value = flushed(c) if flushes else np.asarray(c)
        return np.where(value >= 0, a, b)

    return ValueRule(
        compute=compute,
        sources=(kind, kind, decider),
        results=(kind,),
    )


_CHOSEN = f"b16 b32 b64 {_INTEGERS} f32 f64"
COMPARISONS: Table = joined(
    [
        rows("setp", _SOURCES, _set_predicate),
        rows("set", _SOURCES, _set),
        rows("selp", _CHOSEN, _chosen),
        rows("slct", "s32 f32", _chosen_by_sign),
    ]
)

"""Conversions of two integers to a packed pair of smaller ones: cvt.pack.

    cvt.pack.sat.s16.s32      d, a, b       a is the upper half
    cvt.pack.sat.u8.s32.b32   d, a, b, c    c is shifted up, so that the pair is below it

Source: NVIDIA, "Parallel Thread Execution ISA", section "cvt.pack".
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form
from refcomp.emulator.ptx.instructions.rule import ValueRule

_WITH_REST = ("u8", "s8", "u4", "s4", "u2", "s2")
_WIDE = ("u16", "s16")


def pack(form: Form) -> ValueRule:
    """Return the rule of cvt.pack."""
    form.must_take("pack")
    form.must_take("sat")
    narrow = form.take(*_WITH_REST[2:]) or form.types[0]
    others = form.types if narrow not in form.types else form.types[1:]
    has_rest = others == ("s32", "b32")
    is_known = narrow in _WITH_REST if has_rest else narrow in _WIDE
    if not is_known or not (has_rest or others == ("s32",)):
        raise form.damaged(
            "cvt.pack needs .u16.s32 or .s16.s32, or a smaller type with .s32.b32"
        )
    width = int(narrow[1:])
    least = -(1 << (width - 1)) if narrow[0] == "s" else 0
    mask = (1 << width) - 1

    def bits(value: Array) -> Array:
        clamped = np.clip(np.asarray(value).astype(np.int64), least, least + mask)
        return (clamped & mask).astype(np.uint32)

    def pair(upper: Array, lower: Array) -> Array:
        return np.asarray(bits(upper) << np.uint32(width) | bits(lower))

    def pair_below(upper: Array, lower: Array, rest: Array) -> Array:
        return np.asarray(rest << np.uint32(2 * width) | pair(upper, lower))

    if has_rest:
        return ValueRule(pair_below, ("s32", "s32", "b32"), ("b32",))
    return ValueRule(pair, ("s32", "s32"), ("b32",))

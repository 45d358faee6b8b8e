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

_SUB_BYTES = ("u4", "s4", "u2", "s2")  # modifiers, since PTX has no such types
_WITH_REST = ("u8", "s8", *_SUB_BYTES)
_WIDE = ("u16", "s16")


def pack(form: Form) -> ValueRule:
    """Return the rule of cvt.pack."""
    form.must_take("pack")
    form.must_take("sat")
    narrow = form.take(*_SUB_BYTES)
    sources = form.types
    if not narrow:
        narrow = sources[0]
        sources = sources[1:]
    has_rest = sources == ("s32", "b32")
    legal = _WITH_REST if has_rest else _WIDE
    has_sources = has_rest or sources == ("s32",)
    if not has_sources or narrow not in legal:
        raise form.damaged(
            "cvt.pack needs .u16.s32 or .s16.s32, or a smaller type with .s32.b32"
        )
    width = int(narrow[1:])
    is_signed = narrow[0] == "s"
    mask = (1 << width) - 1
    least = -(1 << (width - 1)) if is_signed else 0
    greatest = least + mask

    def bits(value: Array) -> Array:
        wide = np.asarray(value).astype(np.int64)
        clamped = np.clip(wide, least, greatest)
        return (clamped & mask).astype(np.uint32)

    def pair(upper: Array, lower: Array) -> Array:
        shifted = bits(upper) << np.uint32(width)
        return np.asarray(shifted | bits(lower))

    def pair_below(upper: Array, lower: Array, rest: Array) -> Array:
        shifted = rest << np.uint32(2 * width)
        return np.asarray(shifted | pair(upper, lower))

    if has_rest:
        return ValueRule(
            compute=pair_below,
            sources=("s32", "s32", "b32"),
            results=("b32",),
        )
    return ValueRule(
        compute=pair,
        sources=("s32", "s32"),
        results=("b32",),
    )

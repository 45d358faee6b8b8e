"""Copies of registers, and the packing of several registers into one.

`refcomp.emulator.ptx.execution.operands` moves addresses and special registers.
Source: NVIDIA, "Parallel Thread Execution ISA", section "mov".
"""

from __future__ import annotations

from functools import partial

import numpy as np

from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.ptx.instructions.form import Form, Table, rows
from refcomp.emulator.ptx.instructions.rule import ValueRule
from refcomp.emulator.ptx.instructions.types import as_unsigned, bits_of, unsigned_of
from refcomp.emulator.ptx.text.module import Vector
from refcomp.foundation.counted import counted

_KINDS = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 pred"


def packed_parts(kind: str, *parts: Array) -> Array:
    """Return unsigned integers packed into a wider type. The first has the lowest bits."""
    dtype = unsigned_of(kind)
    width = bits_of(kind) // len(parts)
    total = np.zeros((), dtype)
    for number, part in enumerate(parts):
        wide = np.asarray(part).astype(dtype)
        shift = dtype.type(width * number)
        total = total | wide << shift
    return np.asarray(total)


def unpacked_parts(kind: str, count: int, value: Array) -> tuple[Array, ...]:
    """Return the parts of an unsigned integer. The first has the lowest bits."""
    width = bits_of(kind) // count
    dtype = unsigned_of(f"b{width}")
    words = np.asarray(value)
    parts = []
    for number in range(count):
        shift = words.dtype.type(width * number)
        parts.append((words >> shift).astype(dtype))
    return tuple(parts)


def _part_of(form: Form, count: int) -> str:
    """Return the type of a part of a vector."""
    width = bits_of(form.type) // count
    is_legal = form.type.startswith("b") and width in (8, 16, 32)
    if not is_legal:
        raise form.damaged(
            f"mov.{form.type} does not hold a vector of {counted(count, 'part')}"
        )
    return f"b{width}"


# Undefined bits are moved like other bits. So `undefined` of these rules does to the undefined
# bits of the sources what `compute` does to their values.


def _packing(form: Form, count: int) -> ValueRule:
    kind = form.type
    part = _part_of(form, count)

    def undefined(*both: Array) -> Array:
        shadows = both[count:]
        return packed_parts(kind, *shadows)

    return ValueRule(
        compute=partial(packed_parts, kind),
        sources=(part,) * count,
        results=(kind,),
        undefined=undefined,
    )


def _unpacking(form: Form, count: int) -> ValueRule:
    kind = form.type
    part = _part_of(form, count)
    unpack = partial(unpacked_parts, kind, count)
    return ValueRule(
        compute=unpack,
        sources=(kind,),
        results=(part,) * count,
        undefined=lambda value, shadow: unpack(shadow),
    )


def _move(form: Form) -> ValueRule:
    match form.instruction.operands:
        case [_, Vector() as source]:
            return _packing(form, len(source.parts))
        case [Vector() as result, _]:
            return _unpacking(form, len(result.parts))
    return ValueRule(
        compute=lambda value: value,
        sources=(form.type,),
        results=(form.type,),
        undefined=lambda value, shadow: as_unsigned(shadow),
    )


MOVES: Table = rows("mov", _KINDS, _move)

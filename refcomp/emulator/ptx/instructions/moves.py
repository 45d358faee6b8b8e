"""Copies of registers, and the packing of several registers into one.

Addresses and special registers are moved by the execution.
Source: NVIDIA, "Parallel Thread Execution ISA", section "mov".
"""

from __future__ import annotations

from collections.abc import Callable

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
        total = total | np.asarray(part).astype(dtype) << dtype.type(width * number)
    return np.asarray(total)


def unpacked_parts(kind: str, count: int, value: Array) -> tuple[Array, ...]:
    """Return the parts of an unsigned integer. The first has the lowest bits."""
    width = bits_of(kind) // count
    part = unsigned_of(f"b{width}")
    words = np.asarray(value)
    step = words.dtype.type
    return tuple((words >> step(width * i)).astype(part) for i in range(count))


def _copy(value: Array) -> Array:
    return value


def _part_of(form: Form, count: int) -> str:
    """Return the type of a part of a vector."""
    width = bits_of(form.type) // count
    if not form.type.startswith("b") or width not in (8, 16, 32):
        raise form.damaged(
            f"mov.{form.type} does not hold a vector of {counted(count, 'part')}"
        )
    return f"b{width}"


def _of_parts(count: int, function: Callable[..., Array]) -> Callable[..., Array]:
    """Return the spread of a move: undefined bits are moved like other bits."""
    return lambda *both: function(*both[count:])


def _move(form: Form) -> ValueRule:
    kind = form.type
    operands = form.instruction.operands
    result, source = operands if len(operands) == 2 else (None, None)
    if isinstance(source, Vector):
        count = len(source.parts)
        part = _part_of(form, count)

        def pack(*parts: Array) -> Array:
            return packed_parts(kind, *parts)

        return ValueRule(pack, (part,) * count, (kind,), _of_parts(count, pack))
    if isinstance(result, Vector):
        count = len(result.parts)
        part = _part_of(form, count)

        def unpack(value: Array) -> tuple[Array, ...]:
            return unpacked_parts(kind, count, value)

        def undefined(value: Array, shadow: Array) -> tuple[Array, ...]:
            return unpacked_parts(kind, count, shadow)

        return ValueRule(unpack, (kind,), (part,) * count, undefined)
    return ValueRule(_copy, (kind,), (kind,), lambda value, shadow: as_unsigned(shadow))


MOVES: Table = rows("mov", _KINDS, _move)

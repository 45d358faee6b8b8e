"""Atomic updates of memory: one lane after the other, in the order of waves and lanes.

global_atomic_add_x2 v1, v[2:3], s[0:1] sc0        ds_max_rtn_i32 v0, v1, v2

The addresses of `flat_atomic_...` and `buffer_atomic_...` are found in `flat` and `buffers`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    SHARED,
    Address,
    Space,
    global_address,
    offset_of,
    put,
    shared_address,
)
from refcomp.emulator.instructions.operation import Function
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.machine.arrays import (
    NUMPY,
    Array,
    Words,
    bits_of,
    registers_of,
    split,
)
from refcomp.emulator.machine.memory import gather, scatter
from refcomp.emulator.machine.sources import numbers_of, vector_index
from refcomp.emulator.machine.waves import Run, Waves


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, np.zeros((), old.dtype), old + old.dtype.type(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def _exchange_if(old: Array, wanted: Array, compared: Array) -> Array:
    return np.where(old == compared, wanted, old)


def _mask_or(old: Array, cleared: Array, added: Array) -> Array:
    return (old & ~cleared) | added


def _wrap(old: Array, size: Array, step: Array) -> Array:
    return np.where(old >= size, old - size, old + step)


def _add_halves(old: Array, added: Array) -> Array:
    first = np.ascontiguousarray(old).view(np.float16)
    second = np.ascontiguousarray(added).view(np.float16)
    return (first + second).view(np.uint32)


_HIGH = np.uint32(0xFFFF0000)


def _add_bf16_halves(old: Array, added: Array) -> Array:
    halves = []
    for shift in (np.uint32(16), np.uint32(0)):  # a bf16 is the upper half of an f32
        first = (np.asarray(old) << shift & _HIGH).view(np.float32)
        second = (np.asarray(added) << shift & _HIGH).view(np.float32)
        halves.append(rounded_to_bf16(first + second))
    return halves[0] >> np.uint32(16) | halves[1]


def rounded_to_bf16(value: npt.ArrayLike) -> Words:
    """Return f32 as the bits of the nearest bf16, in the upper half of 32 bits."""
    value = np.asarray(value, np.float32)
    bits = value.view(np.uint32)
    rest = np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(value), bits | np.uint32(0x400000), bits + rest) & _HIGH


# Name -> the new value, of the old one and the values of the instruction; of signed integers.
_SIGNED_UPDATES: dict[str, Function] = {"smin": np.minimum, "smax": np.maximum}
# The same of unsigned integers.
_UNSIGNED_UPDATES: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "rsub": lambda old, a: a - old,
    "inc": _increment,
    "dec": _decrement,
    "wrap": _wrap,
    "umin": np.minimum,
    "umax": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "mskor": _mask_or,
    "swap": lambda old, a: a,
    "cmpswap": _exchange_if,
    "pk_add_f16": _add_halves,
    "pk_add_bf16": _add_bf16_halves,
}
# Name -> the vector instruction on floats that does the same.
_FLOAT_UPDATES = {"add": "v_add", "min": "v_min", "max": "v_max"}
_SHARED_NAMES = {"wrxchg": "swap", "cmpst": "cmpswap"}
_VECTOR = re.compile(r"(?:global|flat|buffer)_atomic_(\w+?)(?:_(f32|f64)|(_x2))?$")
_SHARED_PAIRS = re.compile(r"ds_(pk_add)(_rtn)?_(b?f16)$")
_SHARED = re.compile(r"ds_(\w+?)(_rtn)?_([uifb])(32|64)$")


def bind_atomic(instruction: Instruction) -> Run | None:
    """Bind an update of global or shared memory; None for any other instruction."""
    if instruction.mnemonic.startswith("global_atomic_"):
        operands = operands_of_update(instruction)
        offset, data, base = operands.sources[:3]
        address = global_address(instruction, offset, base)
        return bind_update(instruction, GLOBAL, address, data, operands.result)
    if match := _SHARED.match(instruction.mnemonic):
        return _bind_shared(
            instruction, match, f"{match[3]}{match[4]}".replace("b", "u")
        )
    if match := _SHARED_PAIRS.match(instruction.mnemonic):
        return _bind_shared(instruction, match, "u32")
    return None


@dataclass(frozen=True, slots=True)
class UpdateOperands:
    """The operands of an update of memory."""

    result: Operand | None  # where the old value goes; None: nowhere
    sources: tuple[Operand, ...]  # all others, in their order


def operands_of_update(instruction: Instruction) -> UpdateOperands:
    """Return the operands of a vector update, which by a modifier returns the old value."""
    returns = not {"sc0", "glc"}.isdisjoint(instruction.modifiers)
    return _update_operands(instruction, returns)


def _update_operands(instruction: Instruction, returns: bool) -> UpdateOperands:
    operands = instruction.operands
    return (
        UpdateOperands(operands[0], operands[1:])
        if returns
        else UpdateOperands(None, operands)
    )


class _UpdateData(NamedTuple):
    """A value that an update takes. A tuple, since it is read whenever the update runs."""

    register: int  # number of its first vector register
    operand: Operand  # the operand that it is, or is part of


def bind_update(
    instruction: Instruction,
    space: Space,
    address: Address,
    data: Operand,
    result: Operand | None,
) -> Run | None:
    """Bind an update of the memory that lanes address; None for any other instruction."""
    match = _VECTOR.match(instruction.mnemonic)
    if match is None:
        return None
    kind = match[2] or ("u64" if match[3] else "u32")
    update = _update(match[1], kind)
    if update is None:
        return None
    count = 2 if match[1] == "cmpswap" else 1
    registers = (
        vector_index(data) + n * registers_of(update.kind) for n in range(count)
    )
    values = [_UpdateData(register, data) for register in registers]
    return _bind(instruction, space, address, update=update, data=values, result=result)


def _bind_shared(
    instruction: Instruction, match: re.Match[str], kind: str
) -> Run | None:
    name = _SHARED_NAMES.get(match[1], match[1])
    if name in ("min", "max") and kind[0] != "f":
        name = ("s" if kind[0] == "i" else "u") + name
    update = _update(f"{name}_{match[3]}" if name == "pk_add" else name, kind)
    if update is None:
        return None
    operands = _update_operands(instruction, bool(match[2]))
    place, *values = operands.sources
    address = shared_address(instruction, place, offset_of(instruction))
    if name == "cmpswap":
        # Of ds_cmpst the value to compare with comes first.
        compared, wanted = values[:2]
        values = [wanted, compared]
    data = [_UpdateData(vector_index(operand), operand) for operand in values]
    return _bind(
        instruction, SHARED, address, update=update, data=data, result=operands.result
    )


@dataclass(frozen=True, slots=True)
class _TypedUpdate:
    """A function that makes the new value, and the type of all values."""

    function: Function  # takes the old value, then the values of the instruction
    kind: str


def _update(name: str, kind: str) -> _TypedUpdate | None:
    if kind.startswith("f"):
        if name == "cmpswap":
            return _TypedUpdate(_exchange_if, kind)
        row = _FLOAT_UPDATES.get(name)
        return (
            _TypedUpdate(VECTOR_FLOATS[f"{row}_{kind}"].function, kind) if row else None
        )
    if name in _SIGNED_UPDATES:
        return _TypedUpdate(_SIGNED_UPDATES[name], f"i{bits_of(kind)}")
    if name in _UNSIGNED_UPDATES:
        return _TypedUpdate(_UNSIGNED_UPDATES[name], f"u{bits_of(kind)}")
    return None


def _bind(
    instruction: Instruction,
    space: Space,
    address: Address,
    *,
    update: _TypedUpdate,
    data: list[_UpdateData],
    result: Operand | None,
) -> Run:
    kind = update.kind
    bits = bits_of(kind)
    width = bits // 8
    watched = frozenset[int]().union(
        *(numbers_of(one.operand, f"u{bits}") for one in data)
    )

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), width, instruction)
        active = waves.active()
        values = [
            waves.pick(waves.values.vector(n, kind, waves.rows), active)
            for n, _ in data
        ]
        if waves.shadow is not None and not waves.dirty.isdisjoint(watched):
            for register, _ in data:
                shadow = waves.shadow.vector(register, f"u{bits}", waves.rows)
                undefined = (shadow != 0) & waves.mask
                if undefined.any():
                    waves.report_undefined(
                        instruction, "an update of memory", undefined
                    )
        memory = space.bytes_of(waves)
        if wrong is None and memory.load_undefined(index, width) is not None:
            waves.report_undefined(instruction, "an update of memory", waves.mask)
        inside = slice(None) if wrong is None else ~wrong
        target = index[inside]
        old = np.zeros(index.shape, NUMPY[kind])
        old[inside] = update_in_order(
            memory.data, target, update.function, [value[inside] for value in values]
        )
        if memory.known is not None:
            ones = np.full(target.shape, -1, np.int64).astype(f"u{width}")
            scatter(memory.known, target, width, ones)
        if result is not None:
            _put_old(waves, vector_index(result), old)

    return run


def _put_old(waves: Waves, index: int, old: Array) -> None:
    if old.itemsize == 4:
        put(waves, index, old.view(np.uint32), None)
        return
    for offset, half in enumerate(split(old.view(np.uint64))):
        put(waves, index + offset, half, None)


def update_in_order(
    memory: Array, index: Array, function: Function, values: list[Array]
) -> Array:
    """Update the number at the index of each lane, the lanes in order; return the old numbers.

    `index` and `values` are flat. The updates are made in rounds, each with at most one of an
    index: round n has the n-th lane of each index.
    """
    width = values[0].itemsize
    dtype = values[0].dtype
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, len(ordered)))
    turn = np.arange(len(ordered)) - np.repeat(starts, lengths)
    by_turn = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn)).tolist() if len(turn) else []
    old = np.empty(len(index), dtype)
    for start, end in pairwise([0, *ends]):
        lanes = order[by_turn[start:end]]
        before = gather(memory, index[lanes], width).view(dtype)
        old[lanes] = before
        after = np.asarray(function(before, *(value[lanes] for value in values)), dtype)
        scatter(memory, index[lanes], width, after.view(f"u{width}"))
    return old

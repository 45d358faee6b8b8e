"""Updates of memory that nobody interrupts: one lane after the other, in order of wave and lane.

global_atomic_add_x2 v1, v[2:3], s[0:1] sc0        ds_max_rtn_i32 v0, v1, v2

Where `flat_atomic_...` and `buffer_atomic_...` lie is for `flat` and `buffers` to tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    SHARED,
    Address,
    Run,
    Space,
    global_address,
    offset_of,
    put,
    shared_address,
)
from refcomp.emulator.instructions.operation import Function
from refcomp.emulator.instructions.tables.floats import VECTOR_FLOATS
from refcomp.emulator.machine.arrays import NUMPY, Array, bits_of, registers_of, split
from refcomp.emulator.machine.memory import gather, scatter
from refcomp.emulator.machine.sources import numbers_of, vector_index
from refcomp.emulator.machine.waves import Waves


def _increment(old: Array, most: Array) -> Array:
    return np.where(old >= most, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, most: Array) -> Array:
    return np.where((old == 0) | (old > most), most, old - old.dtype.type(1))


def _exchange_if(old: Array, wanted: Array, compared: Array) -> Array:
    return np.where(old == compared, wanted, old)


def _mask_or(old: Array, cleared: Array, added: Array) -> Array:
    return (old & ~cleared) | added


def _wrap(old: Array, size: Array, step: Array) -> Array:
    return np.where(old >= size, old - size, old + step)


def _add_halves(old: Array, added: Array) -> Array:
    halves = [np.ascontiguousarray(x).view(np.float16) for x in (old, added)]
    return np.add(*halves).view(np.uint32)


def _add_upper_halves_of_f32(old: Array, added: Array) -> Array:
    """Both halves are bf16."""
    low, high = (
        rounded_to_bf16(
            (np.asarray(old) << shift & _HIGH).view(np.float32)
            + (np.asarray(added) << shift & _HIGH).view(np.float32)
        )
        for shift in (np.uint32(16), np.uint32(0))
    )
    return low >> np.uint32(16) | high


def rounded_to_bf16(value: Array) -> Array:
    """f32 -> the bits of the nearest bf16, in the upper half of 32 bits."""
    bits = np.asarray(value, np.float32).view(np.uint32)
    rest = np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(value), bits | np.uint32(0x400000), bits + rest) & _HIGH


_HIGH = np.uint32(0xFFFF0000)
# Name -> what becomes of the old value: of signed integers, and of unsigned ones.
_SIGNED_UPDATES: dict[str, Function] = {"smin": np.minimum, "smax": np.maximum}
_UNSIGNED_UPDATES: dict[str, Function] = {
    **{"add": np.add, "sub": np.subtract, "rsub": lambda old, a: a - old},
    **{"inc": _increment, "dec": _decrement, "wrap": _wrap},
    **{"umin": np.minimum, "umax": np.maximum},
    **{
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "mskor": _mask_or,
    },
    **{"swap": lambda old, a: a, "cmpswap": _exchange_if},
    **{"pk_add_f16": _add_halves, "pk_add_bf16": _add_upper_halves_of_f32},
}
_FLOAT_UPDATES = {"add": "v_add", "min": "v_min", "max": "v_max"}
_SHARED_NAMES = {"wrxchg": "swap", "cmpst": "cmpswap"}
_VECTOR = re.compile(r"(?:global|flat|buffer)_atomic_(\w+?)(?:_(f32|f64)|(_x2))?$")
_SHARED_PAIRS = re.compile(r"ds_(pk_add)(_rtn)?_(b?f16)$")
_SHARED = re.compile(r"ds_(\w+?)(_rtn)?_([uifb])(32|64)$")


def bind_atomic(instruction: Instruction) -> Run | None:
    """The instruction, ready to run; None when it is no such update."""
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

    # Where the old value goes; None: nowhere.
    result: Operand | None
    # All others, in their order.
    sources: tuple[Operand, ...]


def operands_of_update(instruction: Instruction) -> UpdateOperands:
    """The operands of a vector update: by a modifier it returns the old value."""
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

    # Number of its first vector register.
    register: int
    # The operand that it is, or stands in.
    operand: Operand


def bind_update(
    instruction: Instruction,
    space: Space,
    address: Address,
    data: Operand,
    result: Operand | None,
) -> Run | None:
    """An update of the memory that lanes address, ready to run; None when it is none."""
    match = _VECTOR.match(instruction.mnemonic)
    if match is None:
        return None
    kind = match[2] or ("u64" if match[3] else "u32")
    found = _update(match[1], kind)
    if found is None:
        return None
    count = 2 if match[1] == "cmpswap" else 1
    registers = (
        vector_index(data) + n * registers_of(found.kind) for n in range(count)
    )
    parts = [_UpdateData(register, data) for register in registers]
    return _bind(instruction, space, address, found, parts, result)


def _bind_shared(
    instruction: Instruction, match: re.Match[str], kind: str
) -> Run | None:
    name = _SHARED_NAMES.get(match[1], match[1])
    if name in ("min", "max") and kind[0] != "f":
        name = ("s" if kind[0] == "i" else "u") + name
    found = _update(f"{name}_{match[3]}" if name == "pk_add" else name, kind)
    if found is None:
        return None
    operands = _update_operands(instruction, bool(match[2]))
    place, *values = operands.sources
    address = shared_address(instruction, place, offset_of(instruction))
    if name == "cmpswap":
        # Of ds_cmpst the value to compare with comes first.
        compared, wanted = values[:2]
        values = [wanted, compared]
    data = [_UpdateData(vector_index(operand), operand) for operand in values]
    return _bind(instruction, SHARED, address, found, data, operands.result)


@dataclass(frozen=True, slots=True)
class _TypedUpdate:
    """What becomes of the old value, and of which type."""

    # Old value, then the values of the instruction -> new value.
    function: Function
    # Type of all of them.
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
    update: _TypedUpdate,
    data: list[_UpdateData],
    result: Operand | None,
) -> Run:
    function, kind = update.function, update.kind
    width = bits_of(kind) // 8
    watched = frozenset().union(
        *(numbers_of(one.operand, f"u{8 * width}") for one in data)
    )

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), width, instruction)
        active = waves.active()
        values = [
            waves.pick(waves.values.vector(n, kind, waves.rows), active)
            for n, _ in data
        ]
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            _check_data(waves, instruction, data, kind, active)
        bytes_ = space.bytes_of(waves)
        undefined = bytes_.load_undefined(index, width)
        if undefined is not None and wrong is None:
            waves.report_undefined(instruction, "an update of memory", waves.mask)
        chosen = slice(None) if wrong is None else ~wrong
        old = np.zeros(index.shape, NUMPY[kind])
        old[chosen] = update_in_order(
            bytes_.data, index[chosen], function, [value[chosen] for value in values]
        )
        if bytes_.known is not None:
            ones = np.full(index[chosen].shape, -1, np.int64).astype(f"u{width}")
            scatter(bytes_.known, index[chosen], width, ones)
        if result is not None:
            _put_old(waves, vector_index(result), old)

    return run


def _check_data(
    waves: Waves, ins: Instruction, data: list[_UpdateData], kind: str, active: Array
) -> None:
    for index, _ in data:
        shadow = waves.shadow.vector(
            index, kind.replace("f", "u").replace("i", "u"), waves.rows
        )
        undefined = (shadow != 0) & waves.mask
        if undefined.any():
            waves.report_undefined(ins, "an update of memory", undefined)


def _put_old(waves: Waves, index: int, old: Array) -> None:
    if old.itemsize == 4:
        put(waves, index, old.view(np.uint32), None)
        return
    for offset, half in enumerate(split(old.view(np.uint64))):
        put(waves, index + offset, half, None)


def update_in_order(
    memory: Array, index: Array, function: Function, values: list[Array]
) -> Array:
    """Has each lane update the number at its index, the lanes in order; the old values."""
    width, kind = values[0].itemsize, values[0].dtype
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, len(ordered)))
    turn = np.arange(len(ordered)) - np.repeat(starts, lengths)
    old = np.empty(len(index), kind)
    by_turn = np.argsort(turn, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(turn))]) if len(turn) else [0]
    for start, end in pairwise(bounds):
        lanes = order[by_turn[start:end]]
        before = gather(memory, index[lanes], width).view(kind)
        old[lanes] = before
        after = np.asarray(function(before, *(value[lanes] for value in values)), kind)
        scatter(memory, index[lanes], width, after.view(f"u{width}"))
    return old

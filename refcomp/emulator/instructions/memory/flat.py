"""Addresses that do not name a memory: flat_load..., flat_store..., flat_atomic...

The upper 32 bits of an address select the memory. The shared aperture selects a group's shared
memory, and the private aperture a lane's own. All others select the device's memory. The apertures
begin at `src_shared_base` and `src_private_base`; the lower 32 bits count from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refcomp.emulator.code.assembly import Instruction, Operand
from refcomp.emulator.instructions.lanes import in_lanes
from refcomp.emulator.instructions.memory.anywhere import bind_anywhere
from refcomp.emulator.instructions.memory.atomics import operands_of_update
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    PRIVATE,
    SHARED,
    checked,
    offset_of,
)
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import kind_of_access
from refcomp.emulator.machine.sources import APERTURES, vector_source
from refcomp.emulator.machine.waves import Run, Waves

_SPACES = {"src_shared_base": SHARED, "src_private_base": PRIVATE}
_LOW = np.uint64(0xFFFFFFFF)


def bind_flat(instruction: Instruction) -> Run | None:
    """Bind an access by flat addresses; None for any other instruction."""
    if not instruction.mnemonic.startswith("flat_"):
        return None
    operands = _operands(instruction)
    access = bind_anywhere(instruction, operands.data)
    if access is None:
        return None
    source = vector_source(operands.address, "u64", {}, 0)
    offset = np.uint64(offset_of(instruction))

    def address(waves: Waves) -> Array:
        return np.asarray(source.value(waves) + offset)

    def address_in_aperture(waves: Waves) -> Array:
        return (address(waves) & _LOW).astype(np.uint32)

    usual = access.make(GLOBAL, checked(instruction, [source], address))
    within = checked(instruction, [source], address_in_aperture)
    others = [
        (np.uint64(APERTURES[name] >> 32), access.make(space, within))
        for name, space in _SPACES.items()
    ]

    def run(waves: Waves) -> None:
        upper = address(waves) >> np.uint64(32)
        rest = waves.mask.copy()
        for aperture, one in others:
            inside = rest & (upper == aperture)
            if inside.any():
                rest &= ~inside
                in_lanes(waves, inside, one)
        if rest.any():
            in_lanes(waves, rest, usual)

    return run


@dataclass(frozen=True, slots=True)
class _FlatOperands:
    """The operands of an access, whatever their order."""

    address: Operand
    data: Operand  # what is moved to or from there


def _operands(instruction: Instruction) -> _FlatOperands:
    kind = kind_of_access(instruction.mnemonic)
    if kind.is_atomic:
        address, data = operands_of_update(instruction).sources
        return _FlatOperands(address, data)
    first, second = instruction.operands[:2]
    return (
        _FlatOperands(first, second) if kind.is_store else _FlatOperands(second, first)
    )

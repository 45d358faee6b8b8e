"""Addresses that do not say which memory they are in: flat_load..., flat_store..., flat_atomic...

The upper 32 bits of an address tell: those of the shared aperture mean a group's shared memory,
those of the private aperture a lane's own, all others the device's memory. The apertures are where
`src_shared_base` and `src_private_base` begin; the lower 32 bits then count from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from refcomp.emulator.arrays import Array
from refcomp.emulator.assembly import Instruction
from refcomp.emulator.atomics import bind_update, operands_of_update
from refcomp.emulator.lanes import in_lanes
from refcomp.emulator.memory_access import (
    GLOBAL,
    PRIVATE,
    SHARED,
    Address,
    Run,
    Space,
    bind_load,
    bind_store,
    checked,
    offset_of,
    transfer_of,
)
from refcomp.emulator.sources import APERTURES, vector_index, vector_source

_SPACES = {"src_shared_base": SHARED, "src_private_base": PRIVATE}
_LOW = np.uint64(0xFFFFFFFF)

# An access to a memory, at an address in it.
Make = Callable[[Space, Address], Run]


def bind_flat(instruction: Instruction) -> Run | None:
    """The instruction, ready to run; None when it is no such access."""
    if not instruction.mnemonic.startswith("flat_"):
        return None
    found = _update(instruction) if "_atomic_" in instruction.mnemonic else _transfer(instruction)
    if found is None:
        return None
    operand, make = found
    source, offset = vector_source(operand, "u64", {}, 0), np.uint64(offset_of(instruction))

    def address(waves: Any) -> Array:
        return np.asarray(source.value(waves) + offset)

    usual = make(GLOBAL, checked(instruction, [source], address))
    within = checked(instruction, [source], lambda waves: (address(waves) & _LOW).astype(np.uint32))
    others = [(_upper(name), make(space, within)) for name, space in _SPACES.items()]

    def run(waves: Any) -> None:
        upper, rest = address(waves) >> np.uint64(32), waves.mask.copy()
        for aperture, one in others:
            inside = rest & (upper == aperture)
            if inside.any():
                rest &= ~inside
                in_lanes(waves, inside, one)
        if rest.any():
            in_lanes(waves, rest, usual)

    return run


def _upper(aperture: str) -> Any:
    return np.uint64(APERTURES[aperture] >> 32)


def _transfer(instruction: Instruction) -> tuple[Any, Make] | None:
    transfer, operands = transfer_of(instruction.mnemonic), instruction.operands
    if transfer is None:
        return None
    if transfer.is_store:
        data = operands[1]
        return operands[0], lambda space, a: bind_store(instruction, space, a, transfer, data)
    result = vector_index(operands[0])
    return operands[1], lambda space, a: bind_load(instruction, space, a, transfer, result)


def _update(instruction: Instruction) -> tuple[Any, Make] | None:
    result, (address, data) = operands_of_update(instruction)
    if bind_update(instruction, GLOBAL, lambda waves: 0, data, result) is None:
        return None

    def make(space: Space, place: Address) -> Run:
        found = bind_update(instruction, space, place, data, result)
        assert found is not None
        return found

    return address, make

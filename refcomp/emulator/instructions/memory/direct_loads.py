"""Loads that go to shared memory, past all vector registers (LDS-DMA).

    s_mov_b32 m0, s4
    global_load_lds_dword v[0:1], off offset:16
    global_load_dword v[0:1], off offset:16 lds         the same, as gfx90a names it
    buffer_load_dword v0, s[0:3], 0 offen offset:16 lds

Each active lane writes a word, whatever the size of its load. The word goes to (M0 & 0x3FFFC) +
offset + 4 * lane of its group's memory. So the offset is added to both addresses. Manual: the CDNA3
ISA, section on reading memory directly into LDS.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from refcomp.emulator.code.assembly import NAMED, Instruction, Operand
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    PRIVATE,
    Address,
    Space,
    as_words,
    checked,
    global_address,
    loaded_pieces,
    offset_of,
    private_address,
    transfer_of,
)
from refcomp.emulator.machine.sources import vector_source
from refcomp.emulator.machine.waves import Run, Waves

_NAME = re.compile(r"(global|scratch)_load_(lds_)?\w+$")
_M0 = Operand("m0", "s", NAMED["m0"].first)
_WORD = 4  # bytes
_FIELD = np.uint32(0x3FFFC)  # the bits of M0 that count


def bind_direct_load(instruction: Instruction) -> Run | None:
    """Bind such a load of global or private memory; None for any other instruction."""
    match = _NAME.match(instruction.mnemonic)
    if match is None or not (match[2] or "lds" in instruction.modifiers):
        return None
    operand, base = instruction.operands[:2]
    if match[1] == "global":
        address = global_address(instruction, operand, base)
        return bind_into_shared(instruction, GLOBAL, address)
    return bind_into_shared(
        instruction, PRIVATE, private_address(instruction, operand, base)
    )


def bind_into_shared(instruction: Instruction, space: Space, address: Address) -> Run:
    """Bind a load to shared memory. Raise Unsupported for several words."""
    transfer = transfer_of(instruction.mnemonic.replace("_lds_", "_"))
    if transfer is None or transfer.count > 1 or transfer.place:
        raise not_emulated("this load to shared memory", instruction)
    start = vector_source(_M0, "u32", {}, 0)
    lane = np.arange(instruction.lanes, dtype=np.uint32)
    constant = np.uint32(offset_of(instruction) & 0xFFFFFFFF) + np.uint32(_WORD) * lane
    target = checked(
        instruction, [start], lambda waves: (start.value(waves) & _FIELD) + constant
    )
    # Observers see a store, too.
    store = replace(instruction, mnemonic="ds_write_b32")

    def run(waves: Waves) -> None:
        index, wrong = space.index(waves, address(waves), transfer.width, instruction)
        (piece,) = loaded_pieces(space.bytes_of(waves), index, wrong, transfer)
        words, unknown = as_words(transfer, piece)
        place, outside = waves.shared_index(target(waves), _WORD, store)
        if outside is not None:
            place = place[~outside]
            words = words[~outside]
            unknown = None if unknown is None else unknown[~outside]
        waves.shared.store(place, _WORD, words, unknown)

    return run

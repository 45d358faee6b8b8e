"""Loads of scalar registers: the same for all lanes of a wave, in whole words.

s_load_dwordx4 s[4:7], s[0:1], 0x10
"""

from __future__ import annotations

import re

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import OUT_OF_BOUNDS
from refcomp.emulator.code.not_emulated import not_emulated
from refcomp.emulator.instructions.memory.loads_and_stores import signed_offset
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.memory import BASE
from refcomp.emulator.machine.sources import scalar_source
from refcomp.emulator.machine.waves import Run, Waves

_SCALAR_LOAD = re.compile(r"s_load_dword(?:x(\d+))?$")


def bind_scalar_load(instruction: Instruction) -> Run | None:
    """Bind a load of scalar registers; None for any other instruction."""
    match = _SCALAR_LOAD.match(instruction.mnemonic)
    if match is None:
        return None
    count = int(match[1] or 1)
    result, base, offset = instruction.operands
    start = scalar_source(base, "u64")
    # A constant has a sign, a register has none.
    more = scalar_source(offset, "i64" if offset.file == "c" else "u32")
    constant = signed_offset(instruction)
    watched = start.numbers | more.numbers
    if result.file != "s":
        raise not_emulated("this result of a scalar load", instruction)

    def run(waves: Waves) -> None:
        address = (
            start.value(waves)
            + np.asarray(more.value(waves)).astype(np.uint64)
            + constant
        )
        if waves.dirty and not waves.dirty.isdisjoint(watched):
            undefined = (start.shadow(waves) != 0) | (more.shadow(waves) != 0)
            if undefined.any():
                waves.report_undefined(instruction, "an address", undefined)
        load_scalars(waves, instruction, result.index, address, count)

    return run


def load_scalars(
    waves: Waves, ins: Instruction, result: int, address: Array, count: int
) -> None:
    """Load `count` scalar registers of each wave from its address, u64 [wave]."""
    arena = waves.around.arena
    aligned = address & ~np.uint64(3)
    wrong = arena.outside(aligned, 4 * count, is_load=True)
    index = (aligned - np.uint64(BASE)).view(np.int64)
    if wrong is not None:
        first = int(aligned[np.flatnonzero(wrong)[0]])
        waves.report(OUT_OF_BOUNDS, ins, arena.describe(first, 4 * count), wrong)
        index = np.where(wrong, 0, index)
    if waves.around.observers:
        asked = (address - np.uint64(BASE)).view(np.int64)
        waves.show_scalar_access(ins, 4 * count, asked, wrong)
    for number in range(count):
        values = arena.bytes.load(index + 4 * number, 4)
        if wrong is not None:
            values = np.where(wrong, np.uint32(0), values)
        undefined = arena.bytes.load_undefined(index + 4 * number, 4)
        waves.write_scalar(result + number, "u32", values)
        if undefined is None or wrong is not None:
            waves.define((result + number,))
        else:
            waves.set_shadow(result + number, undefined)

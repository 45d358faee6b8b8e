"""Instructions on clusters of blocks, and on cache policies. Each cluster has one block here.

mapa.shared::cluster.u32 %r1, %r2, 0;       createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0;

An address of the block itself is the same in the cluster. A cache policy changes no result.

Source: NVIDIA, "Parallel Thread Execution ISA", sections "mapa", "getctarank" and "createpolicy".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from refcomp.emulator.ptx.execution.accesses import Names, bind_address_move
from refcomp.emulator.ptx.execution.operands import (
    NumberedRegisters,
    Run,
    result,
    source,
)
from refcomp.emulator.ptx.instructions.types import bits_of, unsigned_of
from refcomp.emulator.ptx.text.module import PtxInstruction


def _bind_own_address(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    moved = bind_address_move(instruction, registers, names)
    if moved is not None:
        return moved
    kind = instruction.modifiers[-1]
    address = source(instruction, instruction.operands[1], kind, registers)
    write = result(instruction, instruction.operands[0], kind, registers)
    return lambda threads: write(threads, address.value(threads), None)


def _bind_zero(
    instruction: PtxInstruction, registers: NumberedRegisters, names: Names
) -> Run:
    # The type of getctarank is that of the address. Its result has 32 bits.
    is_rank = instruction.opcode == "getctarank"
    kind = f"u{32 if is_rank else bits_of(instruction.modifiers[-1])}"
    write = result(instruction, instruction.operands[0], kind, registers)
    zero = np.zeros((), unsigned_of(kind))
    return lambda threads: write(threads, zero, None)


CLUSTERS: dict[str, Callable[[PtxInstruction, NumberedRegisters, Names], Run]] = {
    "mapa": _bind_own_address,
    "getctarank": _bind_zero,
    "createpolicy": _bind_zero,
}

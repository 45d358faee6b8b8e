"""Accesses whose memory is known only when they run: flat_... and buffer_...

The name of an instruction says what it moves or updates. The memory and the addresses in it are
arguments of `make`. So an instruction whose lanes are in several memories is made once for each
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from refcomp.emulator.code.assembly import Instruction, Operand, RegisterRange
from refcomp.emulator.instructions.memory.atomics import bind_update, operands_of_update
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    Address,
    Space,
    Transfer,
    bind_load,
    bind_store,
    transfer_of,
)
from refcomp.emulator.machine.sources import vector_index
from refcomp.emulator.machine.waves import Run


@dataclass(frozen=True, slots=True)
class Anywhere:
    """An access that is not bound to a memory yet."""

    make: Callable[[Space, Address], Run]
    size: int  # bytes a lane
    written: RegisterRange | None  # vector registers that it fills whole
    # Accesses that do the same word by word, of an access of several words.
    words: tuple[Anywhere, ...] = ()


def bind_anywhere(instruction: Instruction, data: Operand) -> Anywhere | None:
    """Return a load to `data`, a store or an update by it; None for any other instruction."""
    if "_atomic_" in instruction.mnemonic:
        return _update(instruction, data)
    transfer = transfer_of(instruction.mnemonic)
    if transfer is None:
        return None
    whole = _transfer(instruction, transfer, data)
    if transfer.count == 1:
        return whole
    one = replace(transfer, count=1)
    words = [
        replace(data, index=data.index + n, count=1) for n in range(transfer.count)
    ]
    return replace(
        whole, words=tuple(_transfer(instruction, one, word) for word in words)
    )


def _transfer(instruction: Instruction, transfer: Transfer, data: Operand) -> Anywhere:
    size = transfer.width * transfer.count
    if transfer.is_store:
        return Anywhere(
            lambda space, address: bind_store(
                instruction, space, address, transfer, data
            ),
            size,
            None,
        )
    result = vector_index(data)
    return Anywhere(
        lambda space, address: bind_load(instruction, space, address, transfer, result),
        size,
        None if transfer.place else RegisterRange(result, transfer.count),
    )


def _update(instruction: Instruction, data: Operand) -> Anywhere | None:
    result = operands_of_update(instruction).result
    if bind_update(instruction, GLOBAL, lambda waves: waves.mask, data, result) is None:
        return None

    def make(space: Space, address: Address) -> Run:
        found = bind_update(instruction, space, address, data, result)
        assert found is not None
        return found

    count = 2 if instruction.mnemonic.endswith(("_x2", "_f64")) else 1
    written = None if result is None else RegisterRange(vector_index(result), count)
    return Anywhere(make, 4 * count, written)

"""Accesses whose memory is known only when they run: flat_... and buffer_...

What an instruction moves or updates stands in its name; which memory, and where in it, is given to
`make`, so that an instruction whose lanes are in several memories is made once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from refcomp.emulator.code.assembly import Instruction, Operand, RegisterRange
from refcomp.emulator.instructions.memory.atomics import bind_update, operands_of_update
from refcomp.emulator.instructions.memory.loads_and_stores import (
    GLOBAL,
    Address,
    Run,
    Space,
    Transfer,
    bind_load,
    bind_store,
    transfer_of,
)
from refcomp.emulator.machine.sources import vector_index


@dataclass(frozen=True, slots=True)
class Anywhere:
    """`make` has the access go to a memory, at an address in it. It is of `size` bytes a lane, and
    fills the vector registers `written`, if it fills any whole. `words` are accesses that do the
    same word by word, where it is of several."""

    make: Callable[[Space, Address], Run]
    size: int
    written: RegisterRange | None
    words: tuple[Anywhere, ...] = ()


def bind_anywhere(instruction: Instruction, data: Operand) -> Anywhere | None:
    """A load to `data`, a store or an update by it; None for any other instruction."""
    if "_atomic_" in instruction.mnemonic:
        return _update(instruction, data)
    transfer = transfer_of(instruction.mnemonic)
    if transfer is None:
        return None
    words = range(transfer.count if transfer.count > 1 else 0)
    one = replace(transfer, count=1)
    return replace(
        _transfer(instruction, transfer, data),
        words=tuple(
            _transfer(instruction, one, replace(data, index=data.index + n, count=1))
            for n in words
        ),
    )


def _transfer(instruction: Instruction, transfer: Transfer, data: Operand) -> Anywhere:
    size = transfer.width * transfer.count
    if transfer.is_store:
        return Anywhere(
            lambda s, a: bind_store(instruction, s, a, transfer, data), size, None
        )
    result = vector_index(data)
    return Anywhere(
        lambda s, a: bind_load(instruction, s, a, transfer, result),
        size,
        None if transfer.place else RegisterRange(result, transfer.count),
    )


def _update(instruction: Instruction, data: Operand) -> Anywhere | None:
    result = operands_of_update(instruction).result
    if bind_update(instruction, GLOBAL, lambda waves: 0, data, result) is None:
        return None

    def make(space: Space, place: Address) -> Run:
        found = bind_update(instruction, space, place, data, result)
        assert found is not None
        return found

    count = 2 if instruction.mnemonic.endswith(("_x2", "_f64")) else 1
    written = None if result is None else RegisterRange(vector_index(result), count)
    return Anywhere(make, 4 * count, written)

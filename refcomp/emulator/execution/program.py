"""A code object's instructions, made ready to run block by block, when a wave first comes there.

A block begins where something may jump to, and ends with what may jump, wait or end. Refuses, by
Unsupported, an instruction that is not known, with its encoding and its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, Assembly, Instruction
from refcomp.emulator.code.modifiers import modifiers_of
from refcomp.emulator.generations.generation import GFX942, Generation
from refcomp.emulator.instructions.indexing import (
    bind_index,
    bind_move,
    bind_within,
    positions_after,
    refuse_jump,
)
from refcomp.emulator.instructions.matrix.products import bind_matrix
from refcomp.emulator.instructions.memory.atomics import bind_atomic
from refcomp.emulator.instructions.memory.buffers import (
    bind_buffer,
    bind_buffer_scalars,
)
from refcomp.emulator.instructions.memory.direct_loads import bind_direct_load
from refcomp.emulator.instructions.memory.flat import bind_flat
from refcomp.emulator.instructions.memory.loads_and_stores import bind_memory, bind_two
from refcomp.emulator.instructions.memory.scalar_loads import bind_scalar_load
from refcomp.emulator.instructions.mode_register import bind_mode, writes_mode
from refcomp.emulator.instructions.scalar_binding import bind_save_exec, bind_scalar
from refcomp.emulator.instructions.vector.binding import bind_packed, bind_vector
from refcomp.emulator.instructions.vector.comparisons import bind_choice
from refcomp.emulator.instructions.vector.cross_lane import (
    bind_bpermute,
    bind_count_below,
    bind_permute,
    bind_readfirstlane,
    bind_readlane,
    bind_swap,
    bind_swizzle,
    bind_writelane,
)
from refcomp.emulator.instructions.vector.dots import bind_dot
from refcomp.emulator.instructions.vector.mixed import bind_mixed
from refcomp.emulator.instructions.vector.pairs import (
    BoundInstruction,
    half_of_pair,
    in_parallel,
)
from refcomp.emulator.machine.observation import tell_of
from refcomp.emulator.machine.registers import RegisterCounts
from refcomp.foundation.errors import Unsupported

Run = Callable[[Any], None]

NO_REGISTERS = RegisterCounts(0, 0)
# What ends a block.
CONDITIONS = ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
ENDS = (
    "s_branch",
    *(f"s_cbranch_{condition}" for condition in CONDITIONS),
    "s_setpc_b64",
    "s_swappc_b64",
    "s_barrier",
    "s_endpgm",
    "s_trap",
)
_SPECIAL: dict[str, Callable[[Instruction], Run]] = {
    "v_readlane_b32": bind_readlane,
    "v_readfirstlane_b32": bind_readfirstlane,
    "v_writelane_b32": bind_writelane,
    "v_mbcnt_lo_u32_b32": bind_count_below,
    "v_mbcnt_hi_u32_b32": bind_count_below,
    "ds_bpermute_b32": bind_bpermute,
    "ds_permute_b32": bind_permute,
    "ds_swizzle_b32": bind_swizzle,
    "v_swap_b32": bind_swap,
}
_BY_PATTERN = (
    bind_direct_load,
    bind_memory,
    bind_two,
    bind_flat,
    bind_scalar_load,
    bind_atomic,
    bind_mixed,
    bind_dot,
    bind_index,
    bind_buffer_scalars,
    bind_mode,
)


def known_mnemonics(of: Generation = GFX942) -> tuple[str, ...]:
    """All instructions with a row in a table; loads, stores and updates follow patterns."""
    tables = (
        of.vector,
        of.packed,
        of.scalar,
        of.save_exec,
        of.special,
        of.idle,
        _SPECIAL,
        ENDS,
    )
    renamed = of.dialect.renamed
    return tuple(sorted({name for table in (*tables, renamed) for name in table}))


def bind(instruction: Instruction, of: Generation = GFX942) -> Run | None:
    """The instruction, ready to run; None when it does nothing. Unsupported."""
    try:
        return _bind(instruction, of)
    except (ValueError, LookupError) as error:  # of damaged code
        told = f"such operands of {instruction.mnemonic} are not known"
        raise Unsupported(told, where=str(instruction)) from error


def _bind(instruction: Instruction, of: Generation) -> Run | None:
    if instruction.second is not None:
        return _bind_pair(instruction, instruction.second, of)
    name = instruction.mnemonic
    if name in of.idle:
        return None
    if name in of.special:
        return of.special[name](instruction)
    if name in of.vector:
        return bind_vector(instruction, of.vector[name])
    if name in of.packed:
        return bind_packed(instruction, of.packed[name])
    if name in of.scalar:
        return bind_scalar(instruction, of.scalar[name])
    if name in of.save_exec:
        return bind_save_exec(instruction, of.save_exec[name])
    if name in _SPECIAL:
        return _SPECIAL[name](instruction)
    if name == "s_getpc_b64":
        return _bind_getpc(instruction)
    for bind_one in _BY_PATTERN:
        if (run := bind_one(instruction)) is not None:
            return run
    if (run := bind_buffer(instruction, is_plain=of.has_plain_buffers)) is not None:
        return run
    if (
        run := bind_matrix(instruction, has_denormals=of.has_matrix_denormals)
    ) is not None:
        return run
    if (
        run := bind_choice(instruction, of.vector) or bind_move(instruction, _for(of))
    ) is not None:
        return run
    return _refuse(instruction)


def _bind_pair(first: Instruction, second: Instruction, of: Generation) -> Run:
    second = replace(second, mode=first.mode)
    runs = [bind(half_of_pair(one), of) for one in (first, second)]
    assert runs[0] is not None and runs[1] is not None
    return in_parallel(
        BoundInstruction(first, runs[0]), BoundInstruction(second, runs[1])
    )


def _for(of: Generation) -> Callable[[Instruction], Run | None]:
    return lambda instruction: bind(instruction, of)


def _ends_block(instruction: Instruction) -> bool:
    return instruction.mnemonic in ENDS or writes_mode(instruction)


def _bind_getpc(instruction: Instruction) -> Run:
    result, after = (
        instruction.operands[0].index,
        instruction.address + instruction.size,
    )

    def run(waves: Any) -> None:
        address = np.full(waves.count(), waves.around.base + after, np.uint64)
        waves.write_scalar(result, "u64", address)
        waves.define((result, result + 1))

    return run


def _refuse(instruction: Instruction) -> Run:
    raise Unsupported(
        f"the emulator does not know the instruction {instruction.mnemonic}",
        where=str(instruction),
        remedy="run the kernel on a GPU, or add a row to the tables of refcomp/emulator",
    )


class ExecutedForm(NamedTuple):
    """An instruction as it ran, for who asks which of them were ever compared with a reference. A
    tuple, since sets of them are joined."""

    # As the GPU's manual has it.
    mnemonic: str
    # Names of its modifiers.
    modifiers: frozenset[str]


class _BlockKey(NamedTuple):
    """A block as it is bound. A tuple, since it is looked up before each block that runs."""

    # Number of the first instruction.
    start: int
    is_observed: bool
    # How the waves round: their MODE.
    mode: int


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """`runs` one after the other, then `end`, if the block does not simply run on to `next`. They
    name none but the first of the vector registers and accumulators, as many as `registers`."""

    runs: tuple[Run, ...]
    count: int
    end: Instruction | None
    next: int
    target: int
    registers: RegisterCounts = NO_REGISTERS


class DecodedProgram:
    """The blocks of a code object, for waves of as many lanes as `assembly` is read for."""

    def __init__(self, assembly: Assembly, generation: Generation = GFX942) -> None:
        self.assembly, self.generation = assembly, generation
        self._blocks: dict[_BlockKey, BasicBlock] = {}
        self._starts = set(self._targets())
        self.executed: set[ExecutedForm] = set()

    def _targets(self) -> Iterator[int]:
        for number in range(len(self.assembly)):
            name = self.assembly.mnemonic(number)
            if name == "s_branch" or name.startswith("s_cbranch"):
                # What is no instruction is printed as one, too, and leads anywhere.
                found = self._found(self.assembly.instruction(number))
                if found is not None:
                    yield found

    def _target(self, branch: Instruction) -> int:
        """Where a branch leads to. Unsupported."""
        found = self._found(branch)
        if found is None:
            raise Unsupported(
                "no instruction begins where a branch leads to", where=str(branch)
            )
        return found

    def _found(self, branch: Instruction) -> int | None:
        try:
            words = int(branch.operands[0].text, 0) & 0xFFFF
        except (ValueError, IndexError):
            return None
        words -= (words & 0x8000) << 1
        return self.assembly.number_at(branch.address + 4 + 4 * words)

    def _instruction(self, number: int, mode: int) -> Instruction:
        found = self.assembly.instruction(number)
        return found if mode == IEEE_MODE else replace(found, mode=mode)

    def block(
        self, number: int, is_observed: bool = False, mode: int = IEEE_MODE
    ) -> BasicBlock:
        """The block that begins with an instruction, for waves that round as `mode` says; observed,
        it tells of all that it runs."""
        key = _BlockKey(number, is_observed, mode)
        if key not in self._blocks:
            self._blocks[key] = self._make(key)
        return self._blocks[key]

    def _make(self, key: _BlockKey) -> BasicBlock:
        start, is_observed, mode = key
        runs: list[Run] = []
        number, indexed, registers = start, frozenset[int](), NO_REGISTERS
        while number < len(self.assembly):
            instruction = self._instruction(number, mode)
            both = (instruction, instruction.second)
            self.executed |= {
                ExecutedForm(one.printed, modifiers_of(one)) for one in both if one
            }
            registers = _registers_of(instruction, registers)
            if is_observed:
                runs.append(tell_of(instruction))
            indexed = positions_after(instruction, indexed)
            if indexed and (_ends_block(instruction) or number + 1 in self._starts):
                refuse_jump(instruction)
            if instruction.mnemonic in ENDS:
                is_branch = "branch" in instruction.mnemonic
                target = self._target(instruction) if is_branch else -1
                count = number + 1 - start
                return BasicBlock(
                    tuple(runs), count, instruction, number + 1, target, registers
                )
            if (
                run := bind_within(instruction, indexed, _for(self.generation))
            ) is not None:
                runs.append(run)
            number += 1
            if number in self._starts or writes_mode(instruction):
                return BasicBlock(
                    tuple(runs), number - start, None, number, -1, registers
                )
        raise Unsupported(
            "the code ends without s_endpgm", where=f"instruction {start}"
        )


def _registers_of(instruction: Instruction, least: RegisterCounts) -> RegisterCounts:
    """How many registers there must be for an instruction, and `least`."""
    second = instruction.second
    operands = (*instruction.operands, *(second.operands if second else ()))
    ends = {
        file: [o.index + o.count for o in operands if o.file == file] for file in "va"
    }
    return RegisterCounts(
        max(least.vectors, *ends["v"], 0), max(least.accumulators, *ends["a"], 0)
    )

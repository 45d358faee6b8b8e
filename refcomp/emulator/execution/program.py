"""The instructions of a code object, bound block by block when a wave first reaches them.

A block begins where a branch may lead, and ends with an instruction that may jump, wait or end.
Refuses, by Unsupported, unknown instructions, with their encoding and their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from refcomp.emulator.code.assembly import IEEE_MODE, Assembly, Instruction
from refcomp.emulator.code.modifiers import modifiers_of
from refcomp.emulator.code.not_emulated import not_emulated
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
from refcomp.emulator.machine.observation import show_instruction
from refcomp.emulator.machine.registers import RegisterCounts
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.translation.compilation import HostTools
from refcomp.emulator.translation.engine import Translator
from refcomp.emulator.translation.units import BoundRun
from refcomp.foundation.errors import Unsupported

Run = Callable[[Waves], None]

NO_REGISTERS = RegisterCounts(0, 0)
# Conditions of branches.
CONDITIONS = ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
# Instructions that end a block.
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
    """Return the instructions that are in a table.

    Loads, stores and updates are not: they are matched by patterns.
    """
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
    """Return a function that runs an instruction on waves; None if it does nothing.

    Raises:
        Unsupported: the instruction, or one of its operands, is not known.
    """
    try:
        return _bind(instruction, of)
    except (ValueError, LookupError) as error:  # of damaged code
        raise not_emulated(
            f"these operands of {instruction.mnemonic}", instruction
        ) from error


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
    run = (
        bind_buffer(instruction, is_plain=of.has_plain_buffers)
        or bind_matrix(instruction, has_denormals=of.has_matrix_denormals)
        or bind_choice(instruction, of.vector)
        or bind_move(instruction, _binder(of))
    )
    if run is not None:
        return run
    raise not_emulated(f"the instruction {name}", instruction)


def _bind_pair(first: Instruction, second: Instruction, of: Generation) -> Run:
    second = replace(second, mode=first.mode)
    runs = [bind(half_of_pair(one), of) for one in (first, second)]
    assert runs[0] is not None and runs[1] is not None
    return in_parallel(
        BoundInstruction(first, runs[0]), BoundInstruction(second, runs[1])
    )


def _binder(of: Generation) -> Callable[[Instruction], Run | None]:
    return lambda instruction: bind(instruction, of)


def _bind_getpc(instruction: Instruction) -> Run:
    result = instruction.operands[0].index
    after = instruction.address + instruction.size

    def run(waves: Waves) -> None:
        address = np.full(waves.count(), waves.around.base + after, np.uint64)
        waves.write_scalar(result, "u64", address)
        waves.define((result, result + 1))

    return run


class ExecutedForm(NamedTuple):
    """An instruction as it ran, to look up in the ledger. A tuple: sets of them are joined."""

    mnemonic: str  # as the manual of the GPU spells it
    modifiers: frozenset[str]  # names


class _BlockKey(NamedTuple):
    """The key of a bound block. A tuple: it is looked up before each block that runs."""

    start: int  # number of the first instruction
    is_observed: bool
    mode: int  # MODE of the waves: how they round


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions that run one after the other."""

    runs: tuple[Run, ...]
    count: int  # of instructions
    end: Instruction | None  # what ends the block; None if it continues at `next`
    next: int  # number of the instruction behind the block
    target: int  # number of the instruction to which `end` may branch, or -1
    registers: RegisterCounts = NO_REGISTERS  # that the waves must have


class DecodedProgram:
    """The blocks of a code object, for waves of `assembly.lanes` lanes."""

    def __init__(
        self,
        assembly: Assembly,
        generation: Generation = GFX942,
        tools: HostTools | None = None,  # None: hot blocks are not translated
    ) -> None:
        self.assembly = assembly
        self.generation = generation
        self._translator = (
            None if tools is None else Translator(tools, generation, assembly.lanes)
        )
        self._blocks: dict[_BlockKey, BasicBlock] = {}
        self._starts = set(self._targets())
        self.executed: set[ExecutedForm] = set()

    def _targets(self) -> Iterator[int]:
        for number in range(len(self.assembly)):
            name = self.assembly.mnemonic(number)
            if name == "s_branch" or name.startswith("s_cbranch"):
                # Data are printed as instructions too, and such a branch may lead anywhere.
                found = self._found(self.assembly.instruction(number))
                if found is not None:
                    yield found

    def _target(self, branch: Instruction) -> int:
        found = self._found(branch)
        if found is None:
            raise Unsupported(
                "a branch leads to a place where no instruction begins",
                where=str(branch),
                remedy="the code object is damaged: compile it again",
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
        """Return the block that begins with instruction `number`. Unsupported.

        Args:
            number: of the first instruction.
            is_observed: observers see each instruction of the block.
            mode: MODE of the waves.
        """
        key = _BlockKey(number, is_observed, mode)
        if key not in self._blocks:
            self._blocks[key] = self._make(key)
        return self._blocks[key]

    def _make(self, key: _BlockKey) -> BasicBlock:
        start = key.start
        runs: list[Run] = []
        bound: list[BoundRun] = []
        number = start
        indexed = frozenset[int]()  # operands that M0 indexes, see `indexing`
        registers = NO_REGISTERS
        while number < len(self.assembly):
            instruction = self._instruction(number, key.mode)
            for one in (instruction, instruction.second):
                if one is not None:
                    self.executed.add(ExecutedForm(one.printed, modifiers_of(one)))
            registers = _registers_of(instruction, registers)
            if key.is_observed:
                runs.append(show_instruction(instruction))
            indexed = positions_after(instruction, indexed)
            ends_block = instruction.mnemonic in ENDS or writes_mode(instruction)
            if indexed and (ends_block or number + 1 in self._starts):
                refuse_jump(instruction)
            if instruction.mnemonic in ENDS:
                is_branch = "branch" in instruction.mnemonic
                target = self._target(instruction) if is_branch else -1
                count = number + 1 - start
                return BasicBlock(
                    self._translated(key, runs, bound),
                    count,
                    instruction,
                    number + 1,
                    target,
                    registers,
                )
            if (
                run := bind_within(instruction, indexed, _binder(self.generation))
            ) is not None:
                runs.append(run)
                bound.append(BoundRun(instruction, run, is_indexed=bool(indexed)))
            number += 1
            if number in self._starts or writes_mode(instruction):
                return BasicBlock(
                    self._translated(key, runs, bound),
                    number - start,
                    None,
                    number,
                    -1,
                    registers,
                )
        raise Unsupported(
            "the code ends without s_endpgm",
            where=f"instruction {start}",
            remedy="the code object is damaged: compile it again",
        )

    def _translated(
        self, key: _BlockKey, runs: Sequence[Run], bound: Sequence[BoundRun]
    ) -> tuple[Run, ...]:
        """Return what runs a block. Observers see each instruction, so it is not translated."""
        if self._translator is None or key.is_observed or not bound:
            return tuple(runs)
        return (self._translator.block(bound),)


def _registers_of(instruction: Instruction, least: RegisterCounts) -> RegisterCounts:
    """Return how many registers there must be for an instruction, at least `least`."""
    vectors = least.vectors
    accumulators = least.accumulators
    for one in (instruction, instruction.second):
        for operand in one.operands if one else ():
            if operand.file == "v":
                vectors = max(vectors, operand.index + operand.count)
            elif operand.file == "a":
                accumulators = max(accumulators, operand.index + operand.count)
    return RegisterCounts(vectors, accumulators)

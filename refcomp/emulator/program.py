"""A code object's instructions, made ready to run block by block, when a wave first comes there.

A block begins where something may jump to, and ends with what may jump, wait or end. Refuses, by
Unsupported, an instruction that is not known, with its encoding and its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from refcomp.emulator.assembly import Assembly, Instruction
from refcomp.emulator.atomics import bind_atomic
from refcomp.emulator.cross_lane import (
    bind_bpermute,
    bind_count_below,
    bind_readfirstlane,
    bind_readlane,
    bind_swap,
    bind_swizzle,
    bind_writelane,
)
from refcomp.emulator.dpp import is_dpp, with_dpp
from refcomp.emulator.matrix import bind_matrix
from refcomp.emulator.memory_access import bind_memory, bind_scalar_load, bind_two
from refcomp.emulator.observation import tell_of
from refcomp.emulator.packed import PACKED
from refcomp.emulator.scalar import SAVE_EXEC, SCALAR
from refcomp.emulator.scalar_binding import bind_save_exec, bind_scalar
from refcomp.emulator.vector import bind_packed, bind_vector
from refcomp.emulator.vector_conversions import VECTOR_CONVERSIONS
from refcomp.emulator.vector_floats import VECTOR_FLOATS
from refcomp.emulator.vector_integers import VECTOR_INTEGERS
from refcomp.errors import Unsupported

Run = Callable[[Any], None]

VECTOR = {**VECTOR_FLOATS, **VECTOR_INTEGERS, **VECTOR_CONVERSIONS}
# What ends a block.
CONDITIONS = ("scc0", "scc1", "vccz", "vccnz", "execz", "execnz")
ENDS = (
    *("s_branch", *(f"s_cbranch_{condition}" for condition in CONDITIONS)),
    *("s_setpc_b64", "s_swappc_b64", "s_barrier", "s_endpgm", "s_trap"),
)
# What has no effect here: results are there at once, and time is not told.
IDLE = (
    *("s_nop", "s_waitcnt", "s_sleep", "s_setprio", "s_inst_prefetch", "s_dcache_wb", "s_wakeup"),
    *("buffer_wbl2", "buffer_inv", "s_dcache_inv", "s_icache_inv", "s_code_end", "v_nop"),
    *("s_waitcnt_vscnt", "s_sethalt", "s_clause"),
)
_SPECIAL: dict[str, Callable[[Instruction], Run]] = {
    "v_readlane_b32": bind_readlane,
    "v_readfirstlane_b32": bind_readfirstlane,
    "v_writelane_b32": bind_writelane,
    "v_mbcnt_lo_u32_b32": bind_count_below,
    "v_mbcnt_hi_u32_b32": bind_count_below,
    "ds_bpermute_b32": bind_bpermute,
    "ds_swizzle_b32": bind_swizzle,
    "v_swap_b32": bind_swap,
}
_SAME = {"v_accvgpr_read_b32": "v_mov_b32", "v_accvgpr_write_b32": "v_mov_b32"}
_SAME |= {"v_accvgpr_mov_b32": "v_mov_b32"}
_BY_PATTERN = (bind_memory, bind_two, bind_scalar_load, bind_atomic, bind_matrix)


def known_mnemonics() -> tuple[str, ...]:
    """All instructions with a row in a table; loads, stores and updates follow patterns."""
    return tuple(sorted({*VECTOR, *PACKED, *SCALAR, *SAVE_EXEC, *_SPECIAL, *_SAME, *IDLE, *ENDS}))


def bind(instruction: Instruction) -> Run | None:
    """The instruction, ready to run; None when it does nothing. Unsupported."""
    name = _SAME.get(instruction.mnemonic, instruction.mnemonic)
    if name in IDLE:
        return None
    if name in VECTOR:
        return _bind_vector(instruction, name)
    if name in PACKED:
        return bind_packed(instruction, *PACKED[name])
    if name in SCALAR:
        return bind_scalar(instruction, SCALAR[name])
    if name in SAVE_EXEC:
        return bind_save_exec(instruction, SAVE_EXEC[name])
    if name in _SPECIAL:
        return _SPECIAL[name](instruction)
    if name == "s_getpc_b64":
        return _bind_getpc(instruction)
    for bind_one in _BY_PATTERN:
        if (run := bind_one(instruction)) is not None:
            return run
    return None if _is_ieee_mode(instruction) else _refuse(instruction)


def _bind_vector(instruction: Instruction, name: str) -> Run:
    run = bind_vector(instruction, VECTOR[name])
    return with_dpp(run, instruction) if is_dpp(instruction) else run


def _bind_getpc(instruction: Instruction) -> Run:
    result, after = instruction.operands[0].index, instruction.address + instruction.size

    def run(waves: Any) -> None:
        address = np.full(waves.count(), waves.around.base + after, np.uint64)
        waves.write_scalar(result, "u64", address)
        waves.define((result, result + 1))

    return run


def _is_ieee_mode(instruction: Instruction) -> bool:
    """Whether this sets denormals of f32 to what they are here: kept."""
    texts = [operand.text for operand in instruction.operands]
    return instruction.mnemonic == "s_setreg_imm32_b32" and texts == [
        "hwreg(HW_REG_MODE, 4, 2)",
        "3",
    ]


def _refuse(instruction: Instruction) -> Run:
    raise Unsupported(
        f"the emulator does not know the instruction {instruction.mnemonic}",
        where=str(instruction),
        remedy="run the kernel on a GPU, or add a row to the tables of refcomp/emulator",
    )


@dataclass(frozen=True, slots=True)
class Block:
    """`runs` one after the other, then `end`, if the block does not simply run on to `next`."""

    runs: tuple[Run, ...]
    count: int
    end: Instruction | None
    next: int
    target: int


class Program:
    """The blocks of a code object."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self._blocks: dict[tuple[int, bool], Block] = {}
        self._starts = set(self._targets())
        self.executed: set[str] = set()

    def _targets(self) -> Iterator[int]:
        for number in range(len(self.assembly)):
            name = self.assembly.mnemonic(number)
            if name == "s_branch" or name.startswith("s_cbranch"):
                yield self._target(self.assembly.instruction(number))

    def _target(self, branch: Instruction) -> int:
        """Where a branch leads to."""
        words = int(branch.operands[0].text, 0) & 0xFFFF
        words -= (words & 0x8000) << 1
        return self._number(branch.address + 4 + 4 * words, str(branch))

    def _number(self, address: int, where: str) -> int:
        found = self.assembly.number_at(address)
        if found is None:
            raise Unsupported(f"no instruction begins at {address:#x}", where=where)
        return found

    def block(self, number: int, is_observed: bool = False) -> Block:
        """The block that begins with an instruction; observed, it tells of all that it runs."""
        key = number, is_observed
        if key not in self._blocks:
            self._blocks[key] = self._make(number, is_observed)
        return self._blocks[key]

    def _make(self, start: int, is_observed: bool) -> Block:
        runs: list[Run] = []
        number = start
        while number < len(self.assembly):
            instruction = self.assembly.instruction(number)
            self.executed.add(instruction.mnemonic)
            if is_observed:
                runs.append(tell_of(instruction))
            if instruction.mnemonic in ENDS:
                is_branch = "branch" in instruction.mnemonic
                target = self._target(instruction) if is_branch else -1
                return Block(tuple(runs), number + 1 - start, instruction, number + 1, target)
            if (run := bind(instruction)) is not None:
                runs.append(run)
            number += 1
            if number in self._starts:
                return Block(tuple(runs), number - start, None, number, -1)
        raise Unsupported("the code ends without s_endpgm", where=f"instruction {start}")

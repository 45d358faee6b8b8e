"""Instructions as llvm-objdump prints them, run one by one on waves whose registers a test sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import Assembly, Instruction, read_assembly
from refcomp.emulator.code.findings import Finding
from refcomp.emulator.execution.execute import Execution
from refcomp.emulator.execution.program import DecodedProgram, bind
from refcomp.emulator.generations.generation import GFX942, Generation
from refcomp.emulator.limits import Limits, Watchdog
from refcomp.emulator.machine.memory import Allocation, Arena
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.machine.waves import Surroundings, Waves

LANE = np.arange(64)
_numbers = count()  # findings are told apart by them


def assembly(*lines: str) -> Assembly:
    """Instructions of 4 bytes each, from address 0 on; `NAME:` begins a function."""
    text, address = [], 0
    for line in lines:
        if line.endswith(":"):
            text.append(f"{address:016x} <{line[:-1]}>:")
        else:
            text.append(f"\t{line:50} // {address:012X}: 00000000")
            address += 4
    return read_assembly("\n".join(text))


def instruction(line: str, of: Generation = GFX942, lanes: int = 64) -> Instruction:
    """One instruction, as it is printed for a GPU and bound for waves of so many lanes."""
    text = f"\t{line:50} // {0:012X}: 00000000"
    return read_assembly(text, of.dialect, lanes).instruction(0)


def make_waves(
    count: int = 1,
    *,
    groups: int = 1,
    watched: bool = True,
    shared: int = 0,
    private: int = 0,
    arena: Arena | None = None,
    existing: Any = None,
    code: Assembly | None = None,
    vectors: int = 16,
    unused: slice = slice(0, 0),
    observers: tuple[Observer, ...] = (),
    block: tuple[int, int, int] = (64, 1, 1),
    lanes: int = 64,
    **registers: Any,
) -> Waves:
    """Waves with all lanes active, and no register written but those that are given.

    `v1=` takes what `put` takes, and `s4=` a number of 32 bits.
    """
    around = Surroundings(
        arena=arena or Arena(1 << 16, is_watched=watched),
        assembly=code or assembly("begin:", "s_endpgm"),
        base=0,
        kernel="snippet",
        block=block,
        shared_bytes=shared,
        private_bytes=private,
        is_watched=watched,
        observers=observers,
    )
    exist = np.ones((count, lanes), np.bool_) if existing is None else existing
    ids = np.stack([np.arange(groups), np.zeros(groups, int), np.zeros(groups, int)], axis=1)
    waves = Waves(around, vectors, exist, ids, unused)
    waves.initialise_mask(exist)
    for name, value in registers.items():
        set_register = {"v": put, "s": set_scalar}[name[0]]
        set_register(waves, int(name[1:]), value)
    return waves


def filled_memory(
    content: bytes, size: int = 0, *, watched: bool = True
) -> tuple[Arena, Allocation]:
    """Memory of a GPU, and a piece of it, A, that begins with these bytes."""
    arena = Arena(1 << 16, is_watched=watched)
    place = arena.allocate(size or len(content), "A")
    assert place is not None
    arena.write(place.address, content)
    return arena, place


def two_halves(low: float, high: float) -> np.uint32:
    """Two numbers of 16 bits in a register."""
    return np.uint32(np.array([low, high], np.float16).view(np.uint32)[0])


def put(waves: Waves, index: int, values: Any) -> None:
    """Sets a vector register, or two for 64 bits; one row for each wave, or one for all."""
    values = np.asarray(values)
    shape = waves.waves, waves.lanes
    if values.dtype.itemsize == 8:
        bits = values.view(np.uint64)
        waves.initialise_vector(index + 1, np.broadcast_to(bits >> np.uint64(32), shape))
        values = (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    unsigned = values.view(f"u{values.dtype.itemsize}").astype(np.uint32)
    waves.initialise_vector(index, np.broadcast_to(unsigned, shape))


def set_scalar(waves: Waves, index: int, value: int, count: int = 1) -> None:
    for number in range(count):
        waves.initialise_scalar(index + number, np.uint32(value >> (32 * number) & 0xFFFFFFFF))


def set_mask(waves: Waves, mask: Any) -> None:
    """EXEC of all waves: a bool for each lane."""
    waves.initialise_mask(np.broadcast_to(np.asarray(mask, np.bool_), (waves.waves, waves.lanes)))


def run(waves: Waves, *lines: str, of: Generation = GFX942) -> Waves:
    """Runs instructions of a GPU one after the other in all waves."""
    with np.errstate(all="ignore"):
        for line in lines:
            read = replace(instruction(line, of, waves.lanes), number=next(_numbers))
            one = bind(read, of)
            if one is not None:
                one(waves)
    return waves


def execute(
    waves: Waves, code: Assembly, limit: int = 10_000, limits: Limits | None = None
) -> Execution:
    """Runs a whole program, from its first instruction on."""
    execution = Execution(waves, DecodedProgram(code), 0, Watchdog(limits or Limits(limit)))
    execution.run()
    return execution


def get(waves: Waves, index: int, kind: str = "u32", wave: int = 0) -> np.ndarray:
    """A vector register of a wave."""
    return np.array(waves.values.vector(index, kind, slice(None))[wave])


def scalar(waves: Waves, index: int, kind: str = "u32") -> int:
    """A scalar register of the first wave."""
    return int(waves.values.scalar(index, kind, slice(None))[0])


def undefined(waves: Waves, index: int) -> np.ndarray:
    """Which bits of a vector register of the first wave are undefined."""
    assert waves.shadow is not None
    return np.array(waves.shadow.v[index, 0])


def found(waves: Waves) -> tuple[Finding, ...]:
    return waves.around.findings.all()

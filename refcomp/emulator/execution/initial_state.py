"""Registers as waves find them when a kernel begins.

Follows the kernel descriptor, as specified in LLVM's "User Guide for AMDGPU Backend" (initial
kernel execution state), and the `Generation` of the GPU. Refuses, by Unsupported, requests of a
descriptor that no compiler makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from refcomp.emulator.code.code_object import Descriptor, KernelEntry
from refcomp.emulator.generations.generation import Generation
from refcomp.emulator.instructions.memory.buffers import wave_bytes
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.registers import FIRST_ACCUMULATOR
from refcomp.emulator.machine.waves import Surroundings, Waves
from refcomp.foundation.counted import counted
from refcomp.foundation.errors import Unsupported

# Initial value of a scalar register: for each wave, the same for all waves, or None for undefined.
Word = Array | np.uint32 | None


@dataclass(frozen=True, slots=True)
class Start:
    """The memory that a launch has prepared for all its waves."""

    packet: int  # address of the dispatch packet
    kernarg: int  # address of the arguments
    arguments: bytes


def begin_waves(
    around: Surroundings,
    generation: Generation,
    kernel: KernelEntry,
    groups: Array,
    start: Start,
) -> Waves:
    """Return the waves of `groups` (ids, int [groups, 3]) before their first instruction."""
    threads = prod(around.block)
    lanes = generation.lanes(kernel.descriptor)
    per_group = -(-threads // lanes)
    item = np.arange(per_group * lanes).reshape(per_group, lanes)
    existing = np.tile(item < threads, (len(groups), 1))
    vectors = generation.vectors(kernel.descriptor)
    waves = Waves(
        around, vectors, existing, groups, unused_vectors(kernel.descriptor, vectors)
    )
    waves.initialise_mask(existing)
    waves.set_modes(kernel.descriptor.float_mode)
    x, y, _ = around.block
    packed = item % x | item // x % y << 10 | item // (x * y) << 20
    waves.initialise_vector(0, np.tile(packed.astype(np.uint32), (len(groups), 1)))
    ids = np.repeat(groups, per_group, axis=0).astype(np.uint32)
    user = _user_scalars(generation, kernel, around.private_bytes, start)
    for number, value in enumerate(
        [*user, *_system_scalars(generation, kernel, around, ids)]
    ):
        if value is not None:
            waves.initialise_scalar(number, value)
    return waves


def unused_vectors(descriptor: Descriptor, vectors: int) -> slice:
    """Return the numbers between the kernel's vector registers and its accumulators, if any."""
    own = descriptor.first_accumulator if vectors > FIRST_ACCUMULATOR else 0
    return slice(own, FIRST_ACCUMULATOR if own else 0)


def _user_scalars(
    generation: Generation, kernel: KernelEntry, private_bytes: int, start: Start
) -> list[Word]:
    """Return the user registers: scalar registers from 0 on, which the driver sets."""
    descriptor = kernel.descriptor
    user: list[Word] = []
    # Bit of the properties -> the registers that it asks for.
    parts: list[tuple[int, list[np.uint32 | None]]] = [
        (0, [None] * 4),
        (1, _halves(start.packet)),
        (2, [None] * 2),
        (3, _halves(start.kernarg)),
        (4, _halves(0)),
        (5, [None] * 2),
        (6, [np.uint32(private_bytes)]),
    ]
    for bit, values in parts:
        given = [np.uint32(word) for word in generation.start.get(bit, ())]
        user += (given or values) if descriptor.properties >> bit & 1 else []
    user += _preloaded(generation, kernel, start.arguments)
    user += [None] * (descriptor.user_sgprs - len(user))
    return user[: descriptor.user_sgprs]


def _preloaded(
    generation: Generation, kernel: KernelEntry, arguments: bytes
) -> list[np.uint32]:
    """Return the words of the arguments that a kernel finds in registers. Unsupported."""
    asked = kernel.descriptor.preloaded
    words = np.frombuffer(arguments[: len(arguments) // 4 * 4], np.uint32)
    words = words[asked.offset : asked.offset + asked.length]
    if asked.length and not generation.has_preload:
        raise Unsupported(
            f"{kernel.name} asks for arguments in registers",
            why=f"a {generation.name} cannot preload arguments",
            remedy="compile it for this GPU; or the code object is damaged",
        )
    if len(words) < asked.length:
        raise Unsupported(
            f"{kernel.name} asks for more arguments in registers than it has",
            why=f"it asks for {counted(asked.length, 'word')}, and its arguments have {len(words)}",
            remedy="the code object is damaged: compile it again",
        )
    return list(words)


def _system_scalars(
    generation: Generation, kernel: KernelEntry, around: Surroundings, ids: Array
) -> list[Word]:
    """Return the system registers, which follow the user registers and which the GPU sets.

    These are the group's id and the offset of the wave's private memory. `ids` is [wave, 3].
    """
    descriptor = kernel.descriptor
    if descriptor.rsrc2 >> 10 & 1:
        raise Unsupported(
            f"{kernel.name} asks for the work-group info register",
            why="the emulator does not set that register",
            remedy="compile it without this request; compilers make none by themselves",
        )
    system: list[Word] = [
        ids[:, axis] for axis in range(3) if descriptor.rsrc2 >> (7 + axis) & 1
    ]
    if generation.has_wave_offset and descriptor.rsrc2 & 1:
        each = wave_bytes(around.private_bytes, generation.lanes(descriptor))
        system.append(np.arange(len(ids), dtype=np.uint32) * np.uint32(each))
    return system


def _halves(address: int) -> list[np.uint32 | None]:
    return [np.uint32(address & 0xFFFFFFFF), np.uint32(address >> 32)]

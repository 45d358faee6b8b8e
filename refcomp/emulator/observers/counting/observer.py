"""The observer that counts what kernels launched on AMD GPUs do.

profile = Profile()
gpu = EmulatedGpu(disassemble, observers=(WaveCounting(profile),))
gpu.run(...)
profile.kernels[0].fmas
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from refcomp.emulator.code.assembly import Assembly, Instruction
from refcomp.emulator.execution.launch import LaunchRequest, LoadedCode
from refcomp.emulator.machine.observation import Access, Observer
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.observers.counting.counts import KernelCounts
from refcomp.emulator.observers.counting.profile import Profile, recorder_of


class WaveCounting(Observer):
    """Fills a profile with the counts of all launches that it observes."""

    def __init__(self, profile: Profile) -> None:
        self._recorder = recorder_of(profile)
        self._pairs_fours = False

    def launched(self, loaded: LoadedCode, request: LaunchRequest) -> None:
        counts = self._recorder.begin(
            loaded, request.kernel, lambda: _counts_of(loaded, request.kernel)
        )
        self._pairs_fours = loaded.generation.pairs_fours
        counts.grid = request.grid
        counts.block = request.block
        counts.shared_bytes = request.shared_bytes

    def began(self, waves: Waves) -> None:
        self._recorder.current.groups += len(waves.groups)
        self._recorder.current.waves += waves.waves

    def instruction(self, waves: Waves, instruction: Instruction) -> None:
        count = waves.count()
        full = count * self._recorder.current.wave_lanes
        lanes = full if waves.is_full else int(np.count_nonzero(waves.mask))
        self._recorder.ran(instruction, count, lanes)

    def access(self, waves: Waves, access: Access) -> None:
        is_paired = self._pairs_fours and not access.is_store
        self._recorder.accessed(access.instruction, access, is_paired=is_paired)


def _counts_of(loaded: LoadedCode, name: str) -> KernelCounts:
    """Return the counts of a kernel that has not run."""
    kernel = loaded.kernel(name)
    generation = loaded.generation
    assembly = loaded.program(kernel).assembly
    entry = assembly.number_at(kernel.entry) or 0
    return KernelCounts(
        name,
        mcpu=generation.name,
        wave_lanes=assembly.lanes,
        segment=generation.segment,
        is_on_pairs=kernel.descriptor.is_on_pairs,
        code=lambda: _instructions(assembly, entry),
    )


def _instructions(assembly: Assembly, entry: int) -> Mapping[int, Instruction]:
    """Return the instructions of the kernel that begins with number `entry`."""
    # It ends with the last s_endpgm before the next symbol.
    last = entry - 1
    for number in range(entry, len(assembly)):
        address = assembly.instruction(number).address
        if number != entry and address in assembly.symbols:
            break
        if assembly.mnemonic(number) == "s_endpgm":
            last = number
    return {number: assembly.instruction(number) for number in range(entry, last + 1)}

"""Counts of what a kernel did while it ran emulated: instructions, lanes, memory accesses.

An observer (refcomp/emulator/machine/observation.py) fills a `Profile`, and changes nothing. Counts
are exact. Their meaning is the matter of higher rooms: refcomp/profile/ estimates times on a card
and gives advice, refcomp/cli/profile.py prints both.

In reading order:

- instruction_set.py: what is counted of the instructions of a kind of GPU
- mnemonics.py: the class of an instruction of AMD GPUs
- coalescing.py, banks.py: what an access costs, as models with their sources
- counts.py: the numbers
- profile.py: the counts of all kernels
- observer.py: the observer that counts on AMD GPUs
"""

from refcomp.emulator.observers.counting.counts import (
    InstructionCounts,
    KernelCounts,
    MemoryTraffic,
)
from refcomp.emulator.observers.counting.mnemonics import CLASSES
from refcomp.emulator.observers.counting.observer import WaveCounting
from refcomp.emulator.observers.counting.profile import Profile

__all__ = [
    "CLASSES",
    "MemoryTraffic",
    "InstructionCounts",
    "KernelCounts",
    "Profile",
    "WaveCounting",
]

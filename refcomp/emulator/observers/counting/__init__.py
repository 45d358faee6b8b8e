"""Counts of what a kernel did while it ran emulated: instructions, lanes, memory accesses.

A `Profile` is an observer (refcomp/emulator/machine/observation.py): it changes nothing. Counts are
exact. Their meaning is the matter of higher rooms: refcomp/profile/ estimates times on a card and
gives advice, refcomp/cli/profile.py prints both.

In reading order:

- mnemonics.py: the class of an instruction
- coalescing.py, banks.py: what an access costs, as models with their sources
- counts.py: the numbers
- observer.py: the observer that counts
"""

from refcomp.emulator.observers.counting.counts import (
    InstructionCounts,
    KernelCounts,
    MemoryTraffic,
)
from refcomp.emulator.observers.counting.mnemonics import CLASSES
from refcomp.emulator.observers.counting.observer import Profile

__all__ = ["CLASSES", "MemoryTraffic", "InstructionCounts", "KernelCounts", "Profile"]

"""What a kernel did while it ran emulated, counted: instructions, lanes, accesses to memory.

A `Profile` is an observer (refcomp/emulator/machine/observation.py); it changes nothing. Counts are
exact; what they mean is told above this room: refcomp/profile/ estimates what they would take on a
card and advises, refcomp/cli/profile.py prints that.

Reading order: mnemonics.py (which class an instruction is of), coalescing.py and banks.py (what an
access costs, as models with their sources), counts.py (the numbers), observer.py (who counts).
"""

from refcomp.emulator.observers.counting.counts import (
    InstructionCounts,
    KernelCounts,
    MemoryTraffic,
)
from refcomp.emulator.observers.counting.mnemonics import CLASSES
from refcomp.emulator.observers.counting.observer import Profile

__all__ = ["CLASSES", "MemoryTraffic", "InstructionCounts", "KernelCounts", "Profile"]

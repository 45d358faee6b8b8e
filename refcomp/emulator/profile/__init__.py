"""What a kernel did while it ran emulated, counted: instructions, lanes, accesses to memory.

A `Profile` is an observer (refcomp/emulator/observation.py); it changes nothing. Counts are exact;
what they would take on a card is estimated above this room (refcomp/profile/).

Reading order: mnemonics.py (which class an instruction is of), coalescing.py and banks.py (what an
access costs, as models with their sources), counts.py (the numbers), observer.py (who counts).
"""

from refcomp.emulator.profile.counts import AccessCounts, InstructionCounts, KernelCounts
from refcomp.emulator.profile.mnemonics import CLASSES
from refcomp.emulator.profile.observer import Profile

__all__ = ["CLASSES", "AccessCounts", "InstructionCounts", "KernelCounts", "Profile"]

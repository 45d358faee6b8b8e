"""An interpreter of AMD's machine code on numpy arrays: runs code objects without an AMD GPU.

Waves run together, register by register. On the way, the emulator finds errors of kernels: accesses
that are out of bounds, and results that depend on bits that nothing wrote. It imports nothing of
what it judges: whoever makes an `EmulatedGpu` passes a disassembler to it.

- code/: code objects and their instructions, as read
- machine/: the state, which is registers, memory and waves, and which of its bits were written
- instructions/: what each instruction does to that state
- generations/: the differences between the emulated GPUs
- translation/: hot instructions as code of the host, which the interpreter defines
- execution/: launches of kernels, and the execution of waves
- observers/: hazards, counts and coverage
- run.py, hip.py: the interfaces, one kernel on numpy arrays, and the functions of HIP
- ledger.py: which instructions were compared with a reference
- limits.py: when a launch is given up
"""

from refcomp.emulator.code.findings import Finding
from refcomp.emulator.execution.launch import (
    LaunchReport,
    LaunchRequest,
    launch,
    load_code,
)
from refcomp.emulator.generations.generation import ARCHITECTURES
from refcomp.emulator.run import EmulatedGpu

__all__ = [
    "EmulatedGpu",
    "Finding",
    "ARCHITECTURES",
    "LaunchReport",
    "LaunchRequest",
    "launch",
    "load_code",
]

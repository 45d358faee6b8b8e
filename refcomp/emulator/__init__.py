"""AMD's code objects run without an AMD GPU: an interpreter of machine code on numpy arrays.

Waves run together, register by register, and what is wrong with a kernel is found on the way: what
is out of bounds, and what depends on bits that nothing wrote. Imports nothing of what it judges;
whoever makes an `EmulatedGpu` hands it a disassembler.

code/           code objects and their instructions, as read
machine/        the state: registers, memory, waves, and which of their bits were written
instructions/   what each instruction does to that state
generations/    how the emulated GPUs differ
execution/      kernels launched, waves run
observers/      who looks on: hazards, counts, coverage
run.py, hip.py  the doors: one kernel on numpy arrays, and the functions of HIP
ledger.py       which instructions were compared with a reference
limits.py       when a launch is given up
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

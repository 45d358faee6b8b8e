"""AMD's code objects run without an AMD GPU: an interpreter of machine code on numpy arrays.

Waves run together, register by register, and what is wrong with a kernel is found on the way: what
is out of bounds, and what depends on bits that nothing wrote. Imports nothing of what it judges;
whoever makes an `EmulatedGpu` hands it a disassembler.

Reading order: code_object.py and assembly.py (what is run), arrays.py, operation.py and the tables
(vector_floats.py, vector_integers.py, vector_conversions.py, packed.py, scalar.py: what each
instruction means, with exact.py and spreads.py), modes.py, signalling.py and output_modifiers.py
(rounding, denormals, NaNs and clamps as the MODE register has them), registers.py, memory.py and
waves.py (on what), observation.py and counting/ (who looks on, and who counts), wait_counters.py,
wait_states.py, memory_order.py and hazards/ (what is wrong though the result may be right),
sources.py, vector.py, scalar_binding.py, memory_access.py, atomics.py, cross_lane.py, dpp.py and
matrix.py (instructions bound to operands), generation.py (what differs between GPUs), program.py
and execute.py (in which order), limits.py (for how long), launch.py, run.py and hip.py (the doors),
findings.py and ledger.py (what comes out, how far to be believed).
"""

from refcomp.emulator.findings import Finding
from refcomp.emulator.generation import ARCHITECTURES
from refcomp.emulator.launch import LaunchReport, LaunchRequest, launch, load_code
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

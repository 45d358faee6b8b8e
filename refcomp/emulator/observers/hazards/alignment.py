"""Addresses that are not aligned as an instruction requires.

Drivers enable unaligned accesses on these GPUs, in shared memory too: plain loads and stores of any
width take any address. Atomic updates must be aligned to their size. Scalar loads silently ignore
the lowest two bits of an address.
"""

from __future__ import annotations

from refcomp.emulator.code.findings import MISALIGNED
from refcomp.emulator.machine.observation import Access, Observer
from refcomp.emulator.machine.waves import Waves
from refcomp.emulator.observers.hazards.access_description import wrong_lanes
from refcomp.foundation.counted import counted

_SCALAR_ALIGNMENT = 4  # bytes


class Alignment(Observer):
    """Reports accesses that a GPU refuses, or makes at another address."""

    def access(self, waves: Waves, access: Access) -> None:
        if access.instruction.mnemonic.startswith("s_"):
            alignment = _SCALAR_ALIGNMENT
        elif access.is_atomic:
            alignment = access.size
        else:
            return
        wrong = access.index % alignment != 0
        if not wrong.any():
            return
        rest = counted(int(access.index[wrong][0]) % alignment, "byte")
        what = f"accesses an address that is {rest} past a multiple of {alignment}"
        lanes = wrong_lanes(waves, access, wrong)
        waves.report(MISALIGNED, access.instruction, what, lanes)

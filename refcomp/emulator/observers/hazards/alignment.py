"""Addresses that are not aligned as an instruction needs.

Drivers have these GPUs access memory unaligned, of a group's shared memory, too: loads and stores
of any width take any address. Updates must be aligned to their size, and scalar loads drop the last
two bits of an address without a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.emulator.code.findings import MISALIGNED
from refcomp.emulator.machine.observation import Access, Observer

_SCALAR_ALIGNMENT = 4


class Alignment(Observer):
    """Tells of accesses that a GPU refuses or makes elsewhere."""

    def access(self, waves: Any, access: Access) -> None:
        is_scalar = access.instruction.mnemonic.startswith("s_")
        needed = (
            _SCALAR_ALIGNMENT if is_scalar else access.size if access.is_atomic else 1
        )
        wrong = access.index % needed != 0
        if not wrong.any():
            return
        lanes = np.zeros((waves.count(), waves.lanes), np.bool_)
        lanes[np.ones_like(lanes) if access.active is None else access.active] = wrong
        off = int(access.index[wrong][0]) % needed
        what = f"an address that is {off} bytes past a multiple of {needed}"
        waves.report(MISALIGNED, access.instruction, what, lanes)

"""Barriers that some waves of a group never reach, because they have ended before.

A GPU does not wait for waves that have ended. But no language allows this, and the work of these
waves before the barrier is missing. With this observer or without, `execution/execute.py` reports
waves of a group that wait at different barriers.
"""

from __future__ import annotations

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import BARRIER
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Observer
from refcomp.emulator.machine.waves import Waves
from refcomp.foundation.counted import counted


class Barriers(Observer):
    """Reports waves that pass a barrier while other waves of their group have ended."""

    def began(self, waves: Waves) -> None:
        self._has_ended = np.zeros(waves.waves, np.bool_)
        self._latest: dict[int, Instruction] = {}  # wave -> its latest barrier

    def instruction(self, waves: Waves, instruction: Instruction) -> None:
        if instruction.mnemonic == "s_endpgm":
            self._has_ended[waves.rows] = True
        elif instruction.mnemonic == "s_barrier":
            for wave in np.arange(waves.waves)[waves.rows].tolist():
                self._latest[wave] = instruction

    def barrier(self, waves: Waves, rows: Array) -> None:
        by_group = self._has_ended.reshape(-1, waves.per_group).sum(axis=1)
        ended = by_group[rows // waves.per_group]
        is_wrong = ended > 0
        for wave, count in zip(
            rows[is_wrong].tolist(), ended[is_wrong].tolist(), strict=True
        ):
            waves.select(np.array([wave]))
            missing = counted(count, "wave")
            what = (
                f"passes the barrier without {missing} of its group that ended before"
            )
            waves.report(BARRIER, self._latest[wave], what, np.array([True]))

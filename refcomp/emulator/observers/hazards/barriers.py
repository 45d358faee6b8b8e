"""Barriers that some waves of a group never reach, since they ended before.

A GPU does not wait for waves that have ended, but no language allows it, and none of what they
would have done before the barrier is done. Waves that wait at different barriers are told of
whether this looks or not (execute.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from refcomp.emulator.code.assembly import Instruction
from refcomp.emulator.code.findings import BARRIER
from refcomp.emulator.machine.arrays import Array
from refcomp.emulator.machine.observation import Observer


class Barriers(Observer):
    """Tells of waves that go on from a barrier without others of their group."""

    def began(self, waves: Any) -> None:
        self._ended = np.zeros(waves.waves, np.bool_)
        self._at: dict[int, Instruction] = {}

    def instruction(self, waves: Any, instruction: Instruction) -> None:
        if instruction.mnemonic == "s_endpgm":
            self._ended[waves.rows] = True
        elif instruction.mnemonic == "s_barrier":
            self._at.update(
                dict.fromkeys(np.arange(waves.waves)[waves.rows], instruction)
            )

    def barrier(self, waves: Any, rows: Array) -> None:
        ended = self._ended.reshape(-1, waves.per_group).sum(axis=1)[
            rows // waves.per_group
        ]
        for row, count in zip(rows[ended > 0], ended[ended > 0], strict=True):
            waves.select(np.array([row]))
            what = (
                f"goes on without {count} of the waves of its group, which ended before"
            )
            waves.report(BARRIER, self._at[row], what, np.array([True]))

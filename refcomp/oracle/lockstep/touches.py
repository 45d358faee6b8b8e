"""Which threads touch each element, for all threads at once: `refcomp.oracle.interpreter.races` by
numpy.

Of each element only this is kept: its agent (a thread, or a group) while there is only one, and
the kind of access while there is only one. That is enough to see each conflict, in whatever order
the accesses come: two agents get along only where all that touch the element read it, or update
it by the same operator.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.stmt import ATOMIC_OPERATORS
from refcomp.oracle.interpreter.races import READS, WRITES, updates_by
from refcomp.oracle.lockstep.groups import Doubt
from refcomp.oracle.tensors.arrays import Array

_KINDS = (READS, WRITES, *map(updates_by, ATOMIC_OPERATORS))
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_SEVERAL_KINDS = len(_KINDS)
_SEVERAL_AGENTS = -1


class Touches:
    """The accesses to `size` elements since all agents were in step."""

    def __init__(self, size: int) -> None:
        self._agent = np.zeros(size, np.int64)
        self._kind = np.zeros(size, np.int8)
        self._since = np.zeros(size, np.int64)

    def note(self, kind: str, at: Array, agent: Array, since: Array | int) -> bool:
        """Notes that each of `agent` touches its element of `at`; what was before `since` (from 1
        on) is over. Whether some element has several agents now. Raises Doubt for a conflict."""
        number = _NUMBERS[kind]
        first = self._since[at] != since
        before = np.where(first, agent, self._agent[at])
        kinds = np.where(first, number, self._kind[at])
        foreign = before != agent
        if (foreign & (kinds != number)).any():
            raise Doubt
        self._since[at] = since
        self._kind[at] = np.where(kinds == number, number, _SEVERAL_KINDS)
        self._agent[at] = (
            agent  # of several in one go the last one stays, and the others notice
        )
        several = foreign | (self._agent[at] != agent)
        if not several.any():
            return False
        if kind == WRITES:
            raise Doubt
        self._agent[at[several]] = _SEVERAL_AGENTS
        return True

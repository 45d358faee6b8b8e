"""Shadow memory: who accessed each element, for `refcomp.oracle.interpreter.races` by numpy.

An element keeps its agent (a thread, or a group) while only one agent accessed it, and the kind of
access while there is only one kind. That is enough to find each conflict, in any order of the
accesses. Several agents do not conflict only if all accesses to the element are reads, or all are
updates by the same operator.
"""

from __future__ import annotations

import numpy as np

from refcomp.ir.stmt import AtomicOperator
from refcomp.oracle.interpreter.races import READS, WRITES, updates_by
from refcomp.oracle.lockstep.groups import BailOut
from refcomp.oracle.tensors.arrays import Array

_KINDS = (READS, WRITES, *map(updates_by, AtomicOperator))
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_SEVERAL_KINDS = len(_KINDS)
_SEVERAL_AGENTS = -1


class ShadowMemory:
    """The accesses to each of `size` elements in its latest barrier interval."""

    def __init__(self, size: int) -> None:
        self._agent = np.zeros(size, np.int64)
        self._kind = np.zeros(size, np.int8)
        self._interval = np.zeros(size, np.int64)  # 0: never accessed

    def record(self, kind: str, at: Array, agent: Array, interval: Array | int) -> bool:
        """Record an access of each `agent` to its element.

        Args:
            kind: of all accesses, as in `refcomp.oracle.interpreter.races`.
            at: i64 [...], the elements.
            agent: i64 [...], the agents, from 0 on.
            interval: the agents' barrier intervals, from 1 on. Accesses in other intervals do not
                matter any more.

        Returns whether one of the elements now has several agents. Raises BailOut for a conflict.
        """
        number = _NUMBERS[kind]
        is_first = self._interval[at] != interval
        before = np.where(is_first, agent, self._agent[at])
        kinds = np.where(is_first, number, self._kind[at])
        has_other = before != agent
        if (has_other & (kinds != number)).any():
            raise BailOut
        self._interval[at] = interval
        self._kind[at] = np.where(kinds == number, number, _SEVERAL_KINDS)
        # Of several agents of one element the last one stays. The others notice that below.
        self._agent[at] = agent
        several = has_other | (self._agent[at] != agent)
        if not several.any():
            return False
        if kind == WRITES:
            raise BailOut
        self._agent[at[several]] = _SEVERAL_AGENTS
        return True

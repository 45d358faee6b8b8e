"""Finds two threads of a kernel that touch one element without waiting for each other.

Two accesses conflict when they touch one element, at least one of them writes, and not both are
atomic updates by the same operator: updates by two give what the order of threads makes of them.
They are a race unless one thread does both, or one group does and all its threads met at a
barrier in between. Groups never wait for each other while a kernel runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from refcomp.ir.expr import Var
from refcomp.ir.stmt import For, Origin, Stmt
from refcomp.oracle.interpreter.failure import InterpretError, describe

READS, WRITES = "reads it", "writes it"


def updates_by(operator: str) -> str:
    """The kind of access that an atomic update by `operator` is."""
    return f"updates it by {operator}"


@dataclass(eq=False, slots=True)
class Group:
    """A group of threads. `launch` is one object for all groups of a kernel that runs, `interval`
    another one after each barrier. `asking` are the statements that threads do together."""

    launch: object
    asking: frozenset[Stmt] = frozenset()
    interval: object = field(default_factory=object)


class Thread:
    """Who runs statements: a thread of a kernel, or, without a group, the host; where it is, its
    variables, and where the loops come from that have bound some."""

    def __init__(self, name: str, group: Group | None) -> None:
        self.name, self.group = name, group
        self.values: dict[Var, Any] = {}
        self.origins: dict[Var, Origin] = {}
        self.stmt: Stmt | None = None

    def enter(self, loop: For) -> None:
        """The thread is in `loop` now."""
        if loop.origin is not None:
            self.origins[loop.var] = loop.origin

    @property
    def where(self) -> str | None:
        """The statement at hand, and the variables."""
        return (
            None
            if self.stmt is None
            else describe(self.stmt, self.values, self.origins)
        )


@dataclass(frozen=True, slots=True)
class _FirstAccess:
    kind: str
    agent: object
    thread: Thread
    stmt: Stmt
    values: dict[Var, Any]

    @property
    def where(self) -> str:
        return describe(self.stmt, self.values, self.thread.origins)


class _FirstAccesses:
    """Which agent (a thread, or a group) touched each element first since all were in step.

    An agent does all that it does in that time at a stretch, and then the next one comes. So
    whoever came first is another one than all later ones, and no conflict with any is missed.
    """

    def __init__(self) -> None:
        self._since: object = None
        self._first: dict[str, dict[int, _FirstAccess]] = {}

    def note(
        self, kind: str, element: int, thread: Thread, agent: object, since: object
    ) -> _FirstAccess | None:
        """Notes an access; what another agent has done since `since` that conflicts with it."""
        if since is not self._since:
            self._since, self._first = since, {}
        for other, accesses in self._first.items():
            access = accesses.get(element) if other != kind or kind == WRITES else None
            if access is not None and access.agent is not agent:
                return access
        mine = self._first.setdefault(kind, {})
        if element not in mine:
            assert thread.stmt is not None
            mine[element] = _FirstAccess(
                kind, agent, thread, thread.stmt, dict(thread.values)
            )
        return None


class RaceDetector:
    """The accesses of a kernel's threads to one memory that several of them can see; shared
    memory is seen by one group only."""

    def __init__(self, is_shared: bool) -> None:
        self._of_threads, self._of_groups = (
            _FirstAccesses(),
            None if is_shared else _FirstAccesses(),
        )

    def check(self, kind: str, element: int, name: str, thread: Thread) -> None:
        """Notes that `thread` touches `element` of the buffer `name`; refuses a race."""
        group = thread.group
        if group is None:
            return
        why = "no barrier lies between the two"
        other = self._of_threads.note(kind, element, thread, thread, group.interval)
        if other is None and self._of_groups is not None:
            why = "groups do not wait for each other"
            other = self._of_groups.note(kind, element, thread, group, group.launch)
        if other is not None:
            raise InterpretError(
                f"a race on element {element} of {name}: thread {thread.name} {kind}, "
                f"and thread {other.thread.name} {other.kind}",
                why=f"{why}; the other is at {other.where}",
            )

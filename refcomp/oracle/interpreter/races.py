"""Data races: two threads of a kernel access one element without waiting for each other.

Two accesses *conflict* if they are to one element, at least one of them writes, and they are not
both atomic updates by the same operator. (Updates by two operators conflict: the result depends on
their order.) Two conflicting accesses are a *race*, except that

- one thread makes both, or
- one group makes both, and all its threads passed a barrier in between.

Groups never wait for each other while a kernel runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from refcomp.ir.expr import Var
from refcomp.ir.stmt import For, Origin, Stmt
from refcomp.oracle.interpreter.failure import InterpretError, describe
from refcomp.oracle.interpreter.scalars import Value

# Kinds of access, as messages spell them; `updates_by` returns the others.
READS, WRITES = "reads it", "writes it"


def updates_by(operator: str) -> str:
    """Return the kind of an atomic update by `operator`."""
    return f"updates it by {operator}"


@dataclass(eq=False, slots=True)
class Group:
    """A group of threads of a kernel."""

    launch: object  # identity of the launch; all groups of a kernel have the same
    # Statements that contain an expression which threads compute together.
    collective: frozenset[Stmt] = frozenset()
    interval: object = field(default_factory=object)  # identity; a barrier changes it


class Thread:
    """The state of a thread of a kernel, or of the host, which has no group."""

    def __init__(self, name: str, group: Group | None) -> None:
        self.name = name  # in messages
        self.group = group
        self.values: dict[Var, Value] = {}
        self.origins: dict[Var, Origin] = {}  # of loop variables: the loop's origin
        self.stmt: Stmt | None = None  # the statement that runs

    def enter(self, loop: For) -> None:
        """Record where `loop` comes from."""
        if loop.origin is not None:
            self.origins[loop.var] = loop.origin

    @property
    def where(self) -> str | None:
        """Describe the statement that runs, with the variables."""
        if self.stmt is None:
            return None
        return describe(self.stmt, self.values, self.origins)


@dataclass(frozen=True, slots=True)
class _AgentAccess:
    kind: str
    agent: object
    thread: Thread
    stmt: Stmt
    values: dict[Var, Value]


class _IntervalAccesses:
    """Accesses to each element in the present interval, by agents: threads, or groups.

    Of each kind, the accesses of the first two agents are kept. That is enough: any later agent
    differs from one of them, so no conflict is missed.
    """

    def __init__(self) -> None:
        self._interval: object = None
        # By kind and element.
        self._accesses: dict[str, dict[int, list[_AgentAccess]]] = {}

    def record(
        self, kind: str, element: int, thread: Thread, agent: object, interval: object
    ) -> _AgentAccess | None:
        """Record an access. Return a conflicting one by another agent in the same interval."""
        if interval is not self._interval:
            self._interval = interval
            self._accesses = {}
        for other, by_element in self._accesses.items():
            if other == kind and kind != WRITES:
                continue
            for access in by_element.get(element, ()):
                if access.agent is not agent:
                    return access
        kept = self._accesses.setdefault(kind, {}).setdefault(element, [])
        if not kept or (len(kept) == 1 and kept[0].agent is not agent):
            assert thread.stmt is not None
            values = dict(thread.values)
            kept.append(_AgentAccess(kind, agent, thread, thread.stmt, values))
        return None


class RaceDetector:
    """The accesses to one memory by the threads of a kernel.

    Shared memory belongs to one group, so its accesses are compared within the group only.
    """

    def __init__(self, is_shared: bool) -> None:
        self._by_thread = _IntervalAccesses()
        self._by_group = None if is_shared else _IntervalAccesses()

    def check(self, kind: str, element: int, name: str, thread: Thread) -> None:
        """Record that `thread` accesses `element` of the buffer `name`.

        Raises InterpretError for a race. The host (without a group) has none.
        """
        group = thread.group
        if group is None:
            return
        why = "no barrier lies between the two"
        other = self._by_thread.record(kind, element, thread, thread, group.interval)
        if other is None and self._by_group is not None:
            why = "groups do not wait for each other"
            other = self._by_group.record(kind, element, thread, group, group.launch)
        if other is not None:
            where = describe(other.stmt, other.values, other.thread.origins)
            raise InterpretError(
                f"a race on element {element} of {name}: thread {thread.name} {kind}, "
                f"and thread {other.thread.name} {other.kind}",
                why=f"{why}; the other is at {where}",
            )

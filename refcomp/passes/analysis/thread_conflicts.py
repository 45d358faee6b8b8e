"""Decides whether two threads of a group may touch one element that one of them writes.

An access stands in a *scope*: the loops, lets and conditions around it in the kernel. Two
accesses are made by two threads, so each has its own copy of all variables: the threads'
variables, and those of the scopes. The threads share only the variables of the loops that
both are known to run together. The accesses conflict unless equal indices force the two
threads to be the same (see `index_equations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.arith import Facts
from refcomp.ir.buffer import READ, WRITE, Buffer, BufferAccess, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    EQ,
    LE,
    LT,
    And,
    Expr,
    IfThenElseExpr,
    IntImm,
    Let,
    Not,
    Sub,
    Var,
)
from refcomp.ir.rewrite import children, same_items, substitute
from refcomp.ir.stmt import AtomicOperator, For
from refcomp.passes.analysis.access_ranges import reads_memory
from refcomp.passes.analysis.index_equations import Equation, forces_equal


@dataclass(frozen=True, slots=True)
class Ranged:
    """A loop: `var` runs from `minimum` over `extent` values."""

    var: Var
    minimum: Expr
    extent: Expr


@dataclass(frozen=True, slots=True)
class Named:
    """A let."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition that is known to hold."""

    condition: Expr


Entry = Ranged | Named | Holds
Scope = tuple[Entry, ...]
# Ids of two accesses or scopes, and the variables that both threads share.
_Key = tuple[int, int, frozenset[Var]]


@dataclass(frozen=True, slots=True, eq=False)
class ThreadAccess:
    """An access of memory by a thread."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    # READ, WRITE, or the operator of an atomic update.
    effect: BufferAccess | AtomicOperator
    scope: Scope


def reads_in(root: Expr, scope: Scope) -> Iterator[ThreadAccess]:
    """Yield the reads that evaluating `root` may do, each with the choices around it."""
    stack: list[tuple[Expr, Scope]] = [(root, scope)]
    # Holds the scopes, so that no id is used again.
    seen: dict[tuple[int, int], Scope] = {}
    while stack:
        expr, around = stack.pop()
        if (id(expr), id(around)) in seen:
            continue
        seen[id(expr), id(around)] = around
        if isinstance(expr, BufferLoad):
            yield ThreadAccess(expr.buffer, expr.indices, READ, around)
        if isinstance(expr, IfThenElseExpr):
            holds = Holds(expr.condition)
            fails = Holds(Not(expr.condition))
            stack.append((expr.condition, around))
            stack.append((expr.true_value, (*around, holds)))
            stack.append((expr.false_value, (*around, fails)))
        elif isinstance(expr, Let):
            named = Named(expr.var, expr.value)
            stack.append((expr.value, around))
            stack.append((expr.body, (*around, named)))
        else:
            stack += [(child, around) for child in children(expr)]


def in_earlier_iteration(
    accesses: Sequence[ThreadAccess], loop: Ranged, is_previous: bool
) -> tuple[ThreadAccess, ...]:
    """Return `accesses` as they are in an earlier iteration of a loop around them.

    Args:
        accesses: accesses in the loop.
        loop: the loop, which is an entry of their scopes.
        is_previous: True for the iteration just before, False for any earlier one.
    """
    if is_previous:
        earlier: Expr = loop.var - 1
        known: Scope = (Holds(loop.minimum < loop.var),)
    else:
        earlier = Var(f"{loop.var.name}.earlier", loop.var.dtype)
        entry = Ranged(earlier, loop.minimum, loop.extent)
        known = (entry, Holds(earlier < loop.var))
    names: dict[Var, Expr] = {loop.var: earlier}

    def shifted(scope: Scope) -> Scope:

        depth = next(k for k, entry in enumerate(scope) if entry is loop)
        around = scope[: depth + 1]
        inner = (_renamed(entry, names) for entry in scope[depth + 1 :])
        return (*around, *known, *inner)

    return _in_scopes(accesses, shifted, names)


def narrowed(
    accesses: Sequence[ThreadAccess], condition: Expr
) -> tuple[ThreadAccess, ...]:
    """Return `accesses` under one more condition."""
    entry = Holds(condition)
    return _in_scopes(accesses, lambda scope: (*scope, entry), {})


def _in_scopes(
    accesses: Sequence[ThreadAccess],
    change: Callable[[Scope], Scope],
    names: Mapping[Var, Expr],
) -> tuple[ThreadAccess, ...]:
    """Return `accesses` in changed scopes, with variables replaced.

    Accesses of one scope stay in one scope, so that its facts are derived once.
    """
    scopes = {id(access.scope): access.scope for access in accesses}
    changed = {key: change(scope) for key, scope in scopes.items()}
    moved: list[ThreadAccess] = []
    for access in accesses:
        indices = tuple(substitute(index, names) for index in access.indices)
        scope = changed[id(access.scope)]
        moved.append(ThreadAccess(access.buffer, indices, access.effect, scope))
    return tuple(moved)


def _renamed(entry: Entry, names: Mapping[Var, Expr]) -> Entry:
    """Return `entry` with variables replaced, the bound one by another variable.

    An entry without any of the variables is returned as the same object.
    """
    if isinstance(entry, Holds):
        condition = substitute(entry.condition, names)
        return entry if condition is entry.condition else Holds(condition)
    var = names.get(entry.var, entry.var)
    assert isinstance(var, Var)
    if isinstance(entry, Named):
        value = substitute(entry.value, names)
        if same_items((var, value), (entry.var, entry.value)):
            return entry
        return Named(var, value)
    minimum = substitute(entry.minimum, names)
    extent = substitute(entry.extent, names)
    before = (entry.var, entry.minimum, entry.extent)
    if same_items((var, minimum, extent), before):
        return entry
    return Ranged(var, minimum, extent)


class _Unreachable(Exception):
    """No two threads are in these scopes at once."""


class ThreadConflicts:
    """Decides about pairs of accesses in one kernel.

    `threads` are the kernel's threadIdx loops; `facts` are known of the variables around.
    """

    def __init__(self, threads: Sequence[For], facts: Facts) -> None:
        self._threads = [
            Ranged(loop.var, loop.minimum, loop.extent) for loop in threads
        ]
        self._around = _extended(facts, self._threads)
        # The keys are ids. Their objects are kept alive beside the answers.
        self._answers: dict[_Key, tuple[ThreadAccess, ThreadAccess, bool]] = {}
        self._meetings: dict[_Key, tuple[Scope, Scope, _Meeting | None]] = {}

    def facts(self, scope: Scope) -> Facts:
        """Return what a thread knows of the variables of `scope`, without its conditions."""
        entries = [entry for entry in scope if not isinstance(entry, Holds)]
        return _extended(self._around, entries)

    def between(
        self, p: ThreadAccess, q: ThreadAccess, together: frozenset[Var]
    ) -> bool:
        """Return True if `p` of one thread and `q` of another may conflict.

        `together` are the variables of the loops that both threads run together.
        """
        if p.buffer is not q.buffer:
            return False
        # Two reads do not conflict, nor do two atomic updates by the same operator.
        if p.effect == q.effect and p.effect != WRITE:
            return False
        meeting = self._meeting(p.scope, q.scope, together)
        if meeting is None:
            return False
        key = (id(p), id(q), together)
        if key not in self._answers:
            names = meeting.names
            equations = list(meeting.equations)
            for ours, theirs in zip(p.indices, q.indices, strict=True):
                equations.append(Equation(ours, substitute(theirs, names)))
            # If the indices are equal only for equal thread indices, it is one thread.
            thread_vars = [thread.var for thread in self._threads]
            same_thread = [Equation(var, names[var]) for var in thread_vars]
            is_one_thread = forces_equal(equations, same_thread, meeting.facts)
            self._answers[key] = (p, q, not is_one_thread)
        return self._answers[key][2]

    def _meeting(
        self, first: Scope, second: Scope, together: frozenset[Var]
    ) -> _Meeting | None:
        key = (id(first), id(second), together)
        if key not in self._meetings:
            try:
                meeting = self._meet(first, second, together)
            except _Unreachable:
                meeting = None
            self._meetings[key] = (first, second, meeting)
        return self._meetings[key][2]

    def _meet(self, first: Scope, second: Scope, together: frozenset[Var]) -> _Meeting:
        entries = (*self._threads, *second)
        bound = [entry.var for entry in entries if not isinstance(entry, Holds)]
        names: dict[Var, Expr] = {}
        for var in bound:
            if var not in together:
                names[var] = Var(f"{var.name}.other", var.dtype)
        known = list(first)
        # An entry that only depends on what both threads share is in both scopes.
        own = {id(entry) for entry in first}
        for entry in entries:
            renamed = _renamed(entry, names)
            if id(renamed) not in own:
                known.append(renamed)
        facts = _extended(self._around, known)
        equations: list[Equation] = []
        for entry in known:
            if not isinstance(entry, Holds):
                continue
            for item in _conjuncts(entry.condition):
                if isinstance(item, EQ) and item.a.dtype.is_int:
                    equations.append(Equation(item.a, item.b))
        return _Meeting(names, facts, equations)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two scopes that two threads are in at once."""

    # Variable of the second scope -> its copy for the second thread.
    names: Mapping[Var, Expr]
    # What holds in both scopes.
    facts: Facts
    equations: Sequence[Equation]


def _extended(facts: Facts, entries: Sequence[Entry]) -> Facts:
    """Return `facts` with all `entries`; raise _Unreachable if one cannot hold.

    Equations come before other conditions. With them, a condition may show more: for
    example, that only one value fulfils it.
    """

    def order(entry: Entry) -> int:
        if not isinstance(entry, Holds):
            return 0
        return 1 if isinstance(entry.condition, EQ) else 2

    for entry in sorted(entries, key=order):
        match entry:
            case Ranged(var, minimum, extent):
                facts = facts.bind(var, minimum, extent)
            case Named(var, value) if not reads_memory(value):
                facts = facts.define(var, value)
            case Holds(condition):
                if as_int(facts.simplifier.representative(condition)) == 0:
                    raise _Unreachable
                for known in (condition, *_forced_values(condition, facts)):
                    facts = facts.assume(known)
    return facts


def _forced_values(condition: Expr, facts: Facts) -> list[Expr]:
    """Return x == 0 and y == 0 for x * 2 + y < 1, if neither is negative.

    If only the greatest value of a sum fulfils a comparison, each variable has the value
    that makes the sum the greatest.
    """
    forced: list[Expr] = []
    for item in _conjuncts(condition):
        if not isinstance(item, LT | LE) or not item.a.dtype.is_int:
            continue
        distance = facts.simplifier.representative(Sub(item.b, item.a))
        total = facts.bounds.exact_sum(distance)
        least = 1 if isinstance(item, LT) else 0
        if total is None or facts.bounds.interval_of_sum(total).high != least:
            continue
        for monomial, factor in total.terms.items():
            var = facts.table.expr(monomial[0])
            if len(monomial) > 1 or not isinstance(var, Var):
                continue
            values = facts.bounds.interval(var)
            end = values.high if factor > 0 else values.low
            if end is not None:
                forced.append(EQ(var, IntImm(end, var.dtype)))
    return forced


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    stack = [condition]
    while stack:
        item = stack.pop()
        if isinstance(item, And):
            stack += [item.b, item.a]
        else:
            yield item

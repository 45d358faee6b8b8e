"""Tells whether two threads of a group may touch one element that one of them writes.

An access stands in a *scope*: the loops, names and conditions around it in the kernel. Of two
accesses, each is made by a thread of its own, so what they are made of is told apart: the threads'
variables, and all variables of the scopes but those of the loops that both threads are known to
run together. The accesses conflict unless equal indices force the threads to be one
(`refcomp.passes.analysis.index_equations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from refcomp.arith import Facts
from refcomp.arith.linear import Sum
from refcomp.ir.buffer import Buffer, BufferLoad
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
from refcomp.ir.rewrite import children, substitute, walk
from refcomp.ir.stmt import For
from refcomp.passes.analysis.index_equations import Equation, forces_equal

READ, WRITE = "read", "write"


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
_Key = tuple[int, int, frozenset[Var]]


@dataclass(frozen=True, slots=True, eq=False)
class ThreadAccess:
    """`effect` is READ, WRITE or the operator of an atomic update."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    effect: str
    scope: Scope


def reads_in(root: Expr, scope: Scope) -> Iterator[ThreadAccess]:
    """The reads of memory that evaluating `root` may do, each with the choices around it."""
    stack: list[tuple[Any, Scope]] = [(root, scope)]
    seen: dict[
        tuple[int, int], Scope
    ] = {}  # holds the scopes, so that no id is used again
    while stack:
        expr, around = stack.pop()
        if (id(expr), id(around)) in seen:
            continue
        seen[id(expr), id(around)] = around
        if isinstance(expr, BufferLoad):
            yield ThreadAccess(expr.buffer, expr.indices, READ, around)
        if isinstance(expr, IfThenElseExpr):
            stack.append((expr.condition, around))
            stack.append((expr.true_value, (*around, Holds(expr.condition))))
            stack.append((expr.false_value, (*around, Holds(Not(expr.condition)))))
        elif isinstance(expr, Let):
            stack += [
                (expr.value, around),
                (expr.body, (*around, Named(expr.var, expr.value))),
            ]
        else:
            stack += [(child, around) for child in children(expr)]


def in_earlier_iteration(
    accesses: Sequence[ThreadAccess], loop: Ranged, is_previous: bool
) -> tuple[ThreadAccess, ...]:
    """`accesses` in an earlier iteration of a loop around them: in the one just before where
    `is_previous`, else in any."""
    if is_previous:
        earlier: Expr = loop.var - 1
        known: Scope = (Holds(loop.minimum < loop.var),)
    else:
        earlier = Var(f"{loop.var.name}.earlier", loop.var.dtype)
        known = (Ranged(earlier, loop.minimum, loop.extent), Holds(earlier < loop.var))

    def shifted(scope: Scope) -> Scope:
        place = next(k for k, entry in enumerate(scope) if entry is loop)
        inner = (_renamed(entry, {loop.var: earlier}) for entry in scope[place + 1 :])
        return (*scope[: place + 1], *known, *inner)

    return _in_scopes(accesses, shifted, {loop.var: earlier})


def narrowed(
    accesses: Sequence[ThreadAccess], condition: Expr
) -> tuple[ThreadAccess, ...]:
    """`accesses` where `condition` holds, too."""
    entry = Holds(condition)
    return _in_scopes(accesses, lambda scope: (*scope, entry), {})


def _in_scopes(
    accesses: Sequence[ThreadAccess],
    change: Callable[[Scope], Scope],
    names: Mapping[Var, Expr],
) -> tuple[ThreadAccess, ...]:
    """`accesses` in other scopes. Those of one scope stay in one, so that what is known of it is
    worked out once."""
    scopes = {id(access.scope): access.scope for access in accesses}
    changed = {key: change(scope) for key, scope in scopes.items()}
    return tuple(
        ThreadAccess(
            access.buffer,
            tuple(substitute(index, names) for index in access.indices),
            access.effect,
            changed[id(access.scope)],
        )
        for access in accesses
    )


def _renamed(entry: Entry, names: Mapping[Var, Expr]) -> Entry:
    """`entry` with variables replaced, the one that it binds by another variable."""
    if isinstance(entry, Holds):
        condition = substitute(entry.condition, names)
        return entry if condition is entry.condition else Holds(condition)
    var = names.get(entry.var, entry.var)
    assert isinstance(var, Var)
    if isinstance(entry, Named):
        value = substitute(entry.value, names)
        return entry if value is entry.value and var is entry.var else Named(var, value)
    ends = substitute(entry.minimum, names), substitute(entry.extent, names)
    is_same = ends[0] is entry.minimum and ends[1] is entry.extent and var is entry.var
    return entry if is_same else Ranged(var, *ends)


class _Unreachable(Exception):
    """No two threads are in these scopes at once."""


class ThreadConflicts:
    """Answers for one kernel: `threads` are its threadIdx loops, `facts` what is known of the
    variables around these."""

    def __init__(self, threads: Sequence[For], facts: Facts) -> None:
        self._threads = [
            Ranged(loop.var, loop.minimum, loop.extent) for loop in threads
        ]
        self._around = _extended(facts, self._threads)
        # Keys are ids: what they belong to is kept alive beside the answers.
        self._answers: dict[
            tuple[int, int, frozenset[Var]], tuple[ThreadAccess, ThreadAccess, bool]
        ] = {}
        self._meetings: dict[
            tuple[int, int, frozenset[Var]], tuple[Scope, Scope, _Meeting | None]
        ] = {}

    def facts(self, scope: Scope) -> Facts:
        """What one thread knows of the variables of `scope`."""
        return _extended(
            self._around, [entry for entry in scope if not isinstance(entry, Holds)]
        )

    def between(
        self, p: ThreadAccess, q: ThreadAccess, together: frozenset[Var]
    ) -> bool:
        """Whether `p` of one thread and `q` of another may conflict, when both threads are in the
        same iteration of the loops whose variables are `together`."""
        if p.buffer is not q.buffer or (p.effect == q.effect and p.effect != WRITE):
            return False
        key = id(p), id(q), together
        if key not in self._answers:
            self._answers[key] = (p, q, self._may_meet(p, q, together))
        return self._answers[key][2]

    def _may_meet(
        self, p: ThreadAccess, q: ThreadAccess, together: frozenset[Var]
    ) -> bool:
        meeting = self._meeting(p.scope, q.scope, together)
        if meeting is None:
            return False
        other = (substitute(index, meeting.names) for index in q.indices)
        same_place = starmap(Equation, zip(p.indices, other, strict=True))
        equations = [*meeting.equations, *same_place]
        pairs = [
            Equation(thread.var, meeting.names[thread.var]) for thread in self._threads
        ]
        return not forces_equal(equations, pairs, meeting.facts)

    def _meeting(
        self, first: Scope, second: Scope, together: frozenset[Var]
    ) -> _Meeting | None:
        key = id(first), id(second), together
        if key not in self._meetings:
            try:
                meeting = self._meet(first, second, together)
            except _Unreachable:
                meeting = None
            self._meetings[key] = (first, second, meeting)
        return self._meetings[key][2]

    def _meet(self, first: Scope, second: Scope, together: frozenset[Var]) -> _Meeting:
        bound = [e.var for e in (*self._threads, *second) if not isinstance(e, Holds)]
        names: dict[Var, Expr] = {
            var: Var(f"{var.name}.other", var.dtype)
            for var in bound
            if var not in together
        }
        own = {id(entry) for entry in first}
        renamed = [_renamed(entry, names) for entry in (*self._threads, *second)]
        others = tuple(entry for entry in renamed if id(entry) not in own)
        facts = _extended(self._around, (*first, *others))
        equations = [
            equation
            for entry in (*first, *others)
            if isinstance(entry, Holds)
            for equation in _equalities(entry.condition)
        ]
        return _Meeting(names, facts, equations)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two scopes as those of two threads: the second one's names, and what is known of both."""

    names: Mapping[Var, Expr]
    facts: Facts
    equations: Sequence[Equation]


def _extended(facts: Facts, entries: Sequence[Entry]) -> Facts:
    """`facts`, and what all `entries` say. Equations come before other conditions, of which they
    may tell more: that one can only just hold, for instance. _Unreachable when one cannot."""
    for entry in sorted(entries, key=_order):
        match entry:
            case Ranged(var, minimum, extent):
                facts = facts.bind(var, minimum, extent)
            case Named(var, value) if not _reads_memory(value):
                facts = facts.define(var, value)
            case Holds(condition):
                if as_int(facts.simplifier.representative(condition)) == 0:
                    raise _Unreachable
                pins = list(_pinned(condition, facts))
                for known in (condition, *pins):
                    facts = facts.assume(known)
    return facts


def _order(entry: Entry) -> int:
    if not isinstance(entry, Holds):
        return 0
    return 1 if isinstance(entry.condition, EQ) else 2


def _reads_memory(expr: Expr) -> bool:
    return any(isinstance(item, BufferLoad) for item in walk(expr))


def _equalities(condition: Expr) -> Iterator[Equation]:
    """The sides of the equations that must hold where `condition` does."""
    for item in _conjuncts(condition):
        if isinstance(item, EQ) and item.a.dtype.is_int:
            yield Equation(item.a, item.b)


def _pinned(condition: Expr, facts: Facts) -> Iterator[Expr]:
    """x == 0 and y == 0 for x * 2 + y < 1, where neither is negative: what holds of the variables
    of a sum that can only just hold the condition."""
    for item in _conjuncts(condition):
        if isinstance(item, LT | LE) and item.a.dtype.is_int:
            distance = facts.simplifier.representative(Sub(item.b, item.a))
            total = facts.bounds.exact_sum(distance)
            least = 1 if isinstance(item, LT) else 0
            if total is not None and facts.bounds.interval_of_sum(total).high == least:
                yield from _at_their_ends(total, facts)


def _at_their_ends(total: Sum, facts: Facts) -> Iterator[Expr]:
    """That each variable of a sum has the value that makes it the greatest."""
    for monomial, factor in total.terms.items():
        item = facts.table.expr(monomial[0])
        if len(monomial) == 1 and isinstance(item, Var):
            values = facts.bounds.interval(item)
            end = values.high if factor > 0 else values.low
            if end is not None:
                yield EQ(item, IntImm(end, item.dtype))


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    stack = [condition]
    while stack:
        item = stack.pop()
        if isinstance(item, And):
            stack += [item.b, item.a]
        else:
            yield item

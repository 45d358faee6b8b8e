"""Classifies each access of a function by the reason why it stays within its buffer.

An access is *proved* if that follows from the loops and conditions around it. It is *checked at
entry* if it follows from these and from the function's requirements. It *depends on data* if an
index, or a loop or condition around it, reads memory. The rest is *not stated*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from refcomp.arith import Facts
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import AddressOf, BufferLoad
from refcomp.ir.expr import Expr, IfThenElseExpr, Let, Not, Select, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import children, variables_in, walk
from refcomp.ir.stmt import (
    AtomicUpdate,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Prefetch,
)
from refcomp.lowering.entry_conditions import Given, with_entry_conditions
from refcomp.passes.analysis.access_ranges import open_index

PROVED, AT_ENTRY, BY_DATA = "proved", "checked at entry", "depends on data"
NOT_STATED = "not stated"
KINDS = (PROVED, AT_ENTRY, BY_DATA, NOT_STATED)


@dataclass(frozen=True)
class BoundsReport:
    """Each access as (its text, one of KINDS), and the conditions that are checked at entry."""

    accesses: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return the number of accesses of each kind."""
        kinds = [kind for _, kind in self.accesses]
        return {kind: kinds.count(kind) for kind in KINDS}

    def texts(self, kind: str) -> tuple[str, ...]:
        """The accesses of one kind, each text once."""
        return tuple(
            dict.fromkeys(text for text, its_kind in self.accesses if its_kind == kind)
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON value: the counts, the conditions, and the accesses that are not proved."""
        counts = {kind.replace(" ", "_"): count for kind, count in self.counts.items()}
        listed = {
            "conditions": list(self.conditions),
            "accesses_by_data": list(self.texts(BY_DATA)),
            "accesses_not_stated": list(self.texts(NOT_STATED)),
        }
        return counts | listed

    def __str__(self) -> str:
        counts = ", ".join(
            f"{count} {kind}" for kind, count in self.counts.items() if count
        )
        lines = [
            f"bounds: {len(self.accesses)} accesses" + (f": {counts}" if counts else "")
        ]
        lines += [f"  {AT_ENTRY}: {condition}" for condition in self.conditions]
        lines += [
            f"  {kind}: {text}" for kind in KINDS[2:] for text in self.texts(kind)
        ]
        return "\n".join(lines)


@deep_recursion()
def bounds_of(func: PrimFunc) -> BoundsReport:
    """Return the report on `func`, which is at the nested level."""
    func = with_entry_conditions(func)
    facts = Facts()
    for symbol in func.symbols:
        facts = facts.nonnegative(symbol)
    accesses = _Accesses(func).found(func.body, _Around(facts))
    conditions = tuple(
        print_expr(r.condition)
        + (f" ({r.origin.by} {r.origin.text})" if r.origin else "")
        for r in func.requires
    )
    return BoundsReport(tuple(accesses), conditions)


@dataclass(frozen=True, slots=True)
class _Around:
    """The facts at a node, and the variables whose values depend on data."""

    facts: Facts
    is_by_data: bool = False
    by_data: frozenset[Var] = frozenset()

    def reads(self, expr: Expr) -> bool:
        """Return True if memory decides on the value of `expr`."""
        if any(isinstance(node, BufferLoad) for node in walk(expr)):
            return True
        return not self.by_data.isdisjoint(variables_in(expr))

    def under(self, condition: Expr) -> _Around:
        """Return this place where `condition` holds."""
        is_by_data = self.is_by_data or self.reads(condition)
        return _Around(self.facts.assume(condition), is_by_data, self.by_data)

    def in_loop(self, loop: For) -> _Around:
        """Return this place in an iteration of `loop`."""
        facts = self.facts.bind(loop.var, loop.minimum, loop.extent)
        return self._with(
            loop.var, facts, self.reads(loop.minimum) or self.reads(loop.extent)
        )

    def with_let(self, var: Var, value: Expr) -> _Around:
        """Return this place where `var` is `value`."""
        return self._with(var, self.facts.let(var, value), self.reads(value))

    def _with(self, var: Var, facts: Facts, is_by_data: bool) -> _Around:
        by_data = self.by_data | {var} if is_by_data else self.by_data
        return _Around(facts, self.is_by_data, by_data)


class _Accesses:
    """Walks a function, with what is known at each place."""

    def __init__(self, func: PrimFunc) -> None:
        self._given = Given(func.requires)

    def found(self, node: Node, around: _Around) -> Iterator[tuple[str, str]]:
        """The text of each access in `node`, and how its bounds are known."""
        if isinstance(node, BufferLoad | BufferStore | AtomicUpdate):
            yield _text(node), self._kind(node, around)
        if isinstance(node, AddressOf):
            yield print_expr(node), NOT_STATED
        for part, inside in _parts(node, around):
            yield from self.found(part, inside)

    def _kind(self, node: Any, around: _Around) -> str:
        if self._is_inside(node, around.facts):
            return PROVED
        # They are assumed inside the loops, where no extent is empty.
        if self._is_inside(
            node, self._given.about(node.buffer.name, _text(node), around.facts)
        ):
            return AT_ENTRY
        is_by_data = around.is_by_data or any(map(around.reads, node.indices))
        return BY_DATA if is_by_data else NOT_STATED

    def _is_inside(self, node: Any, facts: Facts) -> bool:
        dims = zip(node.indices, node.buffer.shape, strict=True)
        return all(open_index(index, extent, facts) is None for index, extent in dims)


def _parts(node: Node, around: _Around) -> Iterator[tuple[Node, _Around]]:
    """The children of `node`, each with what is known there."""
    match node:
        case For():
            yield from ((part, around) for part in (node.minimum, node.extent))
            yield node.body, around.in_loop(node)
        case LetStmt() | Let():
            yield node.value, around
            yield node.body, around.with_let(node.var, node.value)
        case IfThenElse():
            yield node.condition, around
            yield node.then_case, around.under(node.condition)
            if node.else_case is not None:
                yield node.else_case, around.under(Not(node.condition))
        case IfThenElseExpr() | Select():
            yield node.condition, around
            yield node.true_value, around.under(node.condition)
            yield node.false_value, around.under(Not(node.condition))
        case Prefetch():  # a hint, which is not an error out of range
            return
        case _:
            yield from ((part, around) for part in children(node))


def _text(node: Any) -> str:
    return f"{node.buffer.name}[{', '.join(map(print_expr, node.indices))}]"

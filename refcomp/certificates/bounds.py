"""Classification of each access of a function by the reason why it stays within its buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from refcomp.arith import Facts
from refcomp.arith.attained import is_size
from refcomp.foundation.python_limits import deep_recursion
from refcomp.ir.buffer import AddressOf, BufferLoad
from refcomp.ir.expr import Expr, IfThenElseExpr, Let, Not, Select, Var
from refcomp.ir.func import PrimFunc, Requirement
from refcomp.ir.node import Node
from refcomp.ir.printer import print_expr, print_requirement
from refcomp.ir.rewrite import children, variables_in, walk
from refcomp.ir.stmt import (
    AtomicUpdate,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    Prefetch,
)
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.entry_conditions import Given, with_entry_conditions
from refcomp.lowering.entry_points import AccessContext, OutOfRange, PointRules
from refcomp.passes.analysis.access_ranges import open_index

_Access = BufferLoad | BufferStore | AtomicUpdate


class Reason(StrEnum):
    """The reason why an access stays within its buffer."""

    PROVED = "proved"  # follows from the loops and conditions around it
    AT_ENTRY = "checked at entry"  # follows from these and the function's requirements
    # An index, or a loop or condition around it, reads memory.
    BY_DATA = "depends on data"
    NOT_STATED = "not stated"


@dataclass(frozen=True)
class BoundsReport:
    """The accesses of a function, and the conditions that are checked at its entry."""

    accesses: tuple[tuple[str, Reason], ...]  # each with its text
    conditions: tuple[str, ...]

    @cached_property
    def counts(self) -> dict[Reason, int]:
        """Return the number of accesses for each reason."""
        reasons = [reason for _, reason in self.accesses]
        return {reason: reasons.count(reason) for reason in Reason}

    def texts(self, reason: Reason) -> tuple[str, ...]:
        """Return the accesses with one reason, each text once."""
        return tuple(dict.fromkeys(text for text, r in self.accesses if r == reason))

    def to_json(self) -> dict[str, object]:
        """Return the counts, the conditions, and the accesses without a proof, as JSON."""
        counts: dict[str, object] = {
            reason.replace(" ", "_"): count for reason, count in self.counts.items()
        }
        return counts | {
            "conditions": list(self.conditions),
            "accesses_by_data": list(self.texts(Reason.BY_DATA)),
            "accesses_not_stated": list(self.texts(Reason.NOT_STATED)),
        }

    def __str__(self) -> str:
        counts = [f"{count} {reason}" for reason, count in self.counts.items() if count]
        head = f"bounds: {len(self.accesses)} accesses"
        lines = [f"{head}: {', '.join(counts)}" if counts else head]
        lines += [f"  {Reason.AT_ENTRY}: {condition}" for condition in self.conditions]
        for reason in (Reason.BY_DATA, Reason.NOT_STATED):
            lines += [f"  {reason}: {text}" for text in self.texts(reason)]
        return "\n".join(lines)


@deep_recursion()
def bounds_of(func: PrimFunc) -> BoundsReport:
    """Return the report on `func`, which is at the nested level."""
    func = with_entry_conditions(func)
    facts = Facts()
    for symbol in func.symbols:
        facts = facts.nonnegative(symbol)
    scalars = (p for p in func.params if isinstance(p, Var) and is_size(p))
    given = _Given(func.requires, facts, frozenset((*func.symbols, *scalars)))
    accesses = _accesses(func.body, _AccessScope(given, facts))
    conditions = []
    for requirement in func.requires:
        text = print_requirement(requirement)
        if requirement.origin:
            text += f" ({requirement.origin.by} {requirement.origin.text})"
        conditions.append(text)
    return BoundsReport(tuple(accesses), tuple(conditions))


class _Given(Given):
    """The requirements of a function, and what they are about."""

    def __init__(
        self, requires: Sequence[Requirement], facts: Facts, symbols: frozenset[Var]
    ) -> None:
        super().__init__(requires)
        self._facts = facts  # about symbols
        self._rules = PointRules(symbols)
        self._at_points = [one for one in requires if one.axes]

    def reason_at_points(self, access: _Access, around: AccessContext) -> Reason | None:
        """Return why `access` is in range at each point; None if that is not stated."""
        facts = self.about(access.buffer.name, _text(access), self._facts)
        needed: list[Requirement] = []
        for index, size in zip(access.indices, access.buffer.shape, strict=True):
            found = self._rules.required(around, index, size, facts)
            if found is None or isinstance(found, OutOfRange):
                return None
            needed += found
        for requirement in needed:
            if not any(structurally_equal(requirement, r) for r in self._at_points):
                return None
        return Reason.AT_ENTRY if needed else Reason.PROVED


@dataclass(frozen=True, slots=True)
class _AccessScope:
    """Knowledge at one place of a function."""

    given: _Given
    facts: Facts
    is_by_data: bool = False  # a condition around the place depends on data
    by_data: frozenset[Var] = frozenset()  # variables whose values depend on data
    around: AccessContext = field(default_factory=AccessContext)

    def depends_on_data(self, expr: Expr) -> bool:
        """Return True if the value of `expr` depends on the contents of memory."""
        if any(isinstance(node, BufferLoad) for node in walk(expr)):
            return True
        return not self.by_data.isdisjoint(variables_in(expr))

    def under(self, condition: Expr) -> _AccessScope:
        """Return the scope in which `condition` holds."""
        is_by_data = self.is_by_data or self.depends_on_data(condition)
        facts = self.facts.assume(condition)
        around = self.around.with_guard(condition)
        return _AccessScope(self.given, facts, is_by_data, self.by_data, around)

    def in_loop(self, loop: For) -> _AccessScope:
        """Return the scope in an iteration of `loop`."""
        facts = self.facts.bind(loop.var, loop.minimum, loop.extent)
        around = self.around.with_axis(loop.var, loop.minimum, loop.extent)
        return self._binding(loop.var, facts, around, loop.minimum, loop.extent)

    def with_let(self, var: Var, value: Expr) -> _AccessScope:
        """Return the scope in which `var` is `value`."""
        around = self.around.with_let(var, value)
        return self._binding(var, self.facts.let(var, value), around, value)

    def _binding(
        self, var: Var, facts: Facts, around: AccessContext, *values: Expr
    ) -> _AccessScope:
        by_data = self.by_data
        if any(map(self.depends_on_data, values)):
            by_data |= {var}
        return _AccessScope(self.given, facts, self.is_by_data, by_data, around)

    def reason(self, access: _Access) -> Reason:
        """Return why `access` stays within its buffer here."""
        if _is_inside(access, self.facts):
            return Reason.PROVED
        # The requirements are assumed here, not at the entry: inside a loop no extent is empty.
        facts = self.given.about(access.buffer.name, _text(access), self.facts)
        if _is_inside(access, facts):
            return Reason.AT_ENTRY
        if self.is_by_data or any(map(self.depends_on_data, access.indices)):
            return Reason.BY_DATA
        return self.given.reason_at_points(access, self.around) or Reason.NOT_STATED


def _is_inside(access: _Access, facts: Facts) -> bool:
    dims = zip(access.indices, access.buffer.shape, strict=True)
    return all(open_index(index, extent, facts) is None for index, extent in dims)


def _accesses(node: Node, scope: _AccessScope) -> Iterator[tuple[str, Reason]]:
    """Yield the text of each access in `node`, and why it stays within its buffer."""
    if isinstance(node, _Access):
        yield _text(node), scope.reason(node)
    if isinstance(node, AddressOf):
        yield print_expr(node), Reason.NOT_STATED
    for part, inner in _parts(node, scope):
        yield from _accesses(part, inner)


def _parts(node: Node, scope: _AccessScope) -> Iterator[tuple[Node, _AccessScope]]:
    """Yield the children of `node`, each with its scope."""
    match node:
        case For():
            yield node.minimum, scope
            yield node.extent, scope
            yield node.body, scope.in_loop(node)
        case LetStmt() | Let():
            yield node.value, scope
            yield node.body, scope.with_let(node.var, node.value)
        case IfThenElse():
            yield node.condition, scope
            yield node.then_case, scope.under(node.condition)
            if node.else_case is not None:
                yield node.else_case, scope.under(Not(node.condition))
        case IfThenElseExpr() | Select():
            yield node.condition, scope
            yield node.true_value, scope.under(node.condition)
            yield node.false_value, scope.under(Not(node.condition))
        case Prefetch():  # a hint: no address is an error
            return
        case _:
            for child in children(node):
                yield child, scope


def _text(access: _Access) -> str:
    return f"{access.buffer.name}[{', '.join(map(print_expr, access.indices))}]"

"""Derive conditions on the sizes of a call from the accesses of a function.

Before:  func f(A: f32[n], C: f32[m] out) { for i in range(m) { C[i] = A[i] } }
After:   func f(A: f32[n], C: f32[m] out) requires (m - 1 < n) { for i in range(m) { C[i] = A[i] } }

Requires the nested level, where an access has one index for each dimension.

- An access that is out of range in every call is refused.
- If the sizes decide, the ends of the index give a condition on them (see `arith.attained`).
- For an index or a guard whose ends are not computed, each call checks all points of the loops
  (see `entry_points`).
- An access that depends on data is not judged. So every correct call fulfils the conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from refcomp.arith import Facts, prove, simplify
from refcomp.arith.attained import Box, is_size
from refcomp.arith.ends import Bound
from refcomp.foundation.errors import UserError
from refcomp.foundation.python_limits import deep_recursion
from refcomp.foundation.snippets import Snippet
from refcomp.ir.buffer import BufferLoad
from refcomp.ir.expr import Expr, IfThenElseExpr, Select, Var
from refcomp.ir.func import PrimFunc, Requirement, RequirementOrigin
from refcomp.ir.logic_operands import NEST_CONDITIONS, logic_operands
from refcomp.ir.node import Node
from refcomp.ir.printer import print_expr, print_stmt
from refcomp.ir.rewrite import children, variables_in, walk, with_changes
from refcomp.ir.stmt import (
    Allocate,
    AtomicUpdate,
    Block,
    BufferStore,
    For,
    IfThenElse,
    LetStmt,
    ParallelRegion,
    Pragma,
    Prefetch,
    Stmt,
    line_of,
)
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.entry_points import (
    AccessContext,
    OutOfRange,
    PointRules,
)

_VERBS = {BufferLoad: "reads", BufferStore: "writes", AtomicUpdate: "updates"}
_MAX_ASSUMED = 32  # requirements that one proof assumes
# So many conditions are followed inside of one statement. Accesses under others are not judged,
# since n conditions that share operands make 2 ** n branches.
_MAX_CONDITIONS = 64


@dataclass(frozen=True, slots=True)
class _Access:
    """An access of `stmt`. It happens once for each value of the axes of `box`."""

    node: BufferLoad | BufferStore | AtomicUpdate
    stmt: Stmt
    box: Box
    around: AccessContext
    # How to guard the access, if a plain condition around it is not enough.
    advice: str = ""

    @property
    def verb(self) -> str:
        return _VERBS[type(self.node)]

    def __str__(self) -> str:
        indices = ", ".join(map(print_expr, self.node.indices))
        return f"{self.node.buffer.name}[{indices}]"


class Given:
    """The requirements of a function, of which a proof assumes at most `_MAX_ASSUMED`.

    Each assumption makes a proof slower. So if there are many requirements, each is assumed only
    for accesses of its own buffer.
    """

    def __init__(self, requires: Sequence[Requirement]) -> None:
        # A requirement with axes says nothing about other variables.
        self._requires = [one for one in requires if not one.axes]
        self._by_buffer: dict[str, list[Requirement]] = {}
        for requirement in self._requires:
            buffer = _buffer_of(requirement)
            self._by_buffer.setdefault(buffer, []).append(requirement)

    def about(self, buffer: str, access: object, facts: Facts) -> Facts:
        """Return `facts` with the requirements that may matter for an access.

        If there are too many, prefer the requirements that came from the access itself.

        Args:
            buffer: the name of the buffer that is accessed.
            access: the access. Its text is such as `A[i + 1]`.
            facts: what is known without the requirements.
        """
        chosen = self._requires
        if len(chosen) > _MAX_ASSUMED:
            # Requirements without a buffer may matter for any access.
            names = dict.fromkeys(("", buffer))
            chosen = [r for name in names for r in self._by_buffer.get(name, ())]
        if len(chosen) > _MAX_ASSUMED:
            text = str(access)
            own = [r for r in chosen if r.origin is not None and r.origin.text == text]
            chosen = own or chosen
        for requirement in chosen[-_MAX_ASSUMED:]:
            facts = facts.assume(requirement.condition)
        return facts


def _buffer_of(requirement: Requirement) -> str:
    return "" if requirement.origin is None else requirement.origin.buffer


@deep_recursion()
def with_entry_conditions(
    func: PrimFunc, lines: Mapping[Stmt, str] = MappingProxyType({})
) -> PrimFunc:
    """Return `func` with the requirements of its accesses; `func` itself if it has them already.

    Args:
        func: a function at the nested level.
        lines: statement without an origin -> the user's source line, as file:line.

    Raises:
        UserError: an access is out of range in every call.
    """
    facts = Facts()
    for symbol in func.symbols:
        facts = facts.nonnegative(symbol)
    scalars = (p for p in func.params if isinstance(p, Var) and is_size(p))
    box = Box(facts, frozenset((*func.symbols, *scalars)))
    required = {
        id(facts.table.intern(r.condition)): r for r in func.requires if not r.axes
    }
    given = Given(func.requires)
    unjudged: list[_Index] = []
    for requirement in _requirements(func, box, lines, unjudged):
        condition = requirement.condition
        key = id(facts.table.intern(condition))
        if key in required:
            # A condition that was read from a text has no origin yet.
            if required[key].origin is None:
                required[key] = requirement
            continue
        assumed = given.about(_buffer_of(requirement), "", facts)
        if not prove(condition, assumed):
            required[key] = requirement
    found = list(required.values())
    at_points = [r for r in func.requires if r.axes]
    for requirement in _required_at_points(func, box, lines, unjudged, Given(found)):
        # One that was read from a text has axes of its own, and no origin yet.
        same = [r for r in at_points if structurally_equal(r, requirement)]
        at_points = [r for r in at_points if r not in same]
        at_points.append(requirement)
    return with_changes(func, requires=(*found, *at_points))


@dataclass(frozen=True, slots=True)
class _Index:
    """The index of an access in one dimension."""

    access: _Access
    dim: int

    @property
    def expr(self) -> Expr:
        return self.access.node.indices[self.dim]

    @property
    def size(self) -> Expr:
        return self.access.node.buffer.shape[self.dim]


def _requirements(
    func: PrimFunc, box: Box, lines: Mapping[Stmt, str], unjudged: list[_Index]
) -> Iterator[Requirement]:
    """Yield the requirements of all accesses.

    Append the indices whose ends are not computed to `unjudged`.
    """
    # Accesses often share index objects: judge each once for its box, buffer and dimension.
    judged: set[tuple[Box, AccessContext, int, int, int]] = set()
    for access in _certain_accesses(func.body, box):
        indices = access.node.indices
        buffer = access.node.buffer
        if len(indices) != len(buffer.shape):
            continue  # an update at the flat level has one offset instead of indices
        for dim, index in enumerate(indices):
            key = (access.box, access.around, id(buffer), dim, id(index))
            if key in judged:
                continue
            judged.add(key)
            judgement = access.box.judge(index, buffer.shape[dim])
            if judgement.beyond is not None:
                _refuse(func, access, dim, judgement.beyond, lines)
            if not judgement.is_exact:
                unjudged.append(_Index(access, dim))
            for condition in judgement.conditions:
                yield Requirement(condition, _origin(access, dim, lines))


def _required_at_points(
    func: PrimFunc,
    box: Box,
    lines: Mapping[Stmt, str],
    unjudged: Sequence[_Index],
    given: Given,
) -> Iterator[Requirement]:
    """Yield the requirements of the indices in `unjudged`. Each is checked at all points."""
    assert box.symbols is not None
    rules = PointRules(box.symbols)
    for index in unjudged:
        access = index.access
        facts = given.about(access.node.buffer.name, access, box.facts)
        found = rules.required(access.around, index.expr, index.size, facts)
        if isinstance(found, OutOfRange):
            _refuse(func, access, index.dim, found.value, lines)
        for requirement in found or ():
            origin = _origin(access, index.dim, lines)
            yield with_changes(requirement, origin=origin)


def _certain_accesses(body: Stmt, box: Box) -> Iterator[_Access]:
    """Yield the accesses, each with the loops and the guards around it."""
    stack: list[tuple[Stmt, _JudgedContext]] = [
        (body, _JudgedContext(box, AccessContext()))
    ]
    while stack:
        stmt, place = stack.pop()
        if not place.is_judged:
            continue  # the loops around may have no iterations
        if isinstance(stmt, BufferStore | AtomicUpdate):
            yield _Access(stmt, stmt, place.box, place.around)
        yield from _loads(stmt, place)
        match stmt:
            case Block(stmts=stmts):
                stack += [(part, place) for part in reversed(stmts)]
            case For(var=var, minimum=minimum, extent=extent, body=inner):
                stack.append((inner, place.with_axis(var, minimum, extent)))
            case LetStmt(var=var, value=value, body=inner):
                stack.append((inner, place.with_let(var, value)))
            case Allocate() | Pragma() | ParallelRegion():
                stack.append((stmt.body, place))
            case IfThenElse(condition=condition):
                if stmt.else_case is not None:
                    fails = place.with_guard(condition, holds=False)
                    stack.append((stmt.else_case, fails))
                stack.append((stmt.then_case, place.with_guard(condition)))


@dataclass(frozen=True, eq=False, slots=True)
class _JudgedContext:
    """The loops, lets and guards around a statement or an expression."""

    box: Box  # unknown inside of a loop, let or guard that it does not follow
    around: AccessContext

    @property
    def is_judged(self) -> bool:
        """True if accesses may happen, and the box or the context is followed."""
        is_followed = self.box.is_known or self.around.is_stated
        return is_followed and not self.box.is_empty

    def with_axis(self, var: Var, minimum: Expr, extent: Expr) -> _JudgedContext:
        box = self.box
        if box.is_known:
            box = box.with_axis(var, minimum, extent)
        return _JudgedContext(box, self.around.with_axis(var, minimum, extent))

    def with_let(self, var: Var, value: Expr) -> _JudgedContext:
        box = self.box
        if box.is_known:
            box = box.with_let(var, value)
        return _JudgedContext(box, self.around.with_let(var, value))

    def with_guard(self, condition: Expr, holds: bool = True) -> _JudgedContext:
        box = self.box
        if box.is_known:
            box = box.with_guard(condition, holds)
        return _JudgedContext(box, self.around.with_guard(condition, holds))


def _loads(stmt: Stmt, around: _JudgedContext) -> Iterator[_Access]:
    """Yield the reads that `stmt` itself makes, each with the guards around it."""
    if isinstance(stmt, Prefetch):
        return  # a hint may be out of range
    parts = [part for part in children(stmt) if isinstance(part, Expr)]
    stack: list[tuple[Node, _JudgedContext]] = [
        (part, around) for part in reversed(parts)
    ]
    operands = logic_operands(parts)
    seen: set[tuple[int, _JudgedContext]] = set()
    budget = _MAX_CONDITIONS
    while stack:
        node, place = stack.pop()
        if (id(node), place) in seen or not place.is_judged:
            continue
        seen.add((id(node), place))
        if isinstance(node, BufferLoad):
            advice = NEST_CONDITIONS if id(node) in operands else ""
            yield _Access(node, stmt, place.box, place.around, advice)
        if isinstance(node, IfThenElseExpr | Select):
            branches = [
                (node.false_value, place.with_guard(node.condition, holds=False)),
                (node.true_value, place.with_guard(node.condition)),
            ]
            for branch in branches:
                if not branch[1].box.is_known:
                    budget -= 1
                if branch[1].box.is_known or budget >= 0:
                    stack.append(branch)
            stack.append((node.condition, place))
        else:
            stack += [(part, place) for part in reversed(children(node))]


def _origin(access: _Access, dim: int, lines: Mapping[Stmt, str]) -> RequirementOrigin:
    stmt = access.stmt
    by = f"`{_first_line(stmt)}`"
    line = lines.get(stmt, "")
    if stmt.origin is not None:
        line = stmt.origin.line
        if stmt.origin.stage:
            by = f"stage {stmt.origin.stage}"
    return RequirementOrigin(
        str(access),
        f"{by} {access.verb}",
        line,
        access.node.buffer.name,
        dim,
        access.advice,
    )


def _first_line(stmt: Stmt) -> str:
    return print_stmt(stmt).partition("\n")[0]


def _refuse(
    func: PrimFunc, access: _Access, dim: int, beyond: Bound, lines: Mapping[Stmt, str]
) -> NoReturn:
    buffer = access.node.buffer
    where = _first_line(access.stmt)
    used = set(variables_in(access.node.indices[dim]))
    for node in walk(func.body):
        if isinstance(node, For) and node.var in used:
            where += f", in {_first_line(node).removesuffix(' {')}"
    if access.stmt.origin is not None:
        where += f" ({access.stmt.origin.place()})"
    raise UserError(
        f"{func.name} {access.verb} index {beyond} of dimension {dim} of {buffer.name}",
        where=where,
        why=f"that dimension has the elements 0 .. {simplify(buffer.shape[dim] - 1)}",
        remedy=f"shorten the loops around {access}, "
        f"or {access.advice or 'access it under a condition'}",
        at=line_of(access.stmt.origin) or Snippet(lines.get(access.stmt, "")),
    )

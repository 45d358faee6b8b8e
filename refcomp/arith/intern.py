"""Hash-consing of expressions, so that structural equality is identity while facts are in use.

`ExprTable.intern` maps each expression to its representative: the first one seen of that
structure. Everything else in this room works on representatives and keys its tables by their
`id`; the table keeps them alive. Nothing here recurses: deep trees must not exhaust the stack.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable
from operator import is_
from typing import Any, TypeVar

from refcomp.foundation.dtype import DType
from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import (
    Broadcast,
    Expr,
    IfThenElseExpr,
    IntImm,
    Var,
)
from refcomp.ir.node import MADE_OF_NODES, Node
from refcomp.ir.rewrite import children

_T = TypeVar("_T")

# Where a variable stands in a sum: loops in the order of their binding, then variables nobody
# declared, then shape symbols; so that an index reads `i * 64 + j + n`.
LOOP_RANK, FREE_RANK, SYMBOL_RANK = 0, 1, 2
Rank = tuple[int, int]
# The serial number of constants, which come after all other operands.
_NOWHERE = (
    (SYMBOL_RANK + 1, 0),
    (FREE_RANK, -1),
)


class ExprTable:
    """The representatives of all expressions met, numbered in order of appearance."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, Expr]] = {}
        self._by_structure: dict[Hashable, Expr] = {}
        self._serials: dict[int, int] = {}
        self._all: list[Expr] = []
        self._declared: dict[int, Rank] = {}
        self._spans: dict[int, tuple[Rank, Rank]] = {}
        self._memory: dict[int, bool] = {}
        self._choices: dict[int, int] = {}

    def intern(self, expr: Expr) -> Expr:
        """The representative of `expr`."""
        hit = self._known.get(id(expr))
        if hit is None:
            bottom_up(expr, children, self._known, self._register)
            hit = self._known[id(expr)]
        return hit[1]

    def make(self, cls: type[Any], *fields: Any) -> Expr:
        """The representative of `cls(*fields)`, whose child expressions are representatives."""
        key = (cls, *map(id, fields)) if cls in MADE_OF_NODES else _key(cls, fields)
        found = self._by_structure.get(key)
        return self._add(key, cls(*fields)) if found is None else found

    def constant(self, value: int, dtype: DType) -> Expr:
        """The integer or bool constant `value`, wrapped to `dtype`; a Broadcast for a vector."""
        scalar = IntImm(value, dtype.element)
        made = self.make(IntImm, scalar.value, scalar.dtype)
        return made if dtype.lanes == 1 else self.make(Broadcast, made, dtype.lanes)

    def serial(self, expr: Expr) -> int:
        """The number of a representative."""
        return self._serials[id(expr)]

    def expr(self, serial: int) -> Expr:
        """The representative of that number."""
        return self._all[serial]

    def declare(self, var: Var, kind: int) -> None:
        """Says that `var` is a loop variable or a symbol; the first word counts."""
        self.intern(var)
        self._declared.setdefault(id(var), (kind, len(self._declared)))

    def span(self, expr: Expr) -> tuple[Rank, Rank]:
        """The least and the greatest rank of the variables in a representative."""
        if id(expr) not in self._spans:
            bottom_up(expr, children, self._spans, self._span)
        return self._spans[id(expr)]

    def reads_memory(self, expr: Expr) -> bool:
        """Whether a representative holds a load, so that its value may change with time."""
        if id(expr) not in self._memory:
            bottom_up(expr, children, self._memory, self._reads_memory)
        return self._memory[id(expr)]

    def choices(self, expr: Expr) -> int:
        """How many lazy choices lie inside one another in a representative."""
        if id(expr) not in self._choices:
            bottom_up(expr, children, self._choices, self._count_choices)
        return self._choices[id(expr)]

    def _register(self, expr: Expr) -> tuple[Expr, Expr]:
        if expr.by_identity:  # two variables of one name are not the same
            return expr, self._add((Var, id(expr)), expr)
        cls = type(expr)
        old = [getattr(expr, name) for name in cls.__match_args__]
        if cls in MADE_OF_NODES:
            known = self._known
            fields = [known[id(part)][1] for part in old]
            key: Hashable = (cls, *map(id, fields))
        else:
            fields = [self._field(value) for value in old]
            key = _key(cls, fields)
        found = self._by_structure.get(key)
        if found is None:
            is_same = all(map(is_, fields, old))
            found = self._add(key, expr if is_same else cls(*fields))
        return expr, found

    def _field(self, value: Any) -> Any:
        """A field with its children, which were registered before, replaced by theirs."""
        hit = self._known.get(id(value))
        if hit is not None:
            return hit[1]
        if isinstance(value, tuple) and value:
            items = tuple([self._field(item) for item in value])
            return value if all(map(is_, items, value)) else items
        return value

    def _add(self, key: Hashable, expr: Expr) -> Expr:
        # Two threads that share facts may both come here; both must leave with one node.
        found = self._by_structure.setdefault(key, expr)
        if found is expr:
            self._serials[id(expr)] = len(self._all)
            self._all.append(expr)
            self._known[id(expr)] = (expr, expr)
        return found

    def _span(self, expr: Expr) -> tuple[Rank, Rank]:
        if isinstance(expr, Var):
            rank = self._declared.get(id(expr), (FREE_RANK, self._serials[id(expr)]))
            return rank, rank
        inner = [self._spans[id(child)] for child in children(expr)]
        if not inner:
            return _NOWHERE
        return min(low for low, _ in inner), max(inner, key=_reach)[1]

    def _count_choices(self, expr: Expr) -> int:
        inner = max((self._choices[id(child)] for child in children(expr)), default=0)
        return inner + isinstance(expr, IfThenElseExpr)

    def _reads_memory(self, expr: Expr) -> bool:
        if isinstance(expr, BufferLoad | Load):
            return True
        return any(self._memory[id(child)] for child in children(expr))


def _reach(span: tuple[Rank, Rank]) -> tuple[bool, Rank]:
    """The innermost loop comes last; symbols and unknown variables lie outside of all loops."""
    return span[1][0] == LOOP_RANK, span[1]


def _key(cls: type[Any], fields: Iterable[Any]) -> Hashable:
    """What tells nodes of different structure apart, whose children are representatives."""
    return (cls, *[id(f) if isinstance(f, Node) else _hashable(f) for f in fields])


def _hashable(value: Any) -> Hashable:
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, tuple):
        return tuple(id(item) if isinstance(item, Node) else item for item in value)
    plain: Hashable = value
    return plain


def bottom_up(
    root: Expr,
    parts: Callable[[Any], Iterable[Any]],
    done: dict[int, _T],
    compute: Callable[[Any], _T],
) -> None:
    """Fills `done[id(e)] = compute(e)` for all that `root` is made of, parts before wholes.

    `done` must outlive no expression in it.
    """
    stack = [(root, False)]
    while stack:
        expr, has_parts = stack.pop()
        if id(expr) in done:
            continue
        missing = (
            [] if has_parts else [part for part in parts(expr) if id(part) not in done]
        )
        if missing:
            stack.append((expr, True))
            stack += [(part, False) for part in reversed(missing)]
        else:
            done[id(expr)] = compute(expr)


def free_of(expr: Expr, var: Var) -> bool:
    """Whether `expr` does not use `var`."""
    stack = [expr]
    seen = {id(expr)}
    while stack:
        item = stack.pop()
        if item is var:
            return False
        for child in children(item):
            if id(child) not in seen:
                seen.add(id(child))
                stack.append(child)
    return True

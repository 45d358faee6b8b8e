"""Hash-consing of expressions: expressions of equal structure become one object.

`ExprTable.intern` maps each expression to its *representative*, the first expression of the same
structure that the table has seen. Everything else in this room works on representatives, compares
them by identity, and keys its tables by their `id`. The table keeps them alive, so that no `id` is
used twice. Nothing here recurses: deep trees must not exhaust the stack.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import is_
from typing import TypeVar

from refcomp.foundation.dtype import DType
from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import (
    Broadcast,
    Expr,
    IfThenElseExpr,
    IntImm,
    Var,
)
from refcomp.ir.node import MADE_OF_NODES, Node, data_fields
from refcomp.ir.rewrite import children

_T = TypeVar("_T")

# Order of variables in a sum: loop variables in the order of their binding, then variables that
# nobody declared, then shape symbols. So an index reads `i * 64 + j + n`.
LOOP_RANK, FREE_RANK, SYMBOL_RANK = 0, 1, 2
Rank = tuple[int, int]  # one of the three kinds, and the order within it
# The span of constants, which come after all other operands.
_SPAN_OF_CONSTANTS = (
    (SYMBOL_RANK + 1, 0),
    (FREE_RANK, -1),
)


class ExprTable:
    """The representatives of all expressions seen, numbered in order of appearance."""

    def __init__(self) -> None:
        # id(expr) -> (expr, its representative). `expr` is kept alive beside its id.
        self._known: dict[int, tuple[Expr, Expr]] = {}
        self._by_structure: dict[Hashable, Expr] = {}
        self._serials: dict[int, int] = {}
        self._all: list[Expr] = []  # serial number -> representative
        self._kept: list[Expr] = []
        self._constants: dict[tuple[int, DType], Expr] = {}
        # ids of expressions, and of representatives that they are known not to have
        self._different: set[tuple[int, int]] = set()
        self._declared: dict[int, Rank] = {}
        # Properties of representatives by id, computed when first needed.
        self._spans: dict[int, tuple[Rank, Rank]] = {}
        self._memory: dict[int, bool] = {}
        self._choices: dict[int, int] = {}

    def intern(self, expr: Expr) -> Expr:
        """Return the representative of `expr`."""
        hit = self._known.get(id(expr))
        if hit is None:
            if isinstance(expr, IntImm):
                return self._literal(expr)
            if isinstance(expr, Var):
                return self._add((Var, id(expr)), expr)
            bottom_up(expr, children, self._known, self._register)
            hit = self._known[id(expr)]
        return hit[1]

    def keep(self, expr: Expr) -> None:
        """Keep `expr` alive, so that no other expression gets its id or that of a part."""
        self._kept.append(expr)

    def make(self, cls: type[Expr], *fields: object) -> Expr:
        """Return the representative of `cls(*fields)`, whose children are representatives."""
        key = (cls, *map(id, fields)) if cls in MADE_OF_NODES else _key(cls, fields)
        found = self._by_structure.get(key)
        if found is not None:
            return found
        return self._add(key, cls(*fields))

    def constant(self, value: int, dtype: DType) -> Expr:
        """Return the integer or bool `value`, wrapped to `dtype`; a Broadcast for a vector."""
        found = self._constants.get((value, dtype))
        if found is None:
            found = self.intern(IntImm(value, dtype.element))
            if dtype.lanes > 1:
                found = self.make(Broadcast, found, dtype.lanes)
            self._constants[value, dtype] = found
        return found

    def serial(self, expr: Expr) -> int:
        """Return the serial number of a representative."""
        return self._serials[id(expr)]

    def expr(self, serial: int) -> Expr:
        """Return the representative with that serial number."""
        return self._all[serial]

    def declare(self, var: Var, kind: int) -> None:
        """Declare `var` to be of `kind`, one of the ranks. The first declaration counts."""
        self.intern(var)
        self._declared.setdefault(id(var), (kind, len(self._declared)))

    def span(self, expr: Expr) -> tuple[Rank, Rank]:
        """Return the ranks of the outermost and the innermost variable of a representative."""
        memo = self._spans
        if id(expr) in memo:
            return memo[id(expr)]

        def compute(expr: Expr) -> tuple[Rank, Rank]:
            if isinstance(expr, Var):
                rank = self._declared.get(id(expr))
                if rank is None:
                    rank = (FREE_RANK, self._serials[id(expr)])
                return rank, rank
            inner = [memo[id(child)] for child in children(expr)]
            if not inner:
                return _SPAN_OF_CONSTANTS
            first = min(low for low, _ in inner)
            # Symbols and free variables lie outside of all loops.
            last = max(
                (high for _, high in inner), key=lambda r: (r[0] == LOOP_RANK, r)
            )
            return first, last

        bottom_up(expr, children, memo, compute)
        return memo[id(expr)]

    def reads_memory(self, expr: Expr) -> bool:
        """Return True if a representative holds a load, so that its value may change."""
        memo = self._memory
        if id(expr) in memo:
            return memo[id(expr)]

        def compute(expr: Expr) -> bool:
            if isinstance(expr, BufferLoad | Load):
                return True
            return any(memo[id(child)] for child in children(expr))

        bottom_up(expr, children, memo, compute)
        return memo[id(expr)]

    def choices(self, expr: Expr) -> int:
        """Return the depth to which lazy choices are nested in a representative."""
        memo = self._choices
        if id(expr) in memo:
            return memo[id(expr)]

        def compute(expr: Expr) -> int:
            depth = max((memo[id(child)] for child in children(expr)), default=0)
            return depth + isinstance(expr, IfThenElseExpr)

        bottom_up(expr, children, memo, compute)
        return memo[id(expr)]

    def is_same(self, expr: Expr, other: Expr) -> bool:
        """Return True if `other` is the representative of `expr`; does not intern `expr`.

        Both live as long as the table (see `keep`), which remembers the answer.
        """
        known = self._known
        same: dict[int, tuple[Expr, Expr]] = {}
        stack = [(expr, other)]
        while stack:
            a, b = pair = stack.pop()
            hit = known.get(id(a)) or same.get(id(a))
            if hit is not None and hit[1] is b:
                continue
            is_different = hit is not None or (id(a), id(b)) in self._different
            if is_different or not _are_alike(a, b):
                self._different.add((id(expr), id(other)))
                return False
            same[id(a)] = pair
            stack += zip(children(a), children(b), strict=True)
        known.update(same)
        return True

    def _literal(self, expr: IntImm) -> Expr:
        key = (expr.value, expr.dtype)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._add((IntImm, *key), expr)
        return found

    def _register(self, expr: Expr) -> tuple[Expr, Expr]:
        """Return `expr` and its representative; its children are registered already."""
        if expr.by_identity:  # two variables of one name are not the same
            return expr, self._add((Var, id(expr)), expr)
        cls = type(expr)
        parts = children(expr)
        old: Sequence[object] = parts
        fields: Sequence[object]
        key: Hashable
        if cls in MADE_OF_NODES:
            known = self._known
            fields = [known[id(part)][1] for part in parts]
            key = (cls, *map(id, fields))
        else:
            old = fields = [getattr(expr, name) for name in cls.__match_args__]
            if parts:
                fields = [self._with_representatives(value) for value in old]
            key = _key(cls, fields)
        found = self._by_structure.get(key)
        if found is None:
            is_same = all(map(is_, fields, old))
            found = self._add(key, expr if is_same else cls(*fields))
        return expr, found

    def _with_representatives(self, field: object) -> object:
        """Return a field of a node with each child replaced by its representative."""
        hit = self._known.get(id(field))
        if hit is not None:
            return hit[1]
        if isinstance(field, tuple) and field:
            items = tuple([self._with_representatives(item) for item in field])
            return field if all(map(is_, items, field)) else items
        return field

    def _add(self, key: Hashable, expr: Expr) -> Expr:
        # Two threads that share facts may both come here; both must leave with one node.
        found = self._by_structure.setdefault(key, expr)
        if found is expr:
            self._serials[id(expr)] = len(self._all)
            self._all.append(expr)
            self._known[id(expr)] = (expr, expr)
        return found


def _are_alike(a: Expr, b: Expr) -> bool:
    """Return True if two nodes differ in nothing but, perhaps, their children."""
    cls = type(a)
    if cls is not type(b) or cls.by_identity:
        return False
    for name in data_fields(cls):
        if _hashable(getattr(a, name)) != _hashable(getattr(b, name)):
            return False
    return len(children(a)) == len(children(b))


def _key(cls: type[Expr], fields: Iterable[object]) -> Hashable:
    """Return a key that equals that of another node if and only if their structures are equal.

    Children are representatives, and so stand for their structures by identity.
    """
    return (cls, *map(_hashable, fields))


def _hashable(value: object) -> Hashable:
    if isinstance(value, Node):
        return id(value)
    # Bits, since 0.0 == -0.0 although they differ, and NaN does not equal itself.
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, tuple):
        return tuple(map(_hashable, value))
    return value


def bottom_up(
    root: Expr,
    parts: Callable[[Expr], Iterable[Expr]],
    done: dict[int, _T],
    compute: Callable[[Expr], _T],
) -> None:
    """Set `done[id(e)] = compute(e)` for `root` and its parts, transitively, parts first.

    Every expression in `done` must live as long as `done`.
    """
    stack = [root]
    while stack:
        expr = stack[-1]
        if id(expr) in done:  # a shared part, which another parent has pushed, too
            stack.pop()
            continue
        missing = [part for part in parts(expr) if id(part) not in done]
        if missing:
            missing.reverse()
            stack += missing
        else:
            stack.pop()
            done[id(expr)] = compute(expr)


def free_of(expr: Expr, var: Var) -> bool:
    """Return True if `expr` does not use `var`."""
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

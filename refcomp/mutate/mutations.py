"""Mutation operators on loop IR: each makes the small mistakes that a wrong compiler would make.

A mutation is one operator at one place of a program; every place where an operator applies gives
one mutation. Which of them are tried is drawn with a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from refcomp.foundation.dtype import F32, DType
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, walk, with_fields
from refcomp.mutate.mutant import Change

_C = TypeVar("_C", bound=Change)


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mutation operator at one place of a program."""

    operator: str  # one of OPERATORS
    node: Node  # the place
    replacement: Node
    on_indices: bool  # it changes only indices, bounds, and conditions on them

    def apply(self, func: PrimFunc) -> PrimFunc:
        """Return `func` with the node replaced, wherever this one object occurs."""

        def visit(recurse: Rewrite, node: Node) -> Node:
            if node is self.node:
                return self.replacement
            return map_children(node, recurse)

        return with_fields(func, body=rewriter(visit)(func.body))


def is_polynomial(func: PrimFunc) -> bool:
    """Return True if control flow depends only on indices, never on tensor values.

    `func` then computes one polynomial of its data and of the results of the functions it calls.
    """
    for node in walk(func.body):
        match node:
            case ir.Select() | ir.IfThenElseExpr() | st.IfThenElse():
                if not _reads_only_indices(node.condition):
                    return False
            case ir.Min() | ir.Max():
                if not _reads_only_indices(node):
                    return False
    return True


def mutations_of(func: PrimFunc) -> Iterator[Mutation]:
    """Yield all mutations of `func`, in the order of the program."""
    for node in walk(func.body):
        for name, types, change in _TABLE:
            if isinstance(node, types):
                replacement = change(node)
                if replacement is not None:
                    yield Mutation(name, node, replacement, _is_on_indices(node))


def draw(changes: Sequence[_C], count: int, rng: random.Random) -> list[_C]:
    """Return at most `count` changes at random, from each mutation operator in turn.

    A uniform sample would hold few changes by operators that seldom apply.
    """
    by_operator: dict[str, list[_C]] = {}
    for change in rng.sample(changes, len(changes)):
        by_operator.setdefault(change.operator, []).append(change)
    drawn: list[_C] = []
    while len(drawn) < count and any(by_operator.values()):
        for group in by_operator.values():
            if group and len(drawn) < count:
                drawn.append(group.pop())
    return drawn


def _is_on_indices(node: Node) -> bool:
    match node:
        case st.For() | st.Barrier():
            return True
        case st.IfThenElse():
            return _reads_only_indices(node.condition)
        case Load(predicate=Expr() as predicate):
            return _reads_only_indices(predicate)
        case Expr():
            return _reads_only_indices(node)
    return False


def _reads_only_indices(expr: Expr) -> bool:
    """Return True if `expr` neither reads memory nor computes with floats."""
    for part in walk(expr):
        if isinstance(part, BufferLoad | Load):
            return False
        if isinstance(part, Expr) and part.dtype.is_float:
            return False
    return True


_Binary = Callable[[Expr, Expr], Expr]
_FLIPPED: dict[type[Node], _Binary] = {
    ir.Add: ir.Sub,
    ir.Sub: ir.Add,
    ir.Mul: ir.Add,
    ir.Div: ir.Mul,
    ir.Min: ir.Max,
    ir.Max: ir.Min,
    ir.FloorDiv: ir.FloorMod,
    ir.FloorMod: ir.FloorDiv,
    ir.And: ir.Or,
    ir.Or: ir.And,
    ir.EQ: ir.NE,
    ir.NE: ir.EQ,
    ir.LT: ir.GE,
    ir.GE: ir.LT,
    ir.GT: ir.LE,
    ir.LE: ir.GT,
}
_OFF_BY_ONE: dict[type[Node], _Binary] = {
    ir.LT: ir.LE,
    ir.LE: ir.LT,
    ir.GT: ir.GE,
    ir.GE: ir.GT,
}


def _flip(node: ir.BinaryExpr) -> Node:
    return _FLIPPED[type(node)](node.a, node.b)


def _move_edge(node: ir.BinaryExpr) -> Node:
    return _OFF_BY_ONE[type(node)](node.a, node.b)


def _exchange(node: ir.BinaryExpr) -> Node:
    return with_fields(node, a=node.b, b=node.a)


def _exchange_branches(node: ir.Select | ir.IfThenElseExpr) -> Node:
    return with_fields(node, true_value=node.false_value, false_value=node.true_value)


def _plus_one(value: Expr) -> Expr:
    one: Expr = IntImm(1, value.dtype.element)
    if value.dtype.lanes > 1:
        one = ir.Broadcast(one, value.dtype.lanes)
    return ir.Add(value, one)


def _shift_constant(node: IntImm) -> Node | None:
    if node.dtype.is_bool or node.value >= node.dtype.max_value:
        return None
    return IntImm(node.value + 1, node.dtype)


def _print_short(node: ir.FloatImm) -> Node | None:
    """Keep three digits, as a wrong printer would; make 0 a 1."""
    value = float(f"{node.value:.3g}") if node.value else 1.0
    return None if value == node.value else ir.FloatImm(value, node.dtype)


def _lengthen(loop: st.For) -> Node:
    return with_fields(loop, extent=_plus_one(loop.extent))


def _shorten(loop: st.For) -> Node:
    return with_fields(loop, extent=ir.Sub(loop.extent, IntImm(1, loop.extent.dtype)))


def _begin_later(loop: st.For) -> Node | None:
    if loop.kind in st.THREAD_TAGS:
        return None  # bound loops begin at 0 by definition
    return with_fields(loop, minimum=_plus_one(loop.minimum))


def _drop_guard(branch: st.IfThenElse) -> Node:
    return branch.then_case


def _invert(branch: st.IfThenElse) -> Node:
    return with_fields(branch, condition=ir.Not(branch.condition))


def _drop(_stmt: st.Stmt) -> Node:
    return st.Block(())


def _swap_indices(access: BufferLoad | st.BufferStore) -> Node | None:
    if len(access.indices) < 2:
        return None
    *rest, a, b = access.indices
    return with_fields(access, indices=(*rest, b, a))


def _shift_index(access: BufferLoad | st.BufferStore) -> Node | None:
    if not access.indices:
        return None
    *rest, last = access.indices
    return with_fields(access, indices=(*rest, _plus_one(last)))


def _shift_offset(access: Load | st.Store) -> Node:
    return with_fields(access, index=_plus_one(access.index))


def _drop_mask(access: Load | st.Store) -> Node | None:
    if access.predicate is None:
        return None
    return with_fields(access, predicate=None)


def _keep_in_f16(store: st.BufferStore | st.Store) -> Node | None:
    """Round the stored value to f16 first, as an accumulator of the wrong dtype would."""
    dtype = store.value.dtype
    if dtype.element != F32:
        return None
    half = ir.Cast(DType("float", 16, dtype.lanes), store.value)
    return with_fields(store, value=ir.Cast(dtype, half))


_NESTED = (BufferLoad, st.BufferStore)
_FLAT = (Load, st.Store)
# Name; the nodes that the operator applies to; the replacement of a node, None for no mutation.
_TABLE: tuple[tuple[str, tuple[type[Node], ...], Callable[[Any], Node | None]], ...] = (
    ("operator flipped", tuple(_FLIPPED), _flip),
    ("comparison off by one", tuple(_OFF_BY_ONE), _move_edge),
    ("operands exchanged", (ir.Sub, ir.Div, ir.FloorDiv, ir.FloorMod), _exchange),
    ("branches exchanged", (ir.Select, ir.IfThenElseExpr), _exchange_branches),
    ("constant shifted", (IntImm,), _shift_constant),
    ("constant printed short", (ir.FloatImm,), _print_short),
    ("bound too large", (st.For,), _lengthen),
    ("bound too small", (st.For,), _shorten),
    ("begins too late", (st.For,), _begin_later),
    ("guard dropped", (st.IfThenElse,), _drop_guard),
    ("guard inverted", (st.IfThenElse,), _invert),
    ("barrier dropped", (st.Barrier,), _drop),
    ("store dropped", (st.BufferStore, st.Store), _drop),
    ("indices swapped", _NESTED, _swap_indices),
    ("index shifted", _NESTED, _shift_index),
    ("offset shifted", _FLAT, _shift_offset),
    ("mask dropped", _FLAT, _drop_mask),
    ("kept in f16", (st.BufferStore, st.Store), _keep_in_f16),
)
OPERATORS = tuple(name for name, _, _ in _TABLE)
# A finite field has no rounding, and cannot show these mistakes.
ROUNDING_OPERATORS = ("constant printed short", "kept in f16")

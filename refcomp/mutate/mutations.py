"""Makes wrong programs of right loop IR, one small change each, as a wrong compiler would.

Operators are flipped, constants and bounds shifted, indices swapped and shifted, guards, masks,
barriers and stores dropped, branches exchanged, float constants printed short, sums kept in f16.
Every place of a program where one applies is one mutant; which ones are tried is drawn with a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from refcomp.foundation.dtype import F32, DType
from refcomp.ir import expr as ir
from refcomp.ir import stmt as st
from refcomp.ir.buffer import BufferLoad, Load
from refcomp.ir.expr import Expr, IntImm
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, walk, with_fields


class _OfKind(Protocol):
    @property
    def kind(self) -> str: ...


_Drawn = TypeVar("_Drawn", bound=_OfKind)
_Change = Callable[
    [Any], Node | None
]  # what takes a node's place; None where it does not apply


@dataclass(frozen=True, slots=True)
class Mutation:
    """One place of a program, and what is done to it. `on_integers`: only indices, bounds and
    conditions on them change, so that the flow of the program does not hang on data."""

    kind: str
    node: Node
    replacement: Node
    on_integers: bool

    def apply(self, func: PrimFunc) -> PrimFunc:
        """`func` with the node replaced, wherever that one object stands."""

        def visit(recurse: Rewrite, node: Node) -> Node:
            return (
                self.replacement if node is self.node else map_children(node, recurse)
            )

        return with_fields(func, body=rewriter(visit)(func.body))


def hangs_on_no_data(func: PrimFunc) -> bool:
    """Whether nothing is compared but integers that no data decide on: then what `func` computes
    is one polynomial of its data, and of the functions that it calls."""
    return all(
        _is_of_integers(n) for n in map(_decider, walk(func.body)) if n is not None
    )


def _decider(node: Node) -> Node | None:
    """What of the node decides which of its parts counts."""
    if isinstance(node, ir.Select | ir.IfThenElseExpr | st.IfThenElse):
        return node.condition
    return node if isinstance(node, ir.Min | ir.Max) else None


def mutations_of(func: PrimFunc) -> Iterator[Mutation]:
    """All of them, in the order of the program."""
    for node in walk(func.body):
        for kind, types, change in _TABLE:
            if isinstance(node, types):
                replacement = change(node)
                if replacement is not None:
                    yield Mutation(kind, node, replacement, _is_of_integers(node))


def draw(mutations: Sequence[_Drawn], count: int, rng: random.Random) -> list[_Drawn]:
    """At most `count`, the kinds in turn, so that rare ones are not drowned."""
    by_kind: dict[str, list[_Drawn]] = {}
    for mutation in rng.sample(mutations, len(mutations)):
        by_kind.setdefault(mutation.kind, []).append(mutation)
    drawn: list[_Drawn] = []
    while len(drawn) < count and any(by_kind.values()):
        for group in by_kind.values():
            if group and len(drawn) < count:
                drawn.append(group.pop())
    return drawn


def _is_of_integers(node: Node) -> bool:
    if isinstance(node, st.For):
        return True
    root = node.condition if isinstance(node, st.IfThenElse) else node
    if isinstance(root, Load) and root.predicate is not None:
        root = root.predicate
    if not isinstance(root, Expr):
        return isinstance(root, st.Barrier)
    return not any(
        isinstance(part, BufferLoad | Load)
        or (isinstance(part, Expr) and part.dtype.is_float)
        for part in walk(root)
    )


_FLIPPED: dict[type[ir.BinaryExpr], type[ir.BinaryExpr]] = {
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
_EDGES: dict[type[ir.BinaryExpr], type[ir.BinaryExpr]] = {
    ir.LT: ir.LE,
    ir.LE: ir.LT,
    ir.GT: ir.GE,
    ir.GE: ir.GT,
}


def _flip(node: ir.BinaryExpr) -> Node | None:
    other: Any = _FLIPPED.get(type(node))
    return None if other is None else _node(other(node.a, node.b))


def _move_edge(node: ir.BinaryExpr) -> Node:
    other: Any = _EDGES[type(node)]
    return _node(other(node.a, node.b))


def _exchange(node: Any) -> Node:
    return _node(type(node)(node.b, node.a))


def _node(made: Any) -> Node:
    assert isinstance(made, Node)
    return made


def _exchange_branches(node: Any) -> Node:
    return _node(
        with_fields(node, true_value=node.false_value, false_value=node.true_value)
    )


def _one_more(value: Expr) -> Expr:
    one: Expr = IntImm(1, value.dtype.element)
    return ir.Add(
        value, one if value.dtype.lanes == 1 else ir.Broadcast(one, value.dtype.lanes)
    )


def _shift_constant(node: IntImm) -> Node | None:
    if node.dtype.is_bool or node.value >= node.dtype.max_value:
        return None
    return IntImm(node.value + 1, node.dtype)


def _print_short(node: ir.FloatImm) -> Node | None:
    """A printer that keeps three digits, or makes 1 of 0."""
    value = float(f"{node.value:.3g}") if node.value else 1.0
    return None if value == node.value else ir.FloatImm(value, node.dtype)


def _longer(loop: st.For) -> Node:
    return with_fields(loop, extent=_one_more(loop.extent))


def _shorter(loop: st.For) -> Node:
    return with_fields(loop, extent=ir.Sub(loop.extent, IntImm(1, loop.extent.dtype)))


def _later(loop: st.For) -> Node | None:
    if loop.kind in st.THREAD_TAGS:
        return None  # bound loops begin at 0 by definition
    return with_fields(loop, minimum=_one_more(loop.minimum))


def _always(branch: st.IfThenElse) -> Node:
    return branch.then_case


def _inverted(branch: st.IfThenElse) -> Node:
    return with_fields(branch, condition=ir.Not(branch.condition))


def _nothing(_stmt: st.Stmt) -> Node:
    return st.Block(())


def _swap_indices(access: Any) -> Node | None:
    if len(access.indices) < 2:
        return None
    *rest, a, b = access.indices
    return _node(with_fields(access, indices=(*rest, b, a)))


def _shift_index(access: Any) -> Node | None:
    if not access.indices:
        return None
    *rest, last = access.indices
    return _node(with_fields(access, indices=(*rest, _one_more(last))))


def _shift_offset(access: Load | st.Store) -> Node:
    return with_fields(access, index=_one_more(access.index))


def _drop_mask(access: Load | st.Store) -> Node | None:
    return None if access.predicate is None else with_fields(access, predicate=None)


def _through_half(store: Any) -> Node | None:
    """What is stored is rounded to f16 first, as a wrong accumulator would."""
    dtype = store.value.dtype
    if dtype.element != F32:
        return None
    half = ir.Cast(DType("float", 16, dtype.lanes), store.value)
    return _node(with_fields(store, value=ir.Cast(dtype, half)))


_NESTED = (BufferLoad, st.BufferStore)
_FLAT = (Load, st.Store)
_TABLE: tuple[tuple[str, tuple[type[Any], ...], _Change], ...] = (
    ("operator flipped", tuple(_FLIPPED), _flip),
    ("comparison off by one", tuple(_EDGES), _move_edge),
    ("operands exchanged", (ir.Sub, ir.Div, ir.FloorDiv, ir.FloorMod), _exchange),
    ("branches exchanged", (ir.Select, ir.IfThenElseExpr), _exchange_branches),
    ("constant shifted", (IntImm,), _shift_constant),
    ("constant printed short", (ir.FloatImm,), _print_short),
    ("bound too large", (st.For,), _longer),
    ("bound too small", (st.For,), _shorter),
    ("begins too late", (st.For,), _later),
    ("guard dropped", (st.IfThenElse,), _always),
    ("guard inverted", (st.IfThenElse,), _inverted),
    ("barrier dropped", (st.Barrier,), _nothing),
    ("store dropped", (st.BufferStore, st.Store), _nothing),
    ("indices swapped", _NESTED, _swap_indices),
    ("index shifted", _NESTED, _shift_index),
    ("offset shifted", _FLAT, _shift_offset),
    ("mask dropped", _FLAT, _drop_mask),
    ("kept in f16", (st.BufferStore, st.Store), _through_half),
)
ROUNDING_KINDS = ("constant printed short", "kept in f16")  # which no field may show
KINDS = tuple(kind for kind, _, _ in _TABLE)

"""Cuts vectors into pieces of 2, 4, 8 or 16 lanes, the only lengths in OpenCL C.

Before::

    func f(A: f32[n], B: f32[n] out) {
      B@[ramp(0, 1, 6)] = A@[ramp(8, 2, 6)] * broadcast(2.0f32, 6)
    }

After::

    func f(A: f32[n], B: f32[n] out) {
      B@[ramp(0, 1, 4)] = A@[ramp(8, 2, 4)] * broadcast(2.0f32, 4)
      B@[ramp(4, 1, 2)] = A@[ramp(16, 2, 2)] * broadcast(2.0f32, 2)
    }

The pieces are as long as possible, in order. A lane that is left over becomes a scalar. If
a store reads memory that it writes, all pieces are read before the first one is written. A
let of a vector becomes a let for each piece.

Requires: vectors occur only in lets, and in the values, indices and predicates of stores,
as vectorizing makes them. Ensures: vectors have 2, 4, 8 or 16 lanes. Level: flat, host or
device, kept. It refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from refcomp.arith import simplify
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Load
from refcomp.ir.expr import Broadcast, Expr, IntImm, Let, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.rewrite import map_children, memoised, walk, with_fields
from refcomp.ir.stmt import LetStmt, Stmt, Store, block, with_lets
from refcomp.passes.analysis.contents import dtypes_in

LANES = (16, 8, 4, 2)


def fit_vector_lanes(func: PrimFunc) -> PrimFunc:
    """Return `func` with vectors whose numbers of lanes are in `LANES`."""
    return cut_vectors(func, LANES)


def cut_vectors(func: PrimFunc, lengths: tuple[int, ...]) -> PrimFunc:
    """Return `func` with vectors of these numbers of lanes, of which the largest comes first."""
    if all(dtype.lanes == 1 for dtype in dtypes_in(func)):
        return func
    return func.with_body(_Fitting(lengths).stmt(func.body))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lanes `first`, ..., `first` + `lanes` - 1 of vectors of `of` lanes."""

    first: int
    lanes: int
    of: int


def _pieces(lanes: int, lengths: tuple[int, ...]) -> tuple[_Piece, ...]:
    """Return the pieces of a vector of `lanes` lanes."""
    pieces: list[_Piece] = []
    first = 0
    for size in (*lengths, 1):
        while lanes - first >= size:
            pieces.append(_Piece(first, size, lanes))
            first += size
    return tuple(pieces)


class _Fitting:
    """Cuts the vectors of one function."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self._lengths = lengths
        # Vector variable and piece -> the variable of this piece.
        self._parts: dict[tuple[Var, _Piece], Var] = {}
        self._cut: dict[_Piece, Callable[[Expr], Expr]] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with all vectors cut that are too long."""
        if isinstance(stmt, Store):
            pieces = _pieces(stmt.index.dtype.lanes, self._lengths)
            return stmt if len(pieces) == 1 else self._store(stmt, pieces)
        if isinstance(stmt, LetStmt):
            pieces = _pieces(stmt.var.dtype.lanes, self._lengths)
            if len(pieces) > 1:
                lets = [self._bind(stmt, piece) for piece in pieces]
                return with_lets(lets, self.stmt(stmt.body), stmt.origin)
        return map_children(stmt, self.stmt, only=Stmt)

    def _store(self, store: Store, pieces: tuple[_Piece, ...]) -> Stmt:
        stores: list[Stmt] = []
        for piece in pieces:
            index = self._cut_to(piece, store.index)
            value = self._cut_to(piece, store.value)
            predicate = store.predicate
            if predicate is not None:
                predicate = self._cut_to(piece, predicate)
            part = with_fields(store, index=index, value=value, predicate=predicate)
            stores.append(part)
        read = {node.buffer for node in walk(store) if isinstance(node, Load)}
        if store.buffer not in read:
            return block(stores, store.origin)
        # One vector store reads all lanes before it writes the first one.
        lets: list[tuple[Var, Expr]] = []

        def named(expr: Expr) -> Expr:
            if not any(isinstance(node, Load) for node in walk(expr)):
                return expr
            var = Var("piece", expr.dtype)
            lets.append((var, expr))
            return var

        stores = [map_children(piece, named, only=Expr) for piece in stores]
        return with_lets(lets, block(stores, store.origin), store.origin)

    def _bind(self, let: LetStmt | Let, piece: _Piece) -> tuple[Var, Expr]:
        """Return the variable and the value of a let for one piece."""
        value = self._cut_to(piece, let.value)
        var = Var(let.var.name, let.var.dtype.with_lanes(piece.lanes))
        self._parts[let.var, piece] = var
        return var, value

    # Expressions.

    def _cut_to(self, piece: _Piece, expr: Expr) -> Expr:
        """Return the lanes of `expr` that are in `piece`; a scalar is not changed."""
        if piece not in self._cut:
            self._cut[piece] = memoised(partial(self._expr, piece))
        cut = self._cut[piece]
        return cut(expr)

    def _expr(self, piece: _Piece, recurse: Callable[[Expr], Expr], expr: Expr) -> Expr:
        match expr:
            case _ if expr.dtype.lanes == 1:
                return expr
            case Var():
                return self._parts[expr, piece]
            case Ramp(base=base, stride=stride):
                distance = stride * IntImm(piece.first, stride.dtype)
                start = simplify(base + distance)
                return start if piece.lanes == 1 else Ramp(start, stride, piece.lanes)
            case Broadcast(value=value):
                return value if piece.lanes == 1 else Broadcast(value, piece.lanes)
            case Let() if expr.var.dtype.lanes > 1:
                var, value = self._bind(expr, piece)
                return Let(var, value, recurse(expr.body))
        cut = map_children(expr, recurse, only=Expr)
        if isinstance(cut, ir.Cast | ir.Call):
            # These state their dtype; all others derive it from their operands.
            return with_fields(cut, dtype=cut.dtype.with_lanes(piece.lanes))
        return cut

"""Vector values in user's programs: `expand_lanes` makes a loop over the lanes of each.

Above the loop IR, an element may be a vector: a tensor or a buffer holds `f32x4`, or `vload` reads
four neighbours at once. The nested level has scalars only. So a buffer of `f32x4` becomes a buffer
of `f32` with one more dimension, the lanes. A store of a vector becomes a vectorized loop over
lanes::

    B[i] = A[i] * 2          for lane in range(4) vectorized { B[i, lane] = A[i, lane] * 2 }

All operations work lane by lane, and targets without such vectors run the loop serially.

Requires: statements of the nested level, in which values, elements of buffers and indices may be
vectors.
Ensures: scalars only, with the same results.
Refuses calls of functions with vectors, which may exchange lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.buffer import LOCAL, AddressOf, Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    Broadcast,
    Call,
    Cast,
    Expr,
    IntImm,
    Let,
    PureExtern,
    Ramp,
    Var,
)
from refcomp.ir.func import PrimFunc
from refcomp.ir.node import Node
from refcomp.ir.promotion import cast
from refcomp.ir.rewrite import (
    Rewrite,
    map_children,
    rewriter,
    walk,
    with_fields,
)
from refcomp.ir.stmt import (
    VECTORIZED,
    Allocate,
    AtomicUpdate,
    BufferStore,
    For,
    LetStmt,
    Prefetch,
    Stmt,
    block,
)
from refcomp.ir.structure import structurally_equal

_ZERO = IntImm(0, I64)
# Returns the lane of an expression that only the caller knows; None for all others.
Leaf = Callable[[Expr], Expr | None]


def with_lane_axis(shape: Sequence[Expr], lanes: int) -> tuple[Expr, ...]:
    """Return the shape of scalars that hold elements of `lanes` lanes."""
    return tuple(shape) if lanes == 1 else (*shape, IntImm(lanes, I64))


def lane_of(expr: Expr, lane: Expr, leaf: Leaf) -> Expr:
    """Return one lane of a vector as a scalar expression; a scalar is the same in each lane.

    Args:
        expr: the vector or scalar.
        lane: the number of the lane, i64.
        leaf: returns the lane of a variable, or of a read of memory.

    Raises:
        Unsupported: a function is called with vectors.
    """

    def visit(recurse: Rewrite, node: Node) -> Node:
        assert isinstance(node, Expr)
        known = leaf(node)
        if known is not None:
            return known
        match node:
            case Ramp(base=base, stride=stride):
                steps = cast(base.dtype, lane)
                return base + (steps if as_int(stride) == 1 else steps * stride)
            case Broadcast(value=value):
                return recurse(value)
            case PureExtern() if _has_vectors(node):
                raise _vector_call(node)
            case Let(var=var, value=value, body=body) if var.dtype.lanes > 1:
                scalar = Var(var.name, var.dtype.element)
                inner = lane_of(body, lane, _with_variable(var, scalar, leaf))
                return Let(scalar, recurse(value), inner)
        node = map_children(node, recurse)
        if isinstance(node, Cast | Call) and node.dtype.lanes > 1:
            return with_fields(node, dtype=node.dtype.element)
        return node

    return rewriter(visit)(expr)


def _with_variable(var: Var, scalar: Expr, leaf: Leaf) -> Leaf:
    return lambda expr: scalar if expr is var else leaf(expr)


def _has_vectors(call: PureExtern) -> bool:
    return any(value.dtype.lanes > 1 for value in (call, *call.args))


def _vector_call(call: PureExtern) -> Unsupported:
    return Unsupported(
        f"{call.name} is called with vectors",
        why="a function of vectors may exchange lanes, and the loop IR works lane by lane",
        remedy="write what it computes as loops over scalars, and vectorize them",
    )


def expand_lanes(func: PrimFunc) -> PrimFunc:
    """Return `func` with scalars only. See the module docstring."""
    wide = {b: scalar_buffer(b) for b in func.buffers if b.dtype.lanes > 1}
    body = expand_statement(func.body, wide)
    if body is func.body and not wide:
        return func
    params = tuple(
        wide.get(param, param) if isinstance(param, Buffer) else param
        for param in func.params
    )
    return with_fields(func, params=params, body=body)


def expand_statement(stmt: Stmt, given: Mapping[Buffer, Buffer]) -> Stmt:
    """Return `stmt` with scalars only.

    Args:
        stmt: a statement.
        given: buffer of vectors around the statement -> buffer of scalars in place of it.
    """
    allocated = [item.buffer for item in walk(stmt) if isinstance(item, Allocate)]
    wide = {b: scalar_buffer(b) for b in allocated if b.dtype.lanes > 1}
    wide.update(given)
    if not wide and not any(
        isinstance(node, Expr) and node.dtype.lanes > 1 for node in walk(stmt)
    ):
        return stmt
    return _LaneLoops(wide, {}).statement(stmt)


def scalar_buffer(buffer: Buffer) -> Buffer:
    """Return a buffer of scalars in place of a buffer of vectors; else `buffer` itself."""
    lanes = buffer.dtype.lanes
    if lanes == 1:
        return buffer
    shape = with_lane_axis(buffer.shape, lanes)
    return with_fields(buffer, dtype=buffer.dtype.element, shape=shape)


@dataclass(frozen=True, slots=True)
class _LaneLoops:
    """A rewrite of statements."""

    wide: Mapping[Buffer, Buffer]  # buffer of vectors -> buffer of scalars
    # Variable of vectors -> memory that holds its lanes.
    held: dict[Var, Buffer]

    def statement(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with scalars only."""
        match stmt:
            case BufferStore() | AtomicUpdate() if self._lanes_of(stmt) > 1:
                return self._stored(stmt)
            case LetStmt(var=var, value=value, body=body) if var.dtype.lanes > 1:
                memory = self._memory(var.name, value)
                self.held[var] = memory
                fill = self._filled(memory, value, stmt)
                inner = block([fill, self.statement(body)])
                return Allocate(memory, inner, stmt.origin)
        stmt = map_children(stmt, self.statement, only=Stmt)
        stmt = map_children(stmt, rewriter(self._address), only=Expr)
        match stmt:
            case Allocate(buffer=buffer) if buffer in self.wide:
                return with_fields(stmt, buffer=self.wide[buffer])
            case Prefetch(buffer=buffer, indices=indices) if buffer in self.wide:
                indices = (*indices, _ZERO)
                return with_fields(stmt, buffer=self.wide[buffer], indices=indices)
        return stmt

    def _address(self, recurse: Rewrite, node: Node) -> Node:
        """Return a scalar expression, in which an address is that of the first lane."""
        node = map_children(node, recurse)
        if not isinstance(node, AddressOf) or node.buffer not in self.wide:
            return node
        return with_fields(
            node,
            buffer=self.wide[node.buffer],
            indices=(*node.indices, _ZERO) if node.indices else (),
            element=node.element.element,
        )

    def _lanes_of(self, stmt: BufferStore | AtomicUpdate) -> int:
        """Return the number of lanes that are stored. Refuse a value of another number."""
        place = BufferLoad(stmt.buffer, stmt.indices).dtype
        lanes = stmt.value.dtype.lanes
        if lanes not in (1, place.lanes):
            raise UserError(
                f"a value of {stmt.value.dtype} is stored to {place} of {stmt.buffer.name}",
                why="each lane of the value needs a place of its own",
                remedy=f"store it by {stmt.buffer.name}.vstore(begin, value)",
            )
        return place.lanes

    def _stored(self, stmt: BufferStore | AtomicUpdate) -> Stmt:
        """Return a store of a vector as a loop over its lanes."""
        lanes = self._lanes_of(stmt)
        if stmt.buffer in self.wide or not _reads_elsewhere(stmt):
            return _loop(lanes, stmt, lambda lane: self._lane_stored(stmt, lane))
        # A lane must not read what another lane has written: all are computed first.
        memory = self._memory(f"{stmt.buffer.name}.next", stmt.value)
        value = Var(memory.name, stmt.value.dtype)
        self.held[value] = memory
        last = with_fields(stmt, value=value)
        fill = self._filled(memory, stmt.value, stmt)
        store = _loop(lanes, stmt, lambda lane: self._lane_stored(last, lane))
        return Allocate(memory, block([fill, store]), stmt.origin)

    def _lane_stored(self, stmt: BufferStore | AtomicUpdate, lane: Expr) -> Stmt:
        indices = tuple(self._lane(index, lane) for index in stmt.indices)
        buffer = stmt.buffer
        if buffer in self.wide:
            buffer = self.wide[buffer]
            indices = (*indices, lane)
        value = self._lane(stmt.value, lane)
        return with_fields(stmt, buffer=buffer, indices=indices, value=value)

    def _lane(self, expr: Expr, lane: Expr) -> Expr:
        def leaf(item: Expr) -> Expr | None:
            match item:
                case Var() if item in self.held:
                    return BufferLoad(self.held[item], (lane,))
                case BufferLoad(buffer=buffer) if item.dtype.lanes > 1:
                    indices = tuple(lane_of(i, lane, leaf) for i in item.indices)
                    if buffer not in self.wide:
                        return BufferLoad(buffer, indices)
                    return BufferLoad(self.wide[buffer], (*indices, lane))
            return None

        return lane_of(expr, lane, leaf)

    def _memory(self, name: str, value: Expr) -> Buffer:
        """Return memory of one thread for the lanes of a vector."""
        lanes = IntImm(value.dtype.lanes, I64)
        return Buffer(name, value.dtype.element, (lanes,), LOCAL)

    def _filled(self, memory: Buffer, value: Expr, by: Stmt) -> Stmt:
        """Return the loop that writes the lanes of a vector to memory."""
        return _loop(
            value.dtype.lanes,
            by,
            lambda lane: BufferStore(
                memory, (lane,), self._lane(value, lane), by.origin
            ),
        )


def _loop(lanes: int, by: Stmt, body: Callable[[Var], Stmt]) -> For:
    """Return a loop over the lanes of a vector, made of the statement `by`."""
    lane = Var("lane", I64)
    extent = IntImm(lanes, I64)
    return For(lane, _ZERO, extent, VECTORIZED, body(lane), by.origin)


def _reads_elsewhere(stmt: BufferStore | AtomicUpdate) -> bool:
    """Return True if the value of a store may depend on elements that the store writes."""
    return any(
        isinstance(item, BufferLoad)
        and item.buffer is stmt.buffer
        and not all(map(structurally_equal, item.indices, stmt.indices))
        for item in walk(stmt.value)
    )

"""Turns vectorized loops into vector statements.

Before::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range((n + 7) // 8) {
        for j in range(8) vectorized {
          if (i * 8 + j < n) {
            B@[i * 8 + j] = A@[i * 8 + j] * 2.0f32
          }
        }
      }
    }

After::

    func scale(A: f32[n], B: f32[n] out) {
      for i in range((n + 7) // 8) {
        let mask: boolx8 = ramp(i * 8, 1, 8) < broadcast(n, 8) {
          if (i * 8 < n) {
            B@[ramp(i * 8, 1, 8)] = A@[ramp(i * 8, 1, 8) if mask] * broadcast(2.0f32, 8) if mask
          }
        }
      }
    }

Requires: constant extents of vectorized loops. Ensures: no vectorized loop is left; the meaning
is that of the serial loop. Level: flat.

What does not depend on the loop variable stays scalar and is broadcast where it meets a vector.
A condition that depends on it becomes a mask on the loads and stores it guards; where the mask
can only lose lanes from its end, a scalar test of its first lane stands around them, so that
reads that are the same for all lanes stay scalar. A lazy choice becomes a Select whose loads
are masked. Memory allocated in the loop gets one copy per lane. Inner loops are kept.

A loop stays serial, as a whole, when it has fewer than two or more than 256 lanes, holds vectors
already (of two nested vectorized loops the inner becomes vectors), when bounds of an inner loop or
the shape of an allocation depend on its variable, when iterations may touch one element that one of
them writes (see `refcomp.passes.analysis.lane_conflicts`), or when a mask would stand around a
kernel: what launches kernels has no vectors. It refuses (UserError) an extent that is negative or
no constant: how many lanes to use must be known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refcomp.foundation.dtype import BOOL, I64
from refcomp.ir import expr as ir
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Broadcast, Expr, IntImm, Ramp, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound, kernels_in
from refcomp.ir.rewrite import (
    children,
    map_children,
    memoised,
    variables_in,
    with_fields,
)
from refcomp.ir.stmt import (
    SERIAL,
    VECTORIZED,
    Allocate,
    Block,
    For,
    IfThenElse,
    LetStmt,
    Pragma,
    Prefetch,
    Stmt,
    Store,
    block,
)
from refcomp.passes.analysis.constant_extents import constant_extent
from refcomp.passes.analysis.lane_conflicts import affine, may_conflict

MAX_LANES = 256


class _StaysSerial(Exception):
    """The loop has no vector form."""


def vectorize_loops(func: PrimFunc) -> PrimFunc:
    """`func` with each vectorized loop replaced by vector statements, or by a serial loop."""
    return func.with_body(_visit(func.body, in_kernel=False))


def _visit(stmt: Stmt, in_kernel: bool) -> Stmt:
    inside = in_kernel or is_bound(stmt)
    stmt = map_children(stmt, lambda child: _visit(child, inside), only=Stmt)
    if isinstance(stmt, For) and stmt.kind == VECTORIZED:
        return _vectorize(stmt, in_kernel)
    return stmt


def _vectorize(loop: For, in_kernel: bool) -> Stmt:
    lanes = constant_extent(loop)
    serial = with_fields(loop, kind=SERIAL)
    if not 2 <= lanes <= MAX_LANES:
        return serial
    private: dict[Buffer, Buffer] = {}
    steps = Ramp(loop.minimum, IntImm(1, loop.var.dtype), lanes)
    try:
        body = _Widening(lanes, {loop.var: steps}, private).stmt(loop.body)
    except _StaysSerial:
        return serial
    if not in_kernel and _has_mask_around_kernel(body):
        return serial
    return serial if may_conflict(body, lanes, frozenset(private.values())) else body


def _has_mask_around_kernel(body: Stmt) -> bool:
    """Return True if a vector is bound to a variable around a kernel, which would take it."""
    if is_bound(body):
        return False
    if isinstance(body, LetStmt) and body.var.dtype.lanes > 1 and any(kernels_in(body)):
        return True
    stmts = (child for child in children(body) if isinstance(child, Stmt))
    return any(map(_has_mask_around_kernel, stmts))


class _Widening:
    """Rewrites what one iteration does into what all `lanes` iterations do.

    `values` holds the vector that each variable that differs by lane has become, `private` the
    copy per lane of each buffer allocated inside. Only the lanes of `mask` are to be run (None
    for all); `certain` says that the first lane is among them wherever this code runs.
    """

    def __init__(
        self,
        lanes: int,
        values: dict[Var, Expr],
        private: dict[Buffer, Buffer],
        mask: Expr | None = None,
        certain: bool = True,
    ) -> None:
        self.lanes, self.values, self.private = lanes, values, private
        self.mask, self.certain = mask, certain
        self.expr: Callable[[Expr], Expr] = memoised(self._expr)

    def under(self, condition: Expr, certain: bool = False) -> _Widening:
        """The same, for code that runs only in the lanes where `condition` holds too."""
        mask = self.with_mask(condition)
        return _Widening(self.lanes, self.values, self.private, mask, certain)

    def with_mask(self, condition: Expr | None) -> Expr | None:
        """The mask and `condition`, either of which may be None for all lanes."""
        if condition is None or self.mask is None:
            return self.mask if condition is None else self.spread(condition)
        return ir.And(self.mask, self.spread(condition))

    def spread(self, expr: Expr) -> Expr:
        """`expr` as a vector: a scalar is broadcast."""
        return expr if expr.dtype.lanes == self.lanes else Broadcast(expr, self.lanes)

    # Statements.

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Block():
                return Block(tuple(map(self.stmt, stmt.stmts)), stmt.origin)
            case Store():
                return self._store(stmt)
            case IfThenElse():
                return self._if_then_else(stmt)
            case LetStmt():
                return LetStmt(*self._bind(stmt), self.stmt(stmt.body), stmt.origin)
            case For():
                return self._for(stmt)
            case Allocate():
                return self._allocate(stmt)
            case Pragma():
                return with_fields(stmt, body=self.stmt(stmt.body))
            case Prefetch():
                return self._prefetch(stmt)
        raise _StaysSerial

    def _store(self, store: Store) -> Stmt:
        buffer, index = self._access(store.buffer, store.index)
        value = self.expr(store.value)
        predicate = None if store.predicate is None else self.expr(store.predicate)
        if self.certain and _all_scalar(index, value, predicate):
            return with_fields(store, index=index, value=value, predicate=predicate)
        parts = (
            buffer,
            self.spread(index),
            self.spread(value),
            self.with_mask(predicate),
        )
        return Store(*parts, store.origin)

    def _if_then_else(self, branch: IfThenElse) -> Stmt:
        condition = self.expr(branch.condition)
        if condition.dtype.lanes > 1:
            return self._guard(branch, condition)
        else_case = None if branch.else_case is None else self.stmt(branch.else_case)
        return IfThenElse(
            condition, self.stmt(branch.then_case), else_case, branch.origin
        )

    def _guard(self, branch: IfThenElse, condition: Expr) -> Stmt:
        # The condition is evaluated once: the branch may change what it reads.
        mask = Var("mask", BOOL.with_lanes(self.lanes))
        head = _first_lane(condition)
        inside = self.under(mask, certain=self.certain and head is not None)
        then_case = inside.stmt(branch.then_case)
        if head is not None:
            then_case = IfThenElse(head, then_case, None, branch.origin)
        stmts = [then_case]
        if branch.else_case is not None:
            stmts.append(self.under(ir.Not(mask)).stmt(branch.else_case))
        return LetStmt(mask, condition, block(stmts), branch.origin)

    def _prefetch(self, hint: Prefetch) -> Stmt:
        """For the first lane; the others lie beside it, or are not worth a hint each."""
        (flat,) = hint.indices
        buffer, index = self._access(hint.buffer, flat)
        if isinstance(index, Ramp):
            index = index.base
        if not _all_scalar(index):
            return Block((), hint.origin)
        return with_fields(hint, buffer=buffer, indices=(index,))

    def _for(self, loop: For) -> Stmt:
        minimum, extent = self.expr(loop.minimum), self.expr(loop.extent)
        if not _all_scalar(minimum, extent):
            raise _StaysSerial
        return with_fields(
            loop, minimum=minimum, extent=extent, body=self.stmt(loop.body)
        )

    def _allocate(self, allocate: Allocate) -> Stmt:
        """One copy per lane: the lanes of an element lie side by side."""
        buffer = allocate.buffer
        shape = tuple(self.expr(dim) for dim in buffer.shape)
        if not _all_scalar(*shape):
            raise _StaysSerial
        wide = with_fields(buffer, shape=(*shape, IntImm(self.lanes, I64)))
        self.private[buffer] = wide
        return with_fields(allocate, buffer=wide, body=self.stmt(allocate.body))

    # Expressions.

    def _expr(self, recurse: Callable[[Expr], Expr], node: Expr) -> Expr:
        match node:
            case Var():
                return self.values.get(node, node)
            case Load():
                return self._load(node)
            case ir.IfThenElseExpr():
                return self._choice(node)
            case ir.Let():
                return ir.Let(*self._bind(node), recurse(node.body))
            case Ramp() | Broadcast():
                raise _StaysSerial
            case ir.PureExtern() if not _all_scalar(*map(recurse, node.args)):
                raise _StaysSerial
        operands = [recurse(child) for child in children(node)]
        if _all_scalar(*operands):
            return map_children(node, recurse, only=Expr)
        return self._combine(node, operands)

    def _combine(self, node: Expr, operands: list[Expr]) -> Expr:
        """`node` of operands some of which have become vectors."""
        ramp = self._affine(node, operands)
        return self._lanewise(node, operands) if ramp is None else ramp

    def _lanewise(self, node: Expr, operands: list[Expr]) -> Expr:
        wide = iter([self.spread(operand) for operand in operands])
        node = map_children(node, lambda _: next(wide), only=Expr)
        if isinstance(node, ir.Cast | ir.Call):
            return with_fields(node, dtype=node.dtype.with_lanes(self.lanes))
        return node

    def _affine(self, node: Expr, operands: list[Expr]) -> Expr | None:
        """A sum or product of integers as a Ramp, where it is one."""
        if not (isinstance(node, ir.Add | ir.Sub | ir.Mul) and node.dtype.is_int):
            return None
        parts = [affine(operand) for operand in operands]
        if parts[0] is None or parts[1] is None:
            return None
        (a, a_stride), (b, b_stride) = parts[0], parts[1]
        cls = type(node)
        if cls is not ir.Mul:
            return self._ramp(_fold(cls, a, b), _fold(cls, a_stride, b_stride))
        if as_int(a_stride) == 0:
            return self._ramp(_fold(cls, a, b), _fold(cls, a, b_stride))
        if as_int(b_stride) == 0:
            return self._ramp(_fold(cls, a, b), _fold(cls, a_stride, b))
        return None

    def _ramp(self, base: Expr, stride: Expr) -> Expr:
        return (
            self.spread(base) if as_int(stride) == 0 else Ramp(base, stride, self.lanes)
        )

    def _load(self, load: Load) -> Expr:
        buffer, index = self._access(load.buffer, load.index)
        predicate = None if load.predicate is None else self.expr(load.predicate)
        if self.certain and _all_scalar(index, predicate):
            unchanged = index is load.index and predicate is load.predicate
            return load if unchanged else Load(buffer, index, predicate)
        return Load(buffer, self.spread(index), self.with_mask(predicate))

    def _access(self, buffer: Buffer, index: Expr) -> tuple[Buffer, Expr]:
        index = self.expr(index)
        if buffer not in self.private:
            return buffer, index
        count = IntImm(self.lanes, index.dtype.element)
        lane = Ramp(IntImm(0, count.dtype), IntImm(1, count.dtype), self.lanes)
        row = self._combine(ir.Mul(index, count), [index, count])
        return self.private[buffer], self._combine(ir.Add(row, lane), [row, lane])

    def _choice(self, node: ir.IfThenElseExpr) -> Expr:
        condition = self.expr(node.condition)
        if condition.dtype.lanes > 1:
            return self._masked_choice(node, condition)
        yes, no = self.expr(node.true_value), self.expr(node.false_value)
        if not _all_scalar(yes, no):
            yes, no = self.spread(yes), self.spread(no)
        return ir.IfThenElseExpr(condition, yes, no)

    def _masked_choice(self, node: ir.IfThenElseExpr, condition: Expr) -> Expr:
        mask = Var("mask", BOOL.with_lanes(self.lanes))
        yes = self.spread(self.under(mask).expr(node.true_value))
        no = self.spread(self.under(ir.Not(mask)).expr(node.false_value))
        if any(var is mask for value in (yes, no) for var in variables_in(value)):
            return ir.Let(mask, condition, ir.Select(mask, yes, no))
        return ir.Select(condition, yes, no)

    def _bind(self, let: ir.Let | LetStmt) -> tuple[Var, Expr]:
        """Variable and value of a let; a variable that differs by lane becomes a vector."""
        value = self.expr(let.value)
        if (
            let.var in self.values
        ):  # bound at two places, where it may differ by lane in one
            raise _StaysSerial
        var = let.var if _all_scalar(value) else Var(let.var.name, value.dtype)
        self.values[let.var] = var
        return var, value


def _all_scalar(*exprs: Expr | None) -> bool:
    return all(expr is None or expr.dtype.lanes == 1 for expr in exprs)


def _fold(cls: type[Any], a: Expr, b: Expr) -> Expr:
    """`cls(a, b)` for Add, Sub or Mul, done at once where an operand is a constant that allows."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        x, y = a.value, b.value
        return IntImm({ir.Add: x + y, ir.Sub: x - y, ir.Mul: x * y}[cls], a.dtype)
    if cls is ir.Mul:
        for factor, other in ((a, b), (b, a)):
            if (value := as_int(factor)) in (0, 1):
                return other if value else factor
    elif as_int(b) == 0:
        return a
    elif as_int(a) == 0 and cls is ir.Add:
        return b
    result: Expr = cls(a, b)
    return result


def _first_lane(condition: Expr) -> Expr | None:
    """The scalar condition of the first lane, where it holds whenever any lane's does, else None.

    Known of comparisons whose sides drift apart at a constant pace. i64 sides are taken not to
    wrap within the vector: they are indices or are compared with indices.
    """
    match condition:
        case Broadcast():
            return condition.value
        case ir.And() | ir.Or():
            a, b = _first_lane(condition.a), _first_lane(condition.b)
            return None if a is None or b is None else type(condition)(a, b)
        case ir.LT() | ir.LE() | ir.GT() | ir.GE():
            return _first_comparison(condition)
    return None


def _first_comparison(condition: ir.LT | ir.LE | ir.GT | ir.GE) -> Expr | None:
    left, right = affine(condition.a), affine(condition.b)
    if left is None or right is None or condition.a.dtype.element != I64:
        return None
    drift = as_int(_fold(ir.Sub, left[1], right[1]))
    if drift is None:
        return None
    falls = drift >= 0 if isinstance(condition, ir.LT | ir.LE) else drift <= 0
    return type(condition)(left[0], right[0]) if falls else None

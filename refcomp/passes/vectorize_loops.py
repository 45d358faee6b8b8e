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

An expression that does not depend on the loop variable stays scalar. It is broadcast
where the other operand is a vector. A condition that depends on the variable becomes a mask on the
loads and stores it guards. If the mask can only lose lanes from its end, a scalar test of
its first lane encloses them. Inside that test, reads that are the same for all lanes stay
scalar.
A lazy choice becomes a Select whose loads are masked. Memory allocated in the loop gets
one copy per lane. Inner loops are kept.

A loop becomes serial as a whole if

- it has fewer than two or more than 256 lanes;
- it holds vectors already (of two nested vectorized loops, the inner one is vectorized);
- bounds of an inner loop, or the shape of an allocation, depend on its variable;
- iterations may touch one element that one of them writes (see `analysis.lane_conflicts`);
- a mask would enclose a kernel, since the code that launches kernels has no vectors.

It refuses (UserError) an extent that is negative or not a constant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

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
    with_changes,
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
from refcomp.passes.analysis.contents import holds
from refcomp.passes.analysis.lane_conflicts import affine, may_conflict

MAX_LANES = 256


class _StaysSerial(Exception):
    """The loop has no vector form."""


def vectorize_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with vector statements, or a serial loop, for each vectorized loop."""
    if not holds(func, VECTORIZED):
        return func
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
    widening = _Widening(lanes, {loop.var: steps}, private)
    try:
        body = widening.stmt(loop.body)
    except _StaysSerial:
        return serial
    if not in_kernel and _has_mask_around_kernel(body):
        return serial
    # Conflicts are checked in the vector form, where the index of each lane is known: a ramp.
    if may_conflict(body, lanes, frozenset(private.values())):
        return serial
    return body


def _has_mask_around_kernel(body: Stmt) -> bool:
    """Return True if a let around a kernel binds a mask, which would become an argument."""
    if is_bound(body):
        return False
    is_mask = isinstance(body, LetStmt) and body.var.dtype.lanes > 1
    if is_mask and any(kernels_in(body)):
        return True
    stmts = (child for child in children(body) if isinstance(child, Stmt))
    return any(map(_has_mask_around_kernel, stmts))


class _Widening:
    """Rewrites the statements of one iteration into statements of all iterations.

    Attributes:
        lanes: the number of iterations.
        values: variable that differs by lane -> its vector.
        private: buffer allocated inside -> the buffer with a copy for each lane.
        mask: the lanes to run, None for all.
        certain: True if the first lane runs whenever this code runs.
    """

    def __init__(
        self,
        lanes: int,
        values: dict[Var, Expr],
        private: dict[Buffer, Buffer],
        mask: Expr | None = None,
        certain: bool = True,
    ) -> None:
        self.lanes = lanes
        self.values = values
        self.private = private
        self.mask = mask
        self.certain = certain
        self.expr: Callable[[Expr], Expr] = memoised(self._expr)

    def under(self, condition: Expr, certain: bool = False) -> _Widening:
        """Return a rewriter of code that runs only in lanes where `condition` holds, too."""
        mask = self.with_mask(condition)
        return _Widening(self.lanes, self.values, self.private, mask, certain)

    def with_mask(self, condition: Expr | None) -> Expr | None:
        """Return the conjunction of the mask and `condition`; None is all lanes."""
        if condition is None:
            return self.mask
        mask = self.spread(condition)
        return mask if self.mask is None else ir.And(self.mask, mask)

    def spread(self, expr: Expr) -> Expr:
        """Return `expr` as a vector: a scalar is broadcast."""
        return expr if expr.dtype.lanes == self.lanes else Broadcast(expr, self.lanes)

    # Statements.

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return the vector form of `stmt`, or raise _StaysSerial."""
        match stmt:
            case Block():
                stmts = tuple(map(self.stmt, stmt.stmts))
                return Block(stmts, stmt.origin)
            case Store():
                return self._store(stmt)
            case IfThenElse():
                return self._if_then_else(stmt)
            case LetStmt():
                var, value = self._bind(stmt)
                return LetStmt(var, value, self.stmt(stmt.body), stmt.origin)
            case For():
                minimum = self.expr(stmt.minimum)
                extent = self.expr(stmt.extent)
                # Lanes that iterate different numbers of times have no common loop.
                if not _all_scalar(minimum, extent):
                    raise _StaysSerial
                body = self.stmt(stmt.body)
                return with_fields(stmt, minimum=minimum, extent=extent, body=body)
            case Allocate():
                buffer = stmt.buffer
                shape = tuple(self.expr(dim) for dim in buffer.shape)
                if not _all_scalar(*shape):
                    raise _StaysSerial
                # One copy per lane: the lanes of an element lie side by side.
                lanes = IntImm(self.lanes, I64)
                wide = with_fields(buffer, shape=(*shape, lanes))
                self.private[buffer] = wide
                return with_fields(stmt, buffer=wide, body=self.stmt(stmt.body))
            case Pragma():
                return with_fields(stmt, body=self.stmt(stmt.body))
            case Prefetch():
                return self._prefetch(stmt)
        raise _StaysSerial

    def _store(self, store: Store) -> Stmt:
        buffer, index = self._access(store.buffer, store.index)
        value = self.expr(store.value)
        predicate = store.predicate
        if predicate is not None:
            predicate = self.expr(predicate)
        # All lanes store one value at one place: a scalar store does it, if any lane runs.
        if self.certain and _all_scalar(index, value, predicate):
            return with_fields(store, index=index, value=value, predicate=predicate)
        return Store(
            buffer,
            self.spread(index),
            self.spread(value),
            self.with_mask(predicate),
            store.origin,
        )

    def _if_then_else(self, branch: IfThenElse) -> Stmt:
        condition = self.expr(branch.condition)
        if condition.dtype.lanes == 1:
            else_case = branch.else_case
            if else_case is not None:
                else_case = self.stmt(else_case)
            then_case = self.stmt(branch.then_case)
            return IfThenElse(condition, then_case, else_case, branch.origin)
        # The condition is evaluated once: the branch may change what it reads.
        mask = Var("mask", BOOL.with_lanes(self.lanes))
        head = _first_lane(condition)
        inside = self.under(mask, certain=self.certain and head is not None)
        then_case = inside.stmt(branch.then_case)
        if head is not None:
            then_case = IfThenElse(head, then_case, None, branch.origin)
        stmts = [then_case]
        if branch.else_case is not None:
            outside = self.under(ir.Not(mask))
            stmts.append(outside.stmt(branch.else_case))
        return LetStmt(mask, condition, block(stmts), branch.origin)

    def _prefetch(self, hint: Prefetch) -> Stmt:
        """Return a prefetch for the first lane.

        The other lanes are in the same or the next cache lines, or would need a hint each.
        """
        (flat,) = hint.indices
        buffer, index = self._access(hint.buffer, flat)
        if isinstance(index, Ramp):
            index = index.base
        if not _all_scalar(index):
            return Block((), hint.origin)
        return with_fields(hint, buffer=buffer, indices=(index,))

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
                var, value = self._bind(node)
                return ir.Let(var, value, recurse(node.body))
            case Ramp() | Broadcast():
                raise _StaysSerial  # vectors have no lanes that are vectors
            case ir.PureExtern() if not _all_scalar(*map(recurse, node.args)):
                raise _StaysSerial
        operands = [recurse(child) for child in children(node)]
        if _all_scalar(*operands):
            return map_children(node, recurse, only=Expr)
        return self._combine(node, operands)

    def _combine(self, node: Expr, operands: list[Expr]) -> Expr:
        """Return `node` with new operands, some of which are vectors."""
        ramp = self._affine(node, operands)
        if ramp is not None:
            return ramp
        wide = iter([self.spread(operand) for operand in operands])
        node = map_children(node, lambda _: next(wide), only=Expr)
        if isinstance(node, ir.Cast | ir.Call):
            # These state their dtype; all others derive it from their operands.
            return with_fields(node, dtype=node.dtype.with_lanes(self.lanes))
        return node

    def _affine(self, node: Expr, operands: list[Expr]) -> Expr | None:
        """Return a sum or product of integers as a Ramp, None if it is not one."""
        if not (isinstance(node, ir.Add | ir.Sub | ir.Mul) and node.dtype.is_int):
            return None
        left, right = (affine(operand) for operand in operands)
        if left is None or right is None:
            return None
        a, a_stride = left
        b, b_stride = right
        cls = type(node)
        if cls is not ir.Mul:
            stride = _fold(cls, a_stride, b_stride)
        elif as_int(a_stride) == 0:
            stride = _fold(cls, a, b_stride)
        elif as_int(b_stride) == 0:
            stride = _fold(cls, a_stride, b)
        else:
            return None  # the product is quadratic in the lane
        base = _fold(cls, a, b)
        if as_int(stride) == 0:
            return self.spread(base)
        return Ramp(base, stride, self.lanes)

    def _load(self, load: Load) -> Expr:
        buffer, index = self._access(load.buffer, load.index)
        predicate = load.predicate
        if predicate is not None:
            predicate = self.expr(predicate)
        if self.certain and _all_scalar(index, predicate):
            return with_changes(load, buffer=buffer, index=index, predicate=predicate)
        return Load(buffer, self.spread(index), self.with_mask(predicate))

    def _access(self, buffer: Buffer, index: Expr) -> tuple[Buffer, Expr]:
        index = self.expr(index)
        if buffer not in self.private:
            return buffer, index
        dtype = index.dtype.element
        count = IntImm(self.lanes, dtype)
        lane = Ramp(IntImm(0, dtype), IntImm(1, dtype), self.lanes)
        row = self._combine(ir.Mul(index, count), [index, count])
        index = self._combine(ir.Add(row, lane), [row, lane])
        return self.private[buffer], index

    def _choice(self, node: ir.IfThenElseExpr) -> Expr:
        condition = self.expr(node.condition)
        if condition.dtype.lanes == 1:
            yes = self.expr(node.true_value)
            no = self.expr(node.false_value)
            if not _all_scalar(yes, no):
                yes = self.spread(yes)
                no = self.spread(no)
            return ir.IfThenElseExpr(condition, yes, no)
        # Both values are computed for all lanes; only their reads are masked.
        mask = Var("mask", BOOL.with_lanes(self.lanes))
        yes = self.under(mask).expr(node.true_value)
        no = self.under(ir.Not(mask)).expr(node.false_value)
        yes = self.spread(yes)
        no = self.spread(no)
        if any(var is mask for value in (yes, no) for var in variables_in(value)):
            return ir.Let(mask, condition, ir.Select(mask, yes, no))
        return ir.Select(condition, yes, no)

    def _bind(self, let: ir.Let | LetStmt) -> tuple[Var, Expr]:
        """Return the new variable and value of a let: a vector if it differs by lane."""
        value = self.expr(let.value)
        # A variable that is bound at two places may differ by lane at one of them only.
        if let.var in self.values:
            raise _StaysSerial
        var = let.var if _all_scalar(value) else Var(let.var.name, value.dtype)
        self.values[let.var] = var
        return var, value


def _all_scalar(*exprs: Expr | None) -> bool:
    # A list comprehension is faster than a generator.
    return not [expr for expr in exprs if expr is not None and expr.dtype.lanes > 1]


def _fold(cls: type[ir.Add | ir.Sub | ir.Mul], a: Expr, b: Expr) -> Expr:
    """Return `cls(a, b)` for Add, Sub or Mul, folded if constant operands permit it."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        compute = {ir.Add: operator.add, ir.Sub: operator.sub, ir.Mul: operator.mul}
        return IntImm(compute[cls](a.value, b.value), a.dtype)
    if cls is ir.Mul:
        for factor, other in ((a, b), (b, a)):
            if as_int(factor) == 0:
                return factor
            if as_int(factor) == 1:
                return other
    elif as_int(b) == 0:
        return a
    elif as_int(a) == 0 and cls is ir.Add:
        return b
    return cls(a, b)


def _first_lane(condition: Expr) -> Expr | None:
    """Return the condition of the first lane, if it holds whenever that of any lane does.

    Otherwise return None. The result is known if the difference of the two sides of a
    comparison changes by a constant from lane to lane. Both sides have dtype i64. They are
    assumed not to wrap within the vector, since they are indices or compared with indices.
    """
    match condition:
        case Broadcast():
            return condition.value
        case ir.And() | ir.Or():
            a = _first_lane(condition.a)
            b = _first_lane(condition.b)
            return None if a is None or b is None else type(condition)(a, b)
        case ir.LT() | ir.LE() | ir.GT() | ir.GE():
            left = affine(condition.a)
            right = affine(condition.b)
            if left is None or right is None or condition.a.dtype.element != I64:
                return None
            a, a_stride = left
            b, b_stride = right
            drift = as_int(_fold(ir.Sub, a_stride, b_stride))
            if drift is None:
                return None
            # Once false, the comparison stays false in all later lanes.
            is_less = isinstance(condition, ir.LT | ir.LE)
            stays_false = drift >= 0 if is_less else drift <= 0
            return type(condition)(a, b) if stays_false else None
    return None

"""Ends reductions across threads in registers: threads of a subgroup exchange values.

Before::

    func total(A: f32[4], B: f32[1] out) {
      for t in range(4) threadIdx.x {
        alloc S: f32[4] shared {
          S@[t] = A@[t]
          barrier
          if (t < 2) {
            S@[t] = S@[t] + S@[t + 2]
          }
          barrier
          if (t < 1) {
            S@[0] = S@[0] + S@[1]
          }
          if (t == 0) {
            B@[0] = S@[0]
          }
        }
      }
    }

After::

    func total(A: f32[4], B: f32[1] out) {
      for t in range(4) threadIdx.x {
        alloc S: f32[4] shared {
          S@[t] = A@[t]
          barrier
          let S.0: f32 = S@[t] {
            let S.1: f32 = S.0 + subgroup_shuffle_xor(S.0, 2i32, 4i32) {
              let S.2: f32 = S.1 + subgroup_shuffle_xor(S.1, 1i32, 4i32) {
                if (t < 1) {
                  S@[0] = S.2
                }
              }
            }
          }
          if (t == 0) {
            B@[0] = S@[0]
          }
        }
      }
    }

The steps of such a reduction (`refcomp.lowering.cross_thread`) halve the number of threads at work.
The last ones, from 32 elements on, need neither shared memory nor barriers. All threads of a group
compute them, and only the values of the threads that worked before are used. Each of these combines
the same pairs in the same order as before, so that the result has the same bits.

Requires: kernels in canonical form, and barriers. Ensures: the same results. The barrier before the
steps is kept, so accesses of other memory before and after them stay ordered. Level: device, kept.
It refuses nothing: a reduction of another form stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from refcomp.arith import simplify
from refcomp.foundation.dtype import I32
from refcomp.ir.buffer import SHARED, Buffer, Load
from refcomp.ir.constants import as_int, as_ints
from refcomp.ir.expr import LT, Call, Cast, Expr, IntImm, Let, Sub, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import KernelNest, is_bound, kernel_nest
from refcomp.ir.node import Node
from refcomp.ir.rewrite import Rewrite, map_children, rewriter, substitute, walk
from refcomp.ir.stmt import (
    AtomicUpdate,
    Barrier,
    Block,
    For,
    IfThenElse,
    LetStmt,
    LoopKind,
    Stmt,
    Store,
    block,
    with_lets,
)

_MAX_SUBGROUP = 32  # threads of a warp
_MIN_STEPS = 2  # one step alone has no barrier to spare


def reduce_in_subgroups(func: PrimFunc) -> PrimFunc:
    """Return the kernel `func`, whose reductions across threads end in registers."""
    if not (isinstance(func.body, For) and is_bound(func.body)):
        return func
    nest = kernel_nest(func.body)
    loop = nest.loop(LoopKind.THREAD_X)
    if loop is None or as_ints(nest.block) is None:
        return func
    return func.with_body(_GroupReductions(nest, loop).visit(func.body))


@dataclass(frozen=True, slots=True)
class _Halving:
    """One step: threads below `count` combine their elements with those `count` further on."""

    count: int
    stmt: IfThenElse
    stores: tuple[
        Store, ...
    ]  # their values are evaluated before the first one is carried out


@dataclass(frozen=True)
class _GroupReductions:
    """A kernel whose groups have a constant size."""

    nest: KernelNest
    loop: For  # of threadIdx.x

    def visit(self, stmt: Stmt) -> Stmt:
        """Return `stmt` with its reductions in registers."""
        stmt = map_children(stmt, self.visit, only=Stmt)
        if not isinstance(stmt, Block):
            return stmt
        for position in range(1, len(stmt.stmts)):
            steps = self._steps(stmt.stmts[position:])
            if steps and isinstance(stmt.stmts[position - 1], Barrier):
                own = self._own_elements(stmt.stmts[:position], steps)
                ended = own and self._in_registers(steps, own)
                if ended:
                    # Between the steps are barriers.
                    rest = stmt.stmts[position + 2 * len(steps) - 1 :]
                    before = stmt.stmts[:position]
                    return self.visit(block([*before, ended, *rest], stmt.origin))
        return stmt

    def _steps(self, stmts: Sequence[Stmt]) -> list[_Halving]:
        """Return the steps at the beginning of `stmts`, with 1 as the last count; or none."""
        steps: list[_Halving] = []
        for stmt in stmts[::2]:
            step = self._step(stmt)
            if step is None or (steps and 2 * step.count != steps[-1].count):
                return []
            steps.append(step)
            if step.count == 1:
                break
        if len(steps) < _MIN_STEPS or steps[-1].count != 1:
            return []
        between = stmts[1 : 2 * len(steps) - 1 : 2]
        width = 2 * steps[0].count
        is_whole = width <= _MAX_SUBGROUP and self._threads % width == 0
        return (
            steps if is_whole and all(isinstance(s, Barrier) for s in between) else []
        )

    @cached_property
    def _threads(self) -> int:
        """The number of threads along x. That of a group is a multiple of it."""
        count = as_int(self.loop.extent)
        assert count is not None and prod(as_ints(self.nest.block) or ()) % count == 0
        return count

    def _step(self, stmt: Stmt) -> _Halving | None:
        if not (isinstance(stmt, IfThenElse) and stmt.else_case is None):
            return None
        condition = stmt.condition
        if not (isinstance(condition, LT) and self._is_thread(condition.a)):
            return None
        count = as_int(condition.b)
        stores = _stores_together(stmt.then_case)
        if count is None or count < 1 or not stores:
            return None
        return _Halving(count, stmt, stores)

    def _is_thread(self, expr: Expr) -> bool:
        while isinstance(expr, Cast) and expr.dtype.is_int:
            expr = expr.value
        return expr is self.loop.var

    def _own_elements(
        self, before: Sequence[Stmt], steps: Sequence[_Halving]
    ) -> dict[Buffer, Expr] | None:
        """Return the index of the element of each buffer that a thread has for itself.

        All threads have stored it. None if that is not certain.
        """
        buffers = {store.buffer for step in steps for store in step.stores}
        own: dict[Buffer, Expr] = {}
        for stmt in before:
            if isinstance(stmt, Store) and stmt.buffer in buffers:
                own[stmt.buffer] = stmt.index
        is_known = own.keys() == buffers and all(
            buffer.scope == SHARED and self._is_of_one_thread(index)
            for buffer, index in own.items()
        )
        if not is_known:
            return None
        # No other thread may write the elements that threads keep in registers.
        last = [store.index for store in steps[-1].stores]
        for node in walk(self.nest.body):
            if isinstance(node, AtomicUpdate) and node.buffer in own:
                return None
            if not (isinstance(node, Store) and node.buffer in own):
                continue
            index = node.index
            mine = own[node.buffer]
            if any(node.index is other for other in last):
                index = self._at_first(index)
                mine = self._at_first(mine)
            if node.predicate is not None or _distance(index, mine) != 0:
                return None
        return own

    def _is_of_one_thread(self, index: Expr) -> bool:
        def next_thread(recurse: Rewrite, node: Node) -> Node:
            if isinstance(node, Expr) and self._is_thread(node):
                return node + IntImm(1, node.dtype)
            return map_children(node, recurse)

        following = rewriter(next_thread)(index)
        return index.dtype.lanes == 1 and _distance(following, index) == 1

    def _at_first(self, index: Expr) -> Expr:
        """Return `index` in the first thread along x."""
        return substitute(index, {self.loop.var: IntImm(0, self.loop.var.dtype)})

    def _in_registers(
        self, steps: Sequence[_Halving], own: Mapping[Buffer, Expr]
    ) -> Stmt | None:
        """Return the steps without shared memory; None if they read other elements."""
        width = 2 * steps[0].count
        lets: list[tuple[Var, Expr]] = []
        values: dict[Buffer, Var] = {}
        for buffer, index in own.items():
            values[buffer] = Var(f"{buffer.name}.0", buffer.dtype)
            lets.append((values[buffer], Load(buffer, index)))
        for number, step in enumerate(steps, start=1):
            combined = dict(values)
            for store in step.stores:
                value = self._exchanged(step, store.value, own, values, width)
                if value is None:
                    return None
                name = Var(f"{store.buffer.name}.{number}", store.buffer.dtype)
                combined[store.buffer] = name
                lets.append((name, value))
            values = combined
        last = steps[-1]
        stores: list[Stmt] = [
            Store(store.buffer, store.index, values[store.buffer], None, store.origin)
            for store in last.stores
        ]
        kept = block(stores, last.stmt.origin)
        end = IfThenElse(last.stmt.condition, kept, None, last.stmt.origin)
        return with_lets(lets, end, steps[0].stmt.origin)

    def _exchanged(
        self,
        step: _Halving,
        value: Expr,
        own: Mapping[Buffer, Expr],
        values: Mapping[Buffer, Var],
        width: int,
    ) -> Expr | None:
        """Return what a step stores, by the values of this thread and of the other one."""
        is_exchanged = True

        def visit(recurse: Rewrite, node: Node) -> Node:
            nonlocal is_exchanged
            if not isinstance(node, Load):
                return map_children(node, recurse)
            distance = None
            if node.buffer in own and node.predicate is None:
                distance = self._distance_in(step, node.index, own[node.buffer])
            if distance == 0:
                return values[node.buffer]
            if distance == step.count:
                mine = values[node.buffer]
                numbers = (IntImm(step.count, I32), IntImm(width, I32))
                return Call("subgroup_shuffle_xor", (mine, *numbers), mine.dtype)
            is_exchanged = False
            return node

        result = rewriter(visit)(value)
        return result if is_exchanged else None

    def _distance_in(self, step: _Halving, index: Expr, own: Expr) -> int | None:
        """Return how far `index` is from `own` in the threads of a step."""
        if (
            step.count == 1
        ):  # there, the number of the thread may have been replaced by 0
            return _distance(self._at_first(index), self._at_first(own))
        return _distance(index, own)


def _distance(index: Expr, other: Expr) -> int | None:
    if index.dtype != other.dtype:
        return None
    return as_int(simplify(Sub(index, other)))


def _stores_together(stmt: Stmt) -> tuple[Store, ...]:
    """Return stores of values that are all evaluated first; none if `stmt` is something else."""
    lets: dict[Var, Expr] = {}
    while isinstance(stmt, LetStmt):
        lets[stmt.var] = substitute(stmt.value, lets)
        stmt = stmt.body
    stmts = stmt.stmts if isinstance(stmt, Block) else (stmt,)
    stores: list[Store] = []
    for part in stmts:
        if not isinstance(part, Store) or part.predicate is not None:
            return ()
        value = substitute(part.value, lets)
        # Without lets, a later store of several reads what an earlier one wrote.
        is_plain = len(stmts) == 1 or isinstance(part.value, Var)
        if (
            not is_plain
            or part.index.dtype.lanes > 1
            or any(isinstance(node, Let) for node in walk(value))
        ):
            return ()
        stores.append(Store(part.buffer, part.index, value, None, part.origin))
    return tuple(stores)

"""Names subexpressions that are evaluated more than once, so that they are printed once.

Before::

    func f(A: f32[n, m], B: f32[n, m] out) {
      for i in range(n) {
        for j in range(m) {
          B@[i * m + j] = A@[i * m + j] * A@[i * m + j]
        }
      }
    }

After::

    func f(A: f32[n, m], B: f32[n, m] out) {
      for i in range(n) {
        for j in range(m) {
          let t: i64 = i * m + j {
            let t_1: f32 = A@[t] {
              B@[t] = t_1 * t_1
            }
          }
        }
      }
    }

Requires: nothing before it. Ensures: integer arithmetic that reads no memory is evaluated
once, at the innermost place around all its uses. Any other expression that one statement
evaluates twice is evaluated once, before the statement. No read moves past a write. No
expression leaves a branch of if_then_else, unless it is evaluated in any case. Level:
flat, host or device, kept. It refuses nothing.

Ramps stay in their accesses, and constants where they are. A parallel region shares
nothing with the code around it. Neither does a bound loop, whose own extent is not
changed, so that kernels keep their form.
"""

from __future__ import annotations

from collections.abc import Iterator

from refcomp.ir.expr import Expr, Let, Var
from refcomp.ir.func import PrimFunc
from refcomp.ir.kernels import is_bound
from refcomp.ir.node import child_fields
from refcomp.ir.rewrite import children, map_children, statements_in, with_changes
from refcomp.ir.stmt import For, LetStmt, ParallelRegion, Stmt, with_lets
from refcomp.passes.analysis.sharing import (
    LetScope,
    Sharing,
    barrier_fields,
    count_bindings,
)


def introduce_lets(func: PrimFunc) -> PrimFunc:
    """Return `func` with a let for each subexpression that occurs again."""
    rebound = count_bindings(_bound_in(func.body))
    sharing = Sharing(rebound)
    places = _collect(func.body, sharing)
    if not sharing.decide():
        return func
    rewriting = _Rewriter(sharing, iter(places))
    return func.with_body(rewriting.stmt(func.body))


def _bound_in(stmt: Stmt) -> Iterator[Var]:
    # Not `walk`: a statement that stands at two places binds its variables twice.
    return (item.var for item in statements_in(stmt) if isinstance(item, For | LetStmt))


def _collect(root: Stmt, sharing: Sharing) -> list[LetScope]:
    """Return a place for each statement, in order; record what each one evaluates."""
    places: list[LetScope] = []
    stack: list[tuple[Stmt, LetScope | None]] = [(root, None)]
    while stack:
        stmt, parent = stack.pop()
        place = LetScope(parent)
        places.append(place)
        inner: list[Stmt] = []
        for child in children(stmt):
            if isinstance(child, Stmt):
                inner.append(child)
            elif isinstance(child, Expr) and not is_bound(stmt):
                sharing.use(child, place)
        inside = None if _is_apart(stmt) else place
        stack.extend((child, inside) for child in reversed(inner))
    return places


def _is_apart(stmt: Stmt) -> bool:
    """Return True if no name from outside of `stmt` may be used inside.

    A region sees only its captures. The bound loops of a kernel must be directly nested.
    """
    return isinstance(stmt, ParallelRegion) or is_bound(stmt)


class _Rewriter:
    """Inserts the lets. It visits the statements in the order of `_collect`."""

    def __init__(self, sharing: Sharing, places: Iterator[LetScope]) -> None:
        self._sharing = sharing
        self._places = places
        self._named: dict[int, Var] = {}  # number -> the let around that binds it
        self._known: dict[int, Expr] = {}  # id of an expression -> its rewritten form

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return `stmt` inside its lets."""
        place = next(self._places)
        lets = self._enter(place)
        outside = self._named
        if _is_apart(stmt):
            self._named = {}

        def visit(expr: Expr) -> Expr:
            self._known = {}
            return self._expr(expr, place)

        # The host evaluates the extents of bound loops to launch the kernel.
        result = stmt if is_bound(stmt) else map_children(stmt, visit, only=Expr)
        result = map_children(result, self.stmt, only=Stmt)
        self._named = outside
        self._leave(place)
        return with_lets(lets, result, stmt.origin)

    def _enter(self, place: LetScope) -> list[tuple[Var, Expr]]:
        """Return the lets of `place`, outermost first, and use their names from now on."""
        lets: list[tuple[Var, Expr]] = []
        # Parts have smaller numbers than what they are part of, so they are bound first.
        for number, var in sorted(place.lets, key=lambda let: let[0]):
            self._known = {}
            expr = self._sharing.expr(number)
            value = self._rebuild(expr, number, place)
            lets.append((var, value))
            self._named[number] = var
        self._known = {}
        return lets

    def _leave(self, place: LetScope) -> None:
        for number, _ in place.lets:
            del self._named[number]

    def _expr(self, expr: Expr, place: LetScope) -> Expr:
        known = self._known.get(id(expr))
        if known is None:
            number = self._sharing.number(expr, place)
            known = self._named.get(number)
            if known is None:
                known = self._rebuild(expr, number, place)
            self._known[id(expr)] = known
        return known

    def _rebuild(self, expr: Expr, number: int, place: LetScope) -> Expr:
        inside = barrier_fields(expr)
        if not inside:
            return map_children(expr, lambda child: self._expr(child, place), only=Expr)
        changes: dict[str, Expr] = {}
        for name in child_fields(type(expr)):
            child = getattr(expr, name)
            if name in inside:
                changes[name] = self._inner(child, place.barrier(number, name))
            else:
                changes[name] = self._expr(child, place)
        return with_changes(expr, **changes)

    def _inner(self, expr: Expr, place: LetScope) -> Expr:
        """Return the rewritten form of a part that is a place of its own."""
        # What was rewritten here may use names that are not bound outside, and conversely.
        known = self._known
        lets = self._enter(place)
        result = self._expr(expr, place)
        for var, value in reversed(lets):
            result = Let(var, value, result)
        self._leave(place)
        self._known = known
        return result

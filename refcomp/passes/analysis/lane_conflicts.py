"""Decides whether lanes of vectorized code may touch one element that one of them writes.

Serial code runs iteration by iteration, vector code statement by statement. Both mean the
same if no element that one iteration writes is read or written by another one. This is
proved for pairs of indices whose lanes lie a constant stride apart. For all other pairs,
the answer is that they may conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

from refcomp.arith import modular, simplify
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Broadcast, Expr, IntImm, Let, Ramp, Var
from refcomp.ir.rewrite import statements_in, substitute, variables_in, walk
from refcomp.ir.stmt import For, LetStmt, Stmt, Store
from refcomp.ir.structure import structurally_equal


@dataclass(frozen=True, slots=True)
class _LaneAccess:
    index: Expr
    is_store: bool
    # In a loop of the body, so that each lane may run it many times.
    is_repeated: bool


def affine(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return (base, stride) if lane k of `expr` is base + stride * k, else None.

    A scalar has stride 0.
    """
    if isinstance(expr, Ramp):
        return expr.base, expr.stride
    if isinstance(expr, Broadcast):
        return expr.value, IntImm(0, expr.value.dtype)
    if expr.dtype.lanes > 1:
        return None
    return expr, IntImm(0, expr.dtype)


def may_conflict(body: Stmt, lanes: int, private: frozenset[Buffer]) -> bool:
    """Return True if iterations may touch one element, at least one of them writing.

    Args:
        body: the vectorized body of a loop.
        lanes: the number of iterations that it runs at once.
        private: the buffers of which each lane has its own.
    """
    repeated: set[int] = set()  # ids of the nodes in loops of the body
    # A second name for each variable that such a loop gives several values.
    varying: dict[Var, Expr] = {}
    loops = [stmt for stmt in statements_in(body) if isinstance(stmt, For)]
    for loop in loops:
        varying[loop.var] = Var(loop.var.name, loop.var.dtype)
        for node in walk(loop.body):
            repeated.add(id(node))
            if isinstance(node, Let | LetStmt):
                varying[node.var] = Var(node.var.name, node.var.dtype)
    accesses: dict[Buffer, list[_LaneAccess]] = {}
    for node in walk(body):
        if isinstance(node, Load | Store) and node.buffer not in private:
            is_store = isinstance(node, Store)
            access = _LaneAccess(node.index, is_store, id(node) in repeated)
            accesses.setdefault(node.buffer, []).append(access)
    for group in accesses.values():
        for p, q in combinations_with_replacement(group, 2):
            if not (p.is_store or q.is_store):
                continue
            if _pair_may_conflict(p, q, lanes, varying):
                return True
    return False


def _pair_may_conflict(
    p: _LaneAccess, q: _LaneAccess, lanes: int, varying: Mapping[Var, Expr]
) -> bool:
    # A single store writes its lanes in ascending order, as the serial loop does.
    if p is q and not p.is_repeated:
        return False
    first = affine(p.index)
    second = affine(q.index)
    if first is None or second is None:
        return True
    base, stride = first
    other_base, other_stride = second
    step = as_int(stride)
    if step is None or step != as_int(other_stride):
        return True
    steps = [step * lane for lane in range(1 - lanes, lanes) if lane]
    is_fixed = not any(var in varying for var in variables_in(base))
    if is_fixed and structurally_equal(base, other_base):
        return 0 in steps
    # The two accesses may be in different iterations of an inner loop.
    other_base = substitute(other_base, varying)
    distance = modular(simplify(base - other_base))
    return any(distance.contains(step) for step in steps)

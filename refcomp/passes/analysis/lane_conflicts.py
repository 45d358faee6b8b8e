"""Tells whether lanes of vectorized code may touch one element that one of them writes.

Serial code runs iteration by iteration, vector code statement by statement. Both mean the same when
no element written by one iteration is read or written by another; this file proves that for index
pairs whose lanes lie a constant stride apart, and answers "may conflict" for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

from refcomp.arith import modular, simplify
from refcomp.ir.buffer import Buffer, Load
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Broadcast, Expr, IntImm, Let, Ramp, Var
from refcomp.ir.rewrite import substitute, variables_in, walk
from refcomp.ir.stmt import For, LetStmt, Stmt, Store
from refcomp.ir.structure import structurally_equal


@dataclass(frozen=True, slots=True)
class _LaneAccess:
    buffer: Buffer
    index: Expr
    is_store: bool
    is_repeated: (
        bool  # inside a loop of the body, so that each lane may run it many times
    )


def affine(expr: Expr) -> tuple[Expr, Expr] | None:
    """(base, stride) when lane l of `expr` is base + stride * l; scalars have stride 0."""
    if isinstance(expr, Ramp):
        return expr.base, expr.stride
    if isinstance(expr, Broadcast):
        return expr.value, IntImm(0, expr.value.dtype)
    return (expr, IntImm(0, expr.dtype)) if expr.dtype.lanes == 1 else None


def may_conflict(body: Stmt, lanes: int, private: frozenset[Buffer]) -> bool:
    """Whether two of the `lanes` iterations that `body` runs at once may touch one element of a
    buffer that is not `private` to a lane, at least one of them writing."""
    repeated, varying = _repeated_part(body)
    accesses: dict[Buffer, list[_LaneAccess]] = {}
    for access in _accesses(body, repeated):
        accesses.setdefault(access.buffer, []).append(access)
    return any(
        _pair_may_conflict(p, q, lanes, varying)
        for buffer, group in accesses.items()
        if buffer not in private
        for p, q in combinations_with_replacement(group, 2)
        if p.is_store or q.is_store
    )


def _repeated_part(body: Stmt) -> tuple[set[int], dict[Var, Expr]]:
    """The ids of the nodes in loops of `body`, and a second name for each variable that such
    a loop gives several values."""
    repeated: set[int] = set()
    varying: dict[Var, Expr] = {}
    for loop in (node for node in walk(body) if isinstance(node, For)):
        varying[loop.var] = Var(loop.var.name, loop.var.dtype)
        for node in walk(loop.body):
            repeated.add(id(node))
            if isinstance(node, Let | LetStmt):
                varying[node.var] = Var(node.var.name, node.var.dtype)
    return repeated, varying


def _accesses(body: Stmt, repeated: set[int]) -> Iterator[_LaneAccess]:
    for node in walk(body):
        if isinstance(node, Load | Store):
            is_store, is_repeated = isinstance(node, Store), id(node) in repeated
            yield _LaneAccess(node.buffer, node.index, is_store, is_repeated)


def _pair_may_conflict(
    p: _LaneAccess, q: _LaneAccess, lanes: int, varying: Mapping[Var, Expr]
) -> bool:
    # One store alone writes its lanes in ascending order, as the serial loop does.
    if p is q and not p.is_repeated:
        return False
    first, second = affine(p.index), affine(q.index)
    if first is None or second is None:
        return True
    (base, stride), (other_base, other_stride) = first, second
    step = as_int(stride)
    if step is None or step != as_int(other_stride):
        return True
    steps = [step * lane for lane in range(1 - lanes, lanes) if lane]
    if structurally_equal(base, other_base) and not _depends(base, varying):
        return 0 in steps
    distance = modular(simplify(base - substitute(other_base, varying)))
    return any(distance.contains(step) for step in steps)


def _depends(expr: Expr, varying: Mapping[Var, Expr]) -> bool:
    return any(var in varying for var in variables_in(expr))

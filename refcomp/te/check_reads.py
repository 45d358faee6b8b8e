"""Refuses computations that read beyond a tensor, where that is certain.

An index is judged when it is a sum of axes times constants (and floor quotients of such), as its
least and its greatest value are then really met; what is read on some condition only (a branch, a
`where=`) is not judged, nor what depends on the values of several symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from refcomp.arith import Facts, prove, simplify
from refcomp.errors import UserError
from refcomp.ir.expr import LT, Add, Expr, FloorDiv, IfThenElseExpr, IntImm, Mul, Select, Sub, Var
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, variables_in
from refcomp.ir.structure import structurally_equal
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar, TensorRead

_Range = tuple[Expr, Expr]  # the least and the greatest value, both met


def check_reads(
    name: str, axes: Iterable[IterVar], bodies: Iterable[Expr], rows: IterVar | None = None
) -> bool:
    """UserError when `bodies`, for all values of `axes`, read an element that is not there.

    With `rows`, the first axis, a read of an earlier row (`S[t - 1, i]`) of as many rows is let
    pass, as S may be the state of a scan, which computes later rows only. Says whether one was.
    """
    waits = False
    ranges: dict[Var, _Range] = {}
    facts = Facts()
    for axis in axes:
        for symbol in variables_in(axis.extent):
            facts = facts.nonnegative(symbol)
        ranges[axis.var] = axis.minimum, simplify(axis.minimum + axis.extent - 1)
    for axis in axes:  # where one is empty, nothing is read at all
        facts = facts.assume(LT(IntImm(0, axis.extent.dtype), axis.extent))
    checked: set[tuple[int, int, int]] = set()  # the reads of a stencil have indices in common
    for read in _certain_reads(bodies):
        for dim, index in enumerate(read.indices):
            same = (id(read.tensor), dim, id(facts.table.intern(index)))
            if dim == 0 and rows is not None and _may_be_state(read, rows):
                waits = True
            elif same not in checked:
                checked.add(same)
                _check_index(name, read, dim, _range_of(index, ranges), facts)
    return waits


def _may_be_state(read: TensorRead, rows: IterVar) -> bool:
    match read.indices[0]:
        case Sub(a=row, b=IntImm(value=back)):
            is_earlier = row is rows.var and back > 0
        case Add(a=row, b=IntImm(value=step)):
            is_earlier = row is rows.var and step < 0
        case _:
            return False
    is_given = not read.tensor.op.inputs and not hasattr(read.tensor.op, "axis")
    return is_earlier and is_given and structurally_equal(read.tensor.shape[0], rows.extent)


def _certain_reads(bodies: Iterable[Expr]) -> Iterator[TensorRead]:
    """The reads that each iteration does, whatever the conditions are."""
    seen: set[int] = set()
    stack: list[Node] = list(bodies)
    while stack:
        node: Any = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, TensorRead):
            yield node
        stack.extend((node.condition,) if _is_conditional(node) else children(node))


def _is_conditional(node: Node) -> bool:
    """Whether only the condition of `node` is evaluated in each iteration."""
    if isinstance(node, Reduce):
        return not (isinstance(node.condition, IntImm) and node.condition.value)
    return isinstance(node, IfThenElseExpr | Select)


def _check_index(
    name: str, read: TensorRead, dim: int, bounds: _Range | None, facts: Facts
) -> None:
    if bounds is None:
        return
    tensor, extent = read.tensor, read.tensor.shape[dim]
    low, high = (simplify(bound, facts) for bound in bounds)
    beyond = low if prove(LT(low, IntImm(0, low.dtype)), facts) else None
    if beyond is None and prove(LT(extent - 1, high), facts):
        beyond = high
    if beyond is None:
        return
    raise UserError(
        f"compute {name} reads index {beyond} of dimension {dim} of {tensor.name}",
        where=f"{tensor.name}[{', '.join(map(str, read.indices))}]",
        why=f"that dimension has the elements 0 .. {simplify(extent - 1)}",
        remedy="compute a smaller tensor, or read under a condition: if_then_else(i < n, A[i], 0)",
    )


def _range_of(index: Expr, ranges: Mapping[Var, _Range]) -> _Range | None:
    """The least and the greatest value of `index`, None where they may not be met."""
    mine = [var for var in variables_in(index) if var in ranges]
    if not mine:
        return index, index
    match index:
        case Var():
            return ranges[index]
        case Add() | Sub():
            return _range_of_sum(index, ranges)
        case Mul(a=a, b=IntImm(value=factor)) | Mul(a=IntImm(value=factor), b=a):
            inner = _range_of(a, ranges)
            low, high = (None, None) if inner is None else (x * factor for x in inner)
            if low is None or high is None:
                return None
            return (low, high) if factor >= 0 else (high, low)
        case FloorDiv(a=a, b=IntImm(value=divisor)) if divisor > 0:
            inner = _range_of(a, ranges)
            return None if inner is None else (inner[0] // divisor, inner[1] // divisor)
    return None


def _range_of_sum(index: Add | Sub, ranges: Mapping[Var, _Range]) -> _Range | None:
    """Both ends are met only when no axis stands on both sides."""
    sides = [{var for var in variables_in(side) if var in ranges} for side in (index.a, index.b)]
    a, b = _range_of(index.a, ranges), _range_of(index.b, ranges)
    if a is None or b is None or sides[0] & sides[1]:
        return None
    if isinstance(index, Add):
        return a[0] + b[0], a[1] + b[1]
    return a[0] - b[1], a[1] - b[0]

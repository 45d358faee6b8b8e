"""Refuse computations that certainly read beyond a tensor.

An index is judged by its minimum and maximum, if some iteration attains them (`arith.attained`).

- A scan does not compute its first rows. If an index is out of range in the first rows only, it is
  judged when the computation is scheduled. Only then it is known if it belongs to a scan.
- Conditional reads, in a branch or under `where=`, are not judged here.
- If the values of symbols decide, each call checks a condition (`refcomp.lowering.required_reads`).
- `refcomp.lowering.entry_points` judges the reads that are left, unless they depend on data.

Most computations read whole axes only. They need no proof, and so `arith` is imported on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.snippets import Snippet
from refcomp.ir.constants import as_int
from refcomp.ir.expr import LE, Expr, IfThenElseExpr, IntImm, Select, Sub, Var
from refcomp.ir.logic_operands import NEST_CONDITIONS, logic_operands
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, variables_in
from refcomp.te.dependent_ranges import ranged_axes
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar, TensorRead

if TYPE_CHECKING:
    from refcomp.arith import Facts
    from refcomp.arith.attained import Box
    from refcomp.arith.ends import Bound


def check_reads(
    name: str,
    own: Sequence[IterVar],
    bodies: Sequence[Expr],
    rows: IterVar | None = None,
    at: Snippet | None = None,
) -> bool:
    """Raise UserError if `bodies` read an element that does not exist.

    Args:
        name: the name of the computation.
        own: its data-parallel axes.
        bodies: its expressions.
        rows: the first axis, if the computation may belong to a scan. Then a read is accepted if it
            is out of range in the first rows only, such as `X[t - 1, i]`.
        at: the line of the computation, if another line is being executed.

    Returns:
        True if such a read was accepted.
    """
    needs_scan = False
    for evaluated, axes in evaluations(own, bodies):
        if _check_evaluated(name, axes, evaluated, rows, at):
            needs_scan = True
    return needs_scan


def evaluations(
    own: Sequence[IterVar], bodies: Sequence[Expr]
) -> Iterator[tuple[Sequence[Expr], Sequence[IterVar]]]:
    """Yield the expressions that a compute evaluates, each with the axes around it.

    The range of a reduction axis is evaluated for all values of the axes outside of it. The axes
    that are yielded have the ranges that the reduction gives them.
    """
    reduce = bodies[0] if isinstance(bodies[0], Reduce) else None
    axes = list(own)
    for reduced in ranged_axes(reduce):
        if reduce is not None and reduce.ranges:
            yield (reduced.minimum, reduced.extent), tuple(axes)
        axes.append(reduced)
    yield bodies, axes


def _check_evaluated(
    name: str,
    given: Sequence[IterVar],
    listed: Sequence[Expr],
    rows: IterVar | None,
    at: Snippet | None,
) -> bool:
    """Check the reads of expressions that are evaluated for all values of the axes."""
    needs_scan = False
    ranges = {axis.var: axis for axis in given}
    box: Box | None = None  # made for the first index that needs a proof
    # The reads of a stencil have indices in common: judge each index of a dimension once.
    checked: set[tuple[int, int, int]] = set()
    for read in certain_reads(listed):
        for dim, index in enumerate(read.indices):
            same = (id(read.tensor), dim, id(index))
            if same in checked:
                continue
            checked.add(same)
            extent = read.tensor.shape[dim]
            if is_whole_axis(index, extent, ranges):
                continue
            if box is None:
                box = box_of(given)
            beyond = box.judge(index, extent).beyond
            if beyond is None:
                continue
            if rows is not None and _is_in_later_rows(index, extent, given):
                needs_scan = True
                continue
            is_operand = id(read) in logic_operands(listed)
            _refuse(name, read, dim, beyond, is_operand=is_operand, at=at)
    return needs_scan


def is_whole_axis(index: Expr, extent: Expr, ranges: Mapping[Var, IterVar]) -> bool:
    """Return True if `index` is an axis that begins at 0 and has at most `extent` iterations.

    Such an index needs no proof. Most reads of most programs have no others.
    """
    axis = ranges.get(index) if isinstance(index, Var) else None
    if axis is None or as_int(axis.minimum) != 0:
        return False
    count = as_int(axis.extent)
    size = as_int(extent)
    if count is not None and size is not None:
        return count <= size
    return axis.extent is extent


def box_of(
    axes: Iterable[IterVar],
    facts: Facts | None = None,
    symbols: frozenset[Var] | None = None,
) -> Box:
    """Return the Box of `axes`, outermost first. A range may depend on axes before its own."""
    from refcomp.arith import Facts  # noqa: PLC0415  (see above)
    from refcomp.arith.attained import Box  # noqa: PLC0415

    listed = list(axes)
    known = Facts() if facts is None else facts
    own = {axis.var for axis in listed}
    for axis in listed:
        for symbol in variables_in(axis.extent):
            if symbol not in own:
                known = known.nonnegative(symbol)
    return widened(Box(known, symbols), listed)


def widened(box: Box, axes: Iterable[IterVar]) -> Box:
    """Return `box` with additional axes."""
    for axis in axes:
        box = box.with_axis(axis.var, axis.minimum, axis.extent)
    return box


def _is_in_later_rows(index: Expr, extent: Expr, axes: Sequence[IterVar]) -> bool:
    """Return True if `index` may be in range for the rows of a scan.

    These are all rows of the first of `axes` from some row after the first one.
    """
    from refcomp.arith import Facts  # noqa: PLC0415  (see above)

    rows, *others = axes
    if rows.var not in variables_in(index):
        return False
    count = as_int(rows.extent)
    if count is not None:
        # The last row decides. If even that is too early, the scan may compute no row at all.
        last = box_of(others).with_axis(
            rows.var, IntImm(count - 1, I64), IntImm(1, I64)
        )
        beyond = last.judge(index, extent).beyond
        return beyond is None or (isinstance(beyond, int) and beyond < 0)
    begin = Var("begin", I64)
    facts = Facts().assume(LE(IntImm(1, I64), begin))
    box = box_of(others, facts)
    box = box.with_axis(rows.var, begin, Sub(rows.extent, begin))
    return box.judge(index, extent).beyond is None


def certain_reads(bodies: Iterable[Expr]) -> Iterator[TensorRead]:
    """Yield the reads that each iteration executes, whatever its conditions are."""
    # Shared subtrees are visited once, without recursion: bodies may be deep.
    seen: set[int] = set()
    stack: list[Node] = []
    stack.extend(reversed(list(bodies)))
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, TensorRead):
            yield node
        # Each iteration evaluates the condition of these nodes, but perhaps not their values.
        if isinstance(node, _WITH_CONDITION) and not (
            isinstance(node, Reduce) and as_int(node.condition)
        ):
            stack.append(node.condition)
            continue
        below = children(node)
        if below:
            stack += below[::-1]


_WITH_CONDITION = (IfThenElseExpr, Select, Reduce)


def _refuse(
    name: str,
    read: TensorRead,
    dim: int,
    beyond: Bound,
    is_operand: bool,
    at: Snippet | None,
) -> NoReturn:
    from refcomp.arith import simplify  # noqa: PLC0415  (see above)

    guard = "read under a condition: if_then_else(i < n, A[i], 0)"
    tensor = read.tensor
    extent = tensor.shape[dim]
    raise UserError(
        f"compute {name} reads index {beyond} of dimension {dim} of {tensor.name}",
        where=f"{tensor.name}[{', '.join(map(str, read.indices))}]",
        why=f"that dimension has the elements 0 .. {simplify(extent - 1)}",
        remedy=f"compute a smaller tensor, or {NEST_CONDITIONS if is_operand else guard}",
        at=at,
        earlier=[tensor.declaration()],
    )

"""Refuse computations that certainly read beyond a tensor.

An index is judged where its minimum and maximum are attained (`arith.attained`). Conditional reads
(in a branch, under `where=`) are not judged. Reads that depend on the values of symbols become
conditions that each call checks (`refcomp.lowering.required_reads`).

Most computations read whole axes. They are judged without `arith`, which is imported where needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Add, Expr, IfThenElseExpr, IntImm, Select, Sub, Var
from refcomp.ir.logic_operands import NEST_CONDITIONS, logic_operands
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, variables_in
from refcomp.ir.structure import structurally_equal
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar, TensorRead

if TYPE_CHECKING:
    from refcomp.arith import Facts
    from refcomp.arith.attained import Box
    from refcomp.arith.ends import Bound


def check_reads(
    name: str,
    axes: Iterable[IterVar],
    bodies: Iterable[Expr],
    rows: IterVar | None = None,
) -> bool:
    """Raise UserError if `bodies` read an element that does not exist, for all values of `axes`.

    `rows` is the first axis of a computation that may belong to a scan. Then a read of an earlier
    row (`S[t - 1, i]`) of a placeholder with the same number of rows is accepted. S may be the
    state of the scan, which does not compute the first rows. Return True if there was such a read.
    """
    needs_scan = False
    listed = list(bodies)
    given = list(axes)
    ranges = {axis.var: axis for axis in given}
    box: Box | None = None  # made for the first index that needs a proof
    # The reads of a stencil have indices in common: judge each index of a dimension once.
    checked: set[tuple[int, int, int]] = set()
    for read in certain_reads(listed):
        for dim, index in enumerate(read.indices):
            same = (id(read.tensor), dim, id(index))
            if dim == 0 and rows is not None and _may_be_state(read, rows):
                needs_scan = True
            elif same not in checked:
                checked.add(same)
                if is_whole_axis(index, read.tensor.shape[dim], ranges):
                    continue
                if box is None:
                    box = box_of(given)
                beyond = box.judge(index, read.tensor.shape[dim]).beyond
                if beyond is not None:
                    _refuse(
                        name,
                        read,
                        dim,
                        beyond,
                        is_operand=id(read) in logic_operands(listed),
                    )
    return needs_scan


def is_whole_axis(index: Expr, extent: Expr, ranges: Mapping[Var, IterVar]) -> bool:
    """Return True if `index` is an axis that begins at 0 and has at most `extent` iterations.

    Most reads of most programs are such. They need no proof.
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
    """Return the Box of `axes`, whose ranges must not depend on each other."""
    from refcomp.arith import Facts  # noqa: PLC0415  (see above)
    from refcomp.arith.attained import Box  # noqa: PLC0415

    listed = list(axes)
    known = Facts() if facts is None else facts
    for axis in listed:
        for symbol in variables_in(axis.extent):
            known = known.nonnegative(symbol)
    return widened(Box(known, symbols), listed)


def widened(box: Box, axes: Iterable[IterVar]) -> Box:
    """Return `box` with additional axes."""
    for axis in axes:
        box = box.with_axis(axis.var, axis.minimum, axis.extent)
    return box


def _may_be_state(read: TensorRead, rows: IterVar) -> bool:
    """Return True for `S[t - 1, ...]` of a placeholder S with as many rows as the compute."""
    match read.indices[0]:
        case Sub(a=row, b=IntImm(value=back)):
            is_earlier = row is rows.var and back > 0
        case Add(a=row, b=IntImm(value=step)):
            is_earlier = row is rows.var and step < 0
        case _:
            return False
    # A placeholder, without importing its class: operation.py imports this module.
    is_given = not read.tensor.op.inputs and not hasattr(read.tensor.op, "axis")
    return (
        is_earlier
        and is_given
        and structurally_equal(read.tensor.shape[0], rows.extent)
    )


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
    name: str, read: TensorRead, dim: int, beyond: Bound, is_operand: bool
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
        earlier=[tensor.declaration()],
    )

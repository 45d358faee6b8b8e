"""Whether the loops inside a tensorized one compute what the intrinsic does, and on which memory.

    loops:      C[i, j] = sum(A[i, k] * B[k, j])   for 8 x 8 x 8 points, from io * 8, jo * 8, ko * 8
    intrinsic:  c[i, j] = sum(a[i, k] * b[k, j])   for 8 x 8 x 8 points
    places:     a is A from [io * 8, ko * 8], b is B from [ko * 8, jo * 8], c is C from ...

The axes that run inside are paired with the intrinsic's from the last one backwards; those that
stand still (one iteration) may be left over. Both expressions must then have the same structure,
where a tensor of the intrinsic stands for one tensor here, and an index differs by what does not
change inside: the block's origin. Needs a stage whose loops are plain. Refuses everything else,
with both computations and the first difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

from refcomp.arith import Facts, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import Buffer, BufferLoad
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.node import Node, bound_by, data_fields
from refcomp.ir.printer import print_expr
from refcomp.ir.rewrite import (
    Rewrite,
    children,
    map_children,
    rewriter,
    substitute,
    variables_in,
    walk,
)
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.bounds.ranges import Range, RangeFinder
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.schedule.placement import place_text
from refcomp.schedule.stage import Tensorized
from refcomp.te.operation import ComputeOp
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.tensor import IterVar, Tensor, TensorRead


@dataclass(frozen=True, slots=True)
class MatchedBlock:
    """What a tensor of an intrinsic stands for: the block of `tensor` from the element `origin`.

    Dimension k of the intrinsic's tensor is dimension `dims[k]` of this one.
    """

    tensor: Tensor
    dims: tuple[int, ...]
    origin: tuple[Expr, ...]


class _Differs(Exception):
    """Where the loops and the intrinsic part, in words."""


def match_intrin(bounds: StageBounds, wish: Tensorized) -> dict[Tensor, MatchedBlock]:
    """The place of each tensor that the intrinsic reads or computes."""
    try:
        return _Match(bounds, wish).places()
    except _Differs as difference:
        _refuse(bounds, wish, str(difference))


def _refuse(bounds: StageBounds, wish: Tensorized, difference: str) -> NoReturn:
    stage, op = bounds.stage, wish.intrin.op
    assert isinstance(stage.op, ComputeOp)
    raise UserError(
        f"{wish.intrin} does not compute what the loops from axis {wish.axis.name} of stage "
        f"{stage.name} inwards do",
        where=f"{place_text(stage)}, tensorized at {wish.line}",
        why="\n    ".join(
            [
                "these are the two computations, and where they differ first",
                f"loops:      {_text_of(stage.op, bounds.bodies)}",
                f"intrinsic:  {_text_of(op, op.body)}",
                f"difference: {difference}",
            ]
        ),
        remedy="declare the intrinsic by the same expression, or split and reorder the loops so "
        "that its axes run inside, in its order",
    )


class _Match:
    """One attempt. The intrinsic's axes get variables of their own, as it may be declared by the
    very operation that the stage computes."""

    def __init__(self, bounds: StageBounds, wish: Tensorized) -> None:
        stage = bounds.stage
        self.bounds, self.op, self.name = bounds, wish.intrin.op, wish.intrin.name
        self.inside = stage.loops.leaves[stage.loops.position(wish.axis) :]
        self.axes = {a: Var(a.name, I64) for a in (*self.op.axis, *self.op.reduce_axis)}
        self.facts = bounds.facts
        for axis, var in self.axes.items():
            self.facts = self.facts.bind(var, axis.minimum, axis.extent)
        self.found: dict[Tensor, MatchedBlock] = {}
        self._equal: set[tuple[int, int]] = set()  # what is shared is compared once

    def places(self) -> dict[Tensor, MatchedBlock]:
        """As `match_intrin`; _Differs where the two sides part."""
        ranges = self._ranges()
        values = {root.var: found.low for root, found in ranges.items()}
        stage_op = self.bounds.stage.op
        assert isinstance(stage_op, ComputeOp)
        pairs = self._paired(stage_op.axis, self.op.axis, ranges)
        reduced = self._paired(stage_op.reduce_axis, self.op.reduce_axis, ranges)
        for root, axis in (*pairs, *reduced):
            moved = values[root.var] + (self.axes[axis] - axis.minimum)
            values[root.var] = simplify(moved, self.facts)
        self._place_outputs(stage_op, [root for root, _ in pairs], ranges)
        ours = [substitute(body, values) for body in self.bounds.bodies]
        own = {axis.var: var for axis, var in self.axes.items()}
        self._compare_bodies(ours, [substitute(body, own) for body in self.op.body])
        return self.found

    # Axes.

    def _ranges(self) -> dict[IterVar, Range]:
        """The values that each axis of the operation takes while the loops inside run."""
        bounds, running = self.bounds, dict[Var, Range | None]()
        for leaf in self.inside:
            count = _constant(bounds.extents[leaf])
            last = simplify(leaf.minimum + (count - 1))
            running[bounds.variables[leaf]] = Range(leaf.minimum, last, count - 1)
        finder = RangeFinder(running, bounds.facts)
        ranges: dict[IterVar, Range] = {}
        for root in bounds.stage.roots:
            found = finder.of(bounds.indices.values[root])
            if found is None or found.span is None:
                raise _Differs(
                    f"axis {root.name} does not run from one value to another inside"
                )
            ranges[root] = found
        # Loops visit different points, so that as many points as a box has are all of it.
        points = prod(_length(found) for found in ranges.values())
        if points != prod(_constant(bounds.extents[leaf]) for leaf in self.inside):
            box = " x ".join(
                f"{_length(found)} {root.name}" for root, found in ranges.items()
            )
            raise _Differs(
                f"the loops inside are not seen to visit all points of a block, {box}"
            )
        return ranges

    def _paired(
        self,
        roots: Sequence[IterVar],
        axes: Sequence[IterVar],
        ranges: Mapping[IterVar, Range],
    ) -> list[tuple[IterVar, IterVar]]:
        """The axes of the stage with those of the intrinsic that they run as."""
        pairs: list[tuple[IterVar, IterVar]] = []
        left = list(axes)
        for root in reversed(roots):
            length = _length(ranges[root])
            if left and length == _constant(left[-1].extent):
                pairs.insert(0, (root, left.pop()))
            elif length != 1:
                self._raise_ranges(roots, axes, ranges)
        if left:
            self._raise_ranges(roots, axes, ranges)
        return pairs

    def _raise_ranges(
        self,
        roots: Sequence[IterVar],
        axes: Sequence[IterVar],
        ranges: Mapping[IterVar, Range],
    ) -> NoReturn:
        mine = " x ".join(f"{_length(ranges[root])} {root.name}" for root in roots)
        theirs = " x ".join(f"{_constant(a.extent)} {a.name}" for a in axes)
        raise _Differs(f"the ranges: {mine} in the loops, {theirs} in the intrinsic")

    def _place_outputs(
        self, op: ComputeOp, roots: Sequence[IterVar], ranges: Mapping[IterVar, Range]
    ) -> None:
        origin = tuple(ranges[axis].low for axis in op.axis)
        paired = {id(root) for root in roots}
        dims = tuple(k for k, axis in enumerate(op.axis) if id(axis) in paired)
        for mine, theirs in zip(op.outputs, self.op.outputs, strict=True):
            self.found[theirs] = MatchedBlock(mine, dims, origin)

    # Expressions.

    def _compare_bodies(self, ours: Sequence[Expr], theirs: Sequence[Expr]) -> None:
        first, second = ours[0], theirs[0]
        if isinstance(first, Reduce) and isinstance(second, Reduce):
            _compare_reducers(first.reducer, second.reducer)
            ours = [*first.sources, first.condition]
            theirs = [*second.sources, second.condition]
        for a, b in zip(ours, theirs, strict=True):
            self._compare(a, b)

    def _compare(self, ours: Expr, theirs: Expr) -> None:
        if (id(ours), id(theirs)) in self._equal:
            return
        self._equal.add((id(ours), id(theirs)))
        if isinstance(ours, TensorRead) and isinstance(theirs, TensorRead):
            self._compare_reads(ours, theirs)
            return
        if self._is_index(ours) and self._is_index(theirs):
            is_same = as_int(simplify(ours - theirs, self.facts)) == 0
        elif not list(children(ours)) or bound_by(ours):
            is_same = structurally_equal(ours, theirs)
        else:
            is_same = type(ours) is type(theirs) and _data(ours) == _data(theirs)
        if not is_same or len([*children(ours)]) != len([*children(theirs)]):
            raise _Differs(
                f"{_text(ours)} in the loops, {_text(theirs)} in the intrinsic"
            )
        if not self._is_index(ours):
            for a, b in zip(children(ours), children(theirs), strict=True):
                assert isinstance(a, Expr) and isinstance(b, Expr)
                self._compare(a, b)

    def _is_index(self, expr: Expr) -> bool:
        """Whether it is an integer made of axes, which may be written in several ways."""
        return expr.dtype == I64 and not any(
            isinstance(n, TensorRead) for n in walk(expr)
        )

    def _compare_reads(self, ours: TensorRead, theirs: TensorRead) -> None:
        if ours.dtype != theirs.dtype:
            raise _Differs(
                f"{ours.tensor.name} is {ours.dtype} in the loops, "
                f"{theirs.tensor.name} is {theirs.dtype} in the intrinsic"
            )
        place = self._place_of(ours, theirs)
        known = self.found.setdefault(theirs.tensor, place)
        if known is place:
            return
        pairs = zip(known.origin, place.origin, strict=False)
        if (
            known.tensor is not place.tensor
            or known.dims != place.dims
            or not all(as_int(simplify(a - b, self.facts)) == 0 for a, b in pairs)
        ):
            raise _Differs(
                f"{_text(ours)} in the loops, {_text(theirs)} in the intrinsic, whose "
                f"{theirs.tensor.name} is {known.tensor.name} from {_listed(known.origin)} already"
            )

    def _place_of(self, ours: TensorRead, theirs: TensorRead) -> MatchedBlock:
        """Dimensions are paired from the last one backwards, as axes are."""
        origin, dims = (
            [simplify(index, self.facts) for index in ours.indices],
            list[int](),
        )
        left = list(theirs.indices)
        for dim in reversed(range(len(origin))):
            offset = (
                simplify(origin[dim] - left[-1], self.facts) if left else origin[dim]
            )
            if left and self._stands(offset):
                origin[dim] = offset
                dims.insert(0, dim)
                left.pop()
            elif not self._stands(origin[dim]):
                raise _Differs(
                    f"{_text(ours)} in the loops, {_text(theirs)} in the intrinsic"
                )
        if left:
            raise _Differs(
                f"{_text(ours)} in the loops, {_text(theirs)} in the intrinsic"
            )
        return MatchedBlock(ours.tensor, tuple(dims), tuple(origin))

    def _stands(self, expr: Expr) -> bool:
        """Whether the value is the same for all points of the block."""
        return not set(self.axes.values()).intersection(variables_in(expr))


def _compare_reducers(ours: CommReducer, theirs: CommReducer) -> None:
    what = f"reduced by {ours.name} in the loops, by {theirs.name} in the intrinsic"
    if [v.dtype for v in ours.lhs] != [v.dtype for v in theirs.lhs]:
        raise _Differs(what)
    values = [(a, b) for a, b in zip(ours.identities, theirs.identities, strict=True)]
    values += zip(ours.combine(theirs.lhs, theirs.rhs), theirs.results, strict=True)
    if not all(structurally_equal(a, b) for a, b in values):
        raise _Differs(what)


def uncovered(op: ComputeOp, tensor: Tensor) -> bool:
    """Whether the intrinsic's operation is not known to read all of an input, from end to end."""
    running = {
        a.var: Range(
            a.minimum, simplify(a.minimum + a.extent - 1), _constant(a.extent) - 1
        )
        for a in (*op.axis, *op.reduce_axis)
    }
    facts = Facts()
    for a in (*op.axis, *op.reduce_axis):
        facts = facts.bind(a.var, a.minimum, a.extent)
    finder = RangeFinder(running, facts)
    reads = [
        node.indices
        for body in op.body
        for node in walk(body)
        if isinstance(node, TensorRead) and node.tensor is tensor
    ]
    for dim, extent in enumerate(tensor.shape):
        found = [finder.of(indices[dim]) for indices in reads]
        firsts = any(r is not None and as_int(r.low) == 0 for r in found)
        lasts = any(
            r is not None and as_int(simplify(r.high + 1 - extent)) == 0 for r in found
        )
        if not (firsts and lasts):
            return True
    return False


# Texts.


def _text_of(op: ComputeOp, bodies: Sequence[Expr]) -> str:
    axes = ", ".join(axis.name for axis in op.axis)
    names = ", ".join(f"{tensor.name}[{axes}]" for tensor in op.outputs)
    values = ", ".join(map(_text, bodies[:1] if op.reduction is not None else bodies))
    return f"{names} = {values}"


def _text(expr: Expr) -> str:
    if isinstance(expr, Reduce):
        sources = ", ".join(map(_text, expr.sources))
        axes = ", ".join(axis.name for axis in expr.axes)
        where = "" if as_int(expr.condition) else f", where={_text(expr.condition)}"
        return f"{expr.reducer.name}({sources}, axis=[{axes}]{where})"

    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if isinstance(node, TensorRead):
            tensor = node.tensor
            buffer = Buffer(tensor.name, tensor.dtype, tensor.shape)
            return BufferLoad(named.setdefault(tensor, buffer), node.indices)
        return node

    named: dict[Tensor, Buffer] = {}
    shown = rewriter(visit)(expr)
    return print_expr(shown)


def _listed(exprs: Sequence[Expr]) -> str:
    return f"[{', '.join(map(_text, exprs))}]"


# Small questions.


def _data(node: Node) -> list[Any]:
    return [getattr(node, name) for name in data_fields(type(node))]


def _length(found: Range) -> int:
    return 1 + (found.span or 0)


def _constant(extent: Expr) -> int:
    assert isinstance(extent, IntImm)  # as check_block and decl_tensor_intrin made sure
    return extent.value

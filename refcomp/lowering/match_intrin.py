"""Matches the loops of a tensorized stage with the computation of an intrinsic.

    loops:      C[i, j] = sum(A[i, k] * B[k, j])   for 8 x 8 x 8 points, from io * 8, jo * 8, ko * 8
    intrinsic:  c[i, j] = sum(a[i, k] * b[k, j])   for 8 x 8 x 8 points
    places:     a is A from [io * 8, ko * 8], b is B from [ko * 8, jo * 8], c is C from ...

The axes that run inside are paired with the intrinsic's axes, from the last one
backwards. Axes of a single iteration may be left over. Both expressions must then have
the same structure. Each tensor of the intrinsic stands for one tensor of the stage. An
index of the stage may differ from the intrinsic's by a value that is the same for all
points of the block: the block's origin.

Requires a stage whose loops are plain. Refuses everything else; the message shows both
computations and the first difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from refcomp.arith import Facts, simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.provenance import declared_at
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
from refcomp.schedule.placement import place_text, placement_lines
from refcomp.schedule.stage import Tensorized
from refcomp.te.operation import ComputeOp
from refcomp.te.reducer import CommReducer, Reduce
from refcomp.te.tensor import IterVar, Tensor, TensorRead


@dataclass(frozen=True, slots=True)
class MatchedBlock:
    """The block of a stage's tensor that a tensor of the intrinsic stands for."""

    tensor: Tensor
    # Dimension k of the intrinsic's tensor is dimension dims[k] of `tensor`.
    dims: tuple[int, ...]
    # The first element of the block.
    origin: tuple[Expr, ...]


class _Mismatch(Exception):
    """The first difference between the loops and the intrinsic, in words."""


def match_intrin(
    bounds: StageBounds, tensorized: Tensorized
) -> dict[Tensor, MatchedBlock]:
    """Return the block of each tensor that the intrinsic reads or computes.

    Raises:
        UserError: the loops do not compute what the intrinsic does.
    """
    try:
        return _Match(bounds, tensorized).blocks()
    except _Mismatch as difference:
        stage = bounds.stage
        op = tensorized.intrin.op
        assert isinstance(stage.op, ComputeOp)
        lines = (
            "these are the two computations, and where they differ first",
            f"loops:      {_text_of(stage.op, bounds.bodies)}",
            f"intrinsic:  {_text_of(op, op.body)}",
            f"difference: {difference}",
        )
        raise UserError(
            f"{tensorized.intrin} does not compute what the loops from axis "
            f"{tensorized.axis.name} of stage {stage.name} inwards do",
            where=place_text(stage),
            why="\n    ".join(lines),
            remedy="declare the intrinsic by the same expression, or split and reorder "
            "the loops so that its axes run inside, in its order",
            at=tensorized.snippet(),
            earlier=[
                stage.declaration(),
                declared_at(op.line, str(tensorized.intrin)),
                *placement_lines(stage),
            ],
        ) from None


class _Match:
    """One attempt to match a stage with an intrinsic.

    The intrinsic's axes get new variables, since it may be declared by the very operation
    that the stage computes.
    """

    def __init__(self, bounds: StageBounds, tensorized: Tensorized) -> None:
        loops = bounds.stage.loops
        self.bounds = bounds
        self.op = tensorized.intrin.op
        self.inside = loops.leaves[loops.position(tensorized.axis) :]
        axes = (*self.op.axis, *self.op.reduce_axis)
        self.axes = {axis: Var(axis.name, I64) for axis in axes}
        self.facts = bounds.facts
        for axis, var in self.axes.items():
            self.facts = self.facts.bind(var, axis.minimum, axis.extent)
        self.found: dict[Tensor, MatchedBlock] = {}
        self._equal: set[tuple[int, int]] = set()  # compares shared nodes only once

    def blocks(self) -> dict[Tensor, MatchedBlock]:
        """Return the block of each tensor of the intrinsic, or raise _Mismatch."""
        op = self.bounds.stage.op
        assert isinstance(op, ComputeOp)
        ranges = self._ranges()
        outputs = self._paired(op.axis, self.op.axis, ranges)
        reduced = self._paired(op.reduce_axis, self.op.reduce_axis, ranges)
        values = {root.var: found.low for root, found in ranges.items()}
        for root, axis in (*outputs, *reduced):
            offset = self.axes[axis] - axis.minimum
            moved = values[root.var] + offset
            values[root.var] = simplify(moved, self.facts)
        origin = tuple(ranges[axis].low for axis in op.axis)
        paired = {root for root, _ in outputs}
        dims = tuple(k for k, axis in enumerate(op.axis) if axis in paired)
        for output, their_output in zip(op.outputs, self.op.outputs, strict=True):
            self.found[their_output] = MatchedBlock(output, dims, origin)
        own = {axis.var: var for axis, var in self.axes.items()}
        ours = [substitute(body, values) for body in self.bounds.bodies]
        theirs = [substitute(body, own) for body in self.op.body]
        # All outputs of a reduction have the same Reduce.
        first = ours[0]
        second = theirs[0]
        if isinstance(first, Reduce) and isinstance(second, Reduce):
            _compare_reducers(first.reducer, second.reducer)
            ours = [*first.sources, first.condition]
            theirs = [*second.sources, second.condition]
        for a, b in zip(ours, theirs, strict=True):
            self._compare(a, b)
        return self.found

    # Axes.

    def _ranges(self) -> dict[IterVar, Range]:
        """Return the range of each axis of the operation over the loops inside."""
        bounds = self.bounds
        counts = {leaf: _constant(bounds.extents[leaf]) for leaf in self.inside}
        running: dict[Var, Range | None] = {}
        for leaf, count in counts.items():
            begin = bounds.ranges.begins[leaf]
            last = simplify(begin + (count - 1))
            running[bounds.variables[leaf]] = Range(begin, last, count - 1)
        finder = RangeFinder(running, bounds.facts)
        ranges: dict[IterVar, Range] = {}
        for root in bounds.stage.roots:
            found = finder.of(bounds.indices.values[root])
            if found is None or found.span is None:
                raise _Mismatch(
                    f"axis {root.name} does not run from one value to another inside"
                )
            ranges[root] = found
        # The iterations of the loops are different points of the box of the ranges. So
        # they are the whole box if the numbers are equal.
        if prod(map(_length, ranges.values())) != prod(counts.values()):
            box = _box_text(ranges, ranges)
            raise _Mismatch(
                f"the loops inside are not seen to visit all points of a block, {box}"
            )
        return ranges

    def _paired(
        self,
        roots: Sequence[IterVar],
        axes: Sequence[IterVar],
        ranges: Mapping[IterVar, Range],
    ) -> list[tuple[IterVar, IterVar]]:
        """Return the pairs of an axis of the stage and the intrinsic's axis it runs as."""
        pairs: list[tuple[IterVar, IterVar]] = []
        unpaired = list(axes)
        is_paired = True
        for root in reversed(roots):
            length = _length(ranges[root])
            if unpaired and length == _constant(unpaired[-1].extent):
                pairs.insert(0, (root, unpaired.pop()))
            elif length != 1:
                is_paired = False
        if unpaired or not is_paired:
            lengths = [f"{_constant(axis.extent)} {axis.name}" for axis in axes]
            theirs = " x ".join(lengths)
            raise _Mismatch(
                f"the ranges: {_box_text(roots, ranges)} in the loops, "
                f"{theirs} in the intrinsic"
            )
        return pairs

    # Expressions.

    def _compare(self, ours: Expr, theirs: Expr) -> None:
        if (id(ours), id(theirs)) in self._equal:
            return
        self._equal.add((id(ours), id(theirs)))
        if isinstance(ours, TensorRead) and isinstance(theirs, TensorRead):
            self._compare_reads(ours, theirs)
            return
        parts = children(ours)
        their_parts = children(theirs)
        if _is_index(ours) and _is_index(theirs):
            is_same = as_int(simplify(ours - theirs, self.facts)) == 0
        elif not parts or bound_by(ours):
            is_same = structurally_equal(ours, theirs)
        else:
            is_same = type(ours) is type(theirs) and _data(ours) == _data(theirs)
        if not is_same or len(parts) != len(their_parts):
            raise _mismatch(ours, theirs)
        if not _is_index(ours):
            for a, b in zip(parts, their_parts, strict=True):
                self._compare(a, b)

    def _compare_reads(self, ours: TensorRead, theirs: TensorRead) -> None:
        if ours.dtype != theirs.dtype:
            raise _Mismatch(
                f"{ours.tensor.name} is {ours.dtype} in the loops, "
                f"{theirs.tensor.name} is {theirs.dtype} in the intrinsic"
            )
        block = self._block_of(ours, theirs)
        # The intrinsic has one address for each tensor, so all reads must show one block.
        known = self.found.setdefault(theirs.tensor, block)
        is_same = known.tensor is block.tensor and known.dims == block.dims
        for a, b in zip(known.origin, block.origin, strict=False):
            is_same = is_same and as_int(simplify(a - b, self.facts)) == 0
        if not is_same:
            origin = ", ".join(map(_text, known.origin))
            raise _Mismatch(
                f"{_mismatch(ours, theirs)}, whose {theirs.tensor.name} "
                f"is {known.tensor.name} from [{origin}] already"
            )

    def _block_of(self, ours: TensorRead, theirs: TensorRead) -> MatchedBlock:
        """Return the block that two reads show.

        Dimensions are paired from the last one backwards, as axes are.
        """
        origin = [simplify(index, self.facts) for index in ours.indices]
        dims: list[int] = []
        unpaired = list(theirs.indices)
        for dim in reversed(range(len(origin))):
            offset = origin[dim]
            if unpaired:
                offset = simplify(origin[dim] - unpaired[-1], self.facts)
            if unpaired and self._is_fixed(offset):
                origin[dim] = offset
                dims.insert(0, dim)
                unpaired.pop()
            elif not self._is_fixed(origin[dim]):
                raise _mismatch(ours, theirs)
        if unpaired:
            raise _mismatch(ours, theirs)
        return MatchedBlock(ours.tensor, tuple(dims), tuple(origin))

    def _is_fixed(self, expr: Expr) -> bool:
        """Return True if the value is the same for all points of the block."""
        return not set(self.axes.values()).intersection(variables_in(expr))


def _compare_reducers(ours: CommReducer, theirs: CommReducer) -> None:
    difference = _Mismatch(
        f"reduced by {ours.name} in the loops, by {theirs.name} in the intrinsic"
    )
    if [var.dtype for var in ours.lhs] != [var.dtype for var in theirs.lhs]:
        raise difference
    # The results in terms of the same variables.
    combined = ours.combine(theirs.lhs, theirs.rhs)
    values = list(zip(ours.identities, theirs.identities, strict=True))
    values += zip(combined, theirs.results, strict=True)
    if not all(structurally_equal(a, b) for a, b in values):
        raise difference


def is_covered(op: ComputeOp, tensor: Tensor) -> bool:
    """Return True if `op` is known to read all of its input `tensor`, from end to end."""
    facts = Facts()
    running: dict[Var, Range | None] = {}
    for axis in (*op.axis, *op.reduce_axis):
        facts = facts.bind(axis.var, axis.minimum, axis.extent)
        last = simplify(axis.minimum + axis.extent - 1)
        running[axis.var] = Range(axis.minimum, last, _constant(axis.extent) - 1)
    finder = RangeFinder(running, facts)
    reads: list[TensorRead] = []
    for body in op.body:
        for node in walk(body):
            if isinstance(node, TensorRead) and node.tensor is tensor:
                reads.append(node)
    for dim, extent in enumerate(tensor.shape):
        has_first = False
        has_last = False
        for read in reads:
            found = finder.of(read.indices[dim])
            if found is None:
                continue
            beyond = simplify(found.high + 1 - extent)
            has_first = has_first or as_int(found.low) == 0
            has_last = has_last or as_int(beyond) == 0
        if not (has_first and has_last):
            return False
    return True


# Texts.


def _text_of(op: ComputeOp, bodies: Sequence[Expr]) -> str:
    axes = ", ".join(axis.name for axis in op.axis)
    names = ", ".join(f"{tensor.name}[{axes}]" for tensor in op.outputs)
    if op.reduction is not None:
        bodies = bodies[:1]
    values = ", ".join(map(_text, bodies))
    return f"{names} = {values}"


def _text(expr: Expr) -> str:
    if isinstance(expr, Reduce):
        sources = ", ".join(map(_text, expr.sources))
        axes = ", ".join(axis.name for axis in expr.axes)
        where = "" if as_int(expr.condition) else f", where={_text(expr.condition)}"
        return f"{expr.reducer.name}({sources}, axis=[{axes}]{where})"

    buffers: dict[Tensor, Buffer] = {}

    def visit(recurse: Rewrite, node: Node) -> Node:
        node = map_children(node, recurse)
        if isinstance(node, TensorRead):
            tensor = node.tensor
            buffer = Buffer(tensor.name, tensor.dtype, tensor.shape)
            return BufferLoad(buffers.setdefault(tensor, buffer), node.indices)
        return node

    # The printer knows buffers, but no tensors.
    replace_reads = rewriter(visit)
    return print_expr(replace_reads(expr))


def _box_text(axes: Iterable[IterVar], ranges: Mapping[IterVar, Range]) -> str:
    return " x ".join(f"{_length(ranges[axis])} {axis.name}" for axis in axes)


def _mismatch(ours: Expr, theirs: Expr) -> _Mismatch:
    return _Mismatch(f"{_text(ours)} in the loops, {_text(theirs)} in the intrinsic")


# Expressions.


def _is_index(expr: Expr) -> bool:
    """Return True for an integer made of axes, which has several spellings."""
    return expr.dtype == I64 and not any(isinstance(n, TensorRead) for n in walk(expr))


def _data(node: Node) -> list[object]:
    return [getattr(node, name) for name in data_fields(type(node))]


def _length(found: Range) -> int:
    return 1 + (found.span or 0)


def _constant(extent: Expr) -> int:
    # check_block and decl_tensor_intrin refuse other extents.
    assert isinstance(extent, IntImm)
    return extent.value

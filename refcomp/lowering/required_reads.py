"""Derive from tensor expressions which sizes a call must have, so that all reads are in range.

Before (te):    C = compute((m,), lambda i: A[i])           with A of n elements
After:          func f(A: f32[n], C: f32[m] out) requires (m - 1 < n) { ... }

Requires a schedule that can be lowered. These reads certainly happen:

- all reads of a stage at the root, since it is computed whole
- the reads of an attached stage for the elements that its consumer reads

A read under a condition is judged if the condition compares axes and sizes (see `Box.with_guard`).
`entry_points` judges the others in the loop IR, except for reads that depend on data. A scalar that
is an extent must be at least 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from refcomp.arith import Facts
from refcomp.arith.attained import Box, is_size
from refcomp.foundation.dtype import I64, U64
from refcomp.ir.constants import as_int
from refcomp.ir.expr import (
    EQ,
    LE,
    LT,
    NE,
    And,
    Cast,
    Expr,
    IfThenElseExpr,
    IntImm,
    Not,
    Or,
    Select,
    Var,
)
from refcomp.ir.func import Requirement, RequirementOrigin
from refcomp.ir.logic_operands import NEST_CONDITIONS, logic_operands
from refcomp.ir.node import Node
from refcomp.ir.rewrite import children, substitute, variables_in
from refcomp.schedule.stage import Stage
from refcomp.te.check_reads import evaluations, widened
from refcomp.te.operation import ComputeOp, ExternOp, ScanOp
from refcomp.te.reducer import Reduce
from refcomp.te.tensor import IterVar, Tensor, TensorRead

# For each root stage, so many reads of attached stages are followed. Others are not judged.
_MAX_FOLLOWED = 200
# For each evaluation, so many conditions are followed. Reads under others are not judged.
_MAX_CONDITIONS = 32
_MAX_CASES = 8  # of one condition


def required_reads(
    stages: Sequence[Stage],
    bodies: Mapping[Stage, Sequence[Expr]],
    args: Sequence[Tensor | Var],
) -> tuple[Requirement, ...]:
    """Return the requirements of all stages, each condition once.

    `bodies` has the expressions of each stage after inlining.
    """
    dims = [dim for arg in args if isinstance(arg, Tensor) for dim in arg.shape]
    symbols = [var for dim in dims for var in variables_in(dim)]
    scalars = [arg for arg in args if isinstance(arg, Var) and is_size(arg)]
    found: list[Requirement] = []
    sizes = dict.fromkeys(symbols)  # an ordered set
    for var, origin in _required_extents(stages, args, scalars):
        found.append(Requirement(_is_nonnegative(var), origin))
        sizes[var] = None
    facts = Facts()
    for var in sizes:
        if var.dtype != U64:
            facts = facts.nonnegative(var)
            continue
        # As an i64, a u64 may be negative.
        facts = facts.assume(_is_nonnegative(var))
    box = Box(facts, frozenset((*symbols, *scalars)))
    reads = _Reads(stages, bodies, box)
    for stage in stages:
        if stage.attach_point is None:
            found += reads.of_root(stage)
        if isinstance(stage.op, ExternOp):
            found += stage.op.requires
    distinct: dict[int, Requirement] = {}
    for requirement in found:
        condition = facts.table.intern(requirement.condition)
        distinct.setdefault(id(condition), requirement)
    return tuple(distinct.values())


def _is_nonnegative(var: Var) -> Expr:
    """Return the condition that `var` is an extent, which is i64 wherever it is used."""
    size = Cast(I64, var) if var.dtype == U64 else var
    return LE(IntImm(0, size.dtype), size)


def _required_extents(
    stages: Sequence[Stage], args: Sequence[Tensor | Var], scalars: Sequence[Var]
) -> Iterator[tuple[Var, RequirementOrigin]]:
    """Yield the scalars that must be at least 0, since they are extents.

    A scalar that is itself a dimension of an argument is checked with the shapes.
    """
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    shown = {dim for tensor in tensors for dim in tensor.shape}
    unchecked = {var for var in scalars if var not in shown}
    for tensor in tensors:
        for var in (var for dim in tensor.shape for var in variables_in(dim)):
            if var in unchecked:
                unchecked.discard(var)
                text = f"the shape of {tensor.name}"
                yield var, RequirementOrigin(text, "", tensor.op.line)
    for stage in stages:
        if not isinstance(stage.op, ComputeOp):
            continue
        for axis in stage.roots:
            extent = axis.extent
            if isinstance(extent, Cast):  # a scalar that is not an i64
                extent = extent.value
            if isinstance(extent, Var) and extent in unchecked:
                unchecked.discard(extent)
                by = f"compute {stage.op.name}"
                yield extent, RequirementOrigin(f"axis {axis.name}", by, stage.op.line)


@dataclass(frozen=True, slots=True)
class _Computed:
    """Expressions that are evaluated for all values of the axes of `box`."""

    bodies: Sequence[Expr]
    box: Box
    by: str  # the operation, for messages
    line: str  # the user's line, as file:line


class _Reads:
    """Follows the reads of stages at the root."""

    def __init__(
        self, stages: Sequence[Stage], bodies: Mapping[Stage, Sequence[Expr]], box: Box
    ) -> None:
        self._bodies = bodies
        self._box = box
        self._makers = {tensor: s for s in stages for tensor in s.op.outputs}
        self._scans = [stage.op for stage in stages if isinstance(stage.op, ScanOp)]

    def of_root(self, stage: Stage) -> Iterator[Requirement]:
        """Yield the requirements of a root stage, and of the stages attached to it."""
        op = stage.op
        if isinstance(op, ScanOp):
            rows: list[Expr] = []
            for k, update in enumerate(op.update):
                indices = [op.scan_axis.var, *(axis.var for axis in op.row_axes(k))]
                rows.append(TensorRead(update, tuple(indices)))
            yield from self._follow([_computed(stage, rows, op.axis, self._box)])
        elif isinstance(op, ComputeOp):
            box = self._box
            # An init is computed only if the result of its scan has enough rows.
            for scan in self._scans:
                for init, result in zip(scan.init, scan.outputs, strict=True):
                    if init in op.outputs:
                        spare = Var("spare", I64)
                        extent = result.shape[0] - init.shape[0] + 1
                        box = box.with_axis(spare, IntImm(0, I64), extent)
            bodies = self._bodies[stage]
            yield from self._follow(_evaluated(stage, bodies, op.axis, box))

    def _follow(self, roots: list[_Computed]) -> Iterator[Requirement]:
        """Yield the requirements of `roots`, and of the attached stages that they read."""
        stack = roots
        budget = _MAX_FOLLOWED
        seen: set[tuple[Box | int, ...]] = set()
        while stack:
            computed = stack.pop()
            for read, box in _reads(computed.bodies, computed.box):
                key: tuple[Box | int, ...] = (
                    box,
                    id(read.tensor),
                    *map(id, read.indices),
                )
                if key in seen:
                    continue
                seen.add(key)
                yield from _judge(computed, read, box)
                # A root stage is computed whole, and judged by itself.
                maker = self._makers.get(read.tensor)
                if maker is None or maker.attach_point is None or not budget:
                    continue
                budget -= 1
                op = maker.op
                if isinstance(op, ComputeOp):
                    axis_vars = [axis.var for axis in op.axis]
                    at = dict(zip(axis_vars, read.indices, strict=True))
                    body = self._bodies[maker][read.tensor.value_index]
                    bodies = [substitute(body, at)]
                    stack += _evaluated(maker, bodies, (), box)


def _evaluated(
    stage: Stage, bodies: Sequence[Expr], own: Sequence[IterVar], box: Box
) -> list[_Computed]:
    """Return all that a compute evaluates, for all values of `own` and of `box`."""
    return [
        _computed(stage, values, axes, box) for values, axes in evaluations(own, bodies)
    ]


def _computed(
    stage: Stage, bodies: Sequence[Expr], axes: Sequence[IterVar], box: Box
) -> _Computed:
    """Return `bodies` of `stage`, evaluated for all values of `axes` and of `box`."""
    by = f"{stage.op.what.split()[-1]} {stage.op.name}"
    return _Computed(bodies, widened(box, axes), by, stage.op.line)


def _reads(bodies: Sequence[Expr], box: Box) -> Iterator[tuple[TensorRead, Box]]:
    """Yield the reads of `bodies`, each with a box of points at which it happens."""
    # Shared subtrees are visited once for each box, without recursion: bodies may be deep.
    stack: list[tuple[Node, Box]] = [(body, box) for body in reversed(bodies)]
    seen: set[tuple[int, Box]] = set()
    budget = _MAX_CONDITIONS
    while stack:
        node, around = stack.pop()
        if (id(node), around) in seen:
            continue
        seen.add((id(node), around))
        if isinstance(node, TensorRead):
            yield node, around
        guarded: list[tuple[Expr, bool]] = []
        if isinstance(node, IfThenElseExpr | Select):
            guarded = [(node.false_value, False), (node.true_value, True)]
        elif isinstance(node, Reduce) and not as_int(node.condition):
            guarded = [(source, True) for source in reversed(node.sources)]
        else:
            stack += [(part, around) for part in reversed(children(node))]
            continue
        if budget:
            budget -= 1
            cases = {
                holds: _cases(around, node.condition, holds) for _, holds in guarded
            }
            stack += [(part, case) for part, holds in guarded for case in cases[holds]]
        stack.append((node.condition, around))


def _cases(box: Box, condition: Expr, holds: bool) -> list[Box]:
    """Return boxes in which `condition` holds, or in which it does not if not `holds`.

    A case that is not followed is left out.
    """
    match condition:
        case Not(a=a):
            return _cases(box, a, not holds)
        case And(a=a, b=b) | Or(a=a, b=b):
            first = _cases(box, a, holds)
            if isinstance(condition, And) == holds:
                found = [case for part in first for case in _cases(part, b, holds)]
            else:
                found = first + _cases(box, b, holds)
        case EQ(a=a, b=b) | NE(a=a, b=b) if isinstance(condition, NE) == holds:
            found = [box.with_guard(LT(a, b)), box.with_guard(LT(b, a))]
        case _:
            found = [box.with_guard(condition, holds)]
    return [case for case in found if case.is_known][:_MAX_CASES]


def _judge(computed: _Computed, read: TensorRead, box: Box) -> Iterator[Requirement]:
    name = read.tensor.name
    for dim, index in enumerate(read.indices):
        judgement = box.judge(index, read.tensor.shape[dim])
        for condition in judgement.conditions:
            # Conditions are rare: the text is made only for them.
            indices = ", ".join(map(str, read.indices))
            is_operand = id(read) in logic_operands(computed.bodies)
            origin = RequirementOrigin(
                f"{name}[{indices}]",
                f"{computed.by} reads",
                computed.line,
                name,
                dim,
                NEST_CONDITIONS if is_operand else "",
            )
            yield Requirement(condition, origin)

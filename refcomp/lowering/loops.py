"""The loops around a statement, with attached stages, guards and the kernel's threads.

The body of a loop begins with the stages that are computed in it. The guards that can
be evaluated there follow, then the rest. A guard does not surround an attached stage,
since a barrier in that stage must be reached by all threads. Bound loops are not made
where they stand, but where the kernel begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.dtype import I64
from refcomp.ir.expr import And, IntImm, Var
from refcomp.ir.rewrite import variables_in
from refcomp.ir.stmt import SERIAL, For, IfThenElse, LoopKind, Origin, Stmt
from refcomp.lowering.bounds.kernels import Kernel
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.lowering.loop_pragmas import with_pragmas
from refcomp.schedule.axes import AxisGuard
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.tensor import IterVar

_OWN_AXIS = Provenance("", "")
Slot = IterVar | Kernel  # a loop, or the place where the bound loops of a kernel begin
AttachStages = Callable[[IterVar, Stmt], Stmt]


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of one stage."""

    bounds: StageBounds
    all_bounds: Mapping[Stage, StageBounds]
    # Puts the stages that are attached to a loop before the rest of its body.
    attach: AttachStages
    # The loops that stages are attached to.
    attach_points: frozenset[IterVar]
    # Guards surround attached stages, too. In a scan, the iterations beyond a tail
    # would read rows that are computed later.
    guards_attached: bool = False
    # Puts the bounds that are read before a loop around it. The guards inside of the loop
    # decide whether they can be read.
    bind_reads: Callable[[IterVar, Stmt, Sequence[AxisGuard]], Stmt] | None = None

    def slots(self) -> list[Slot]:
        """Return the loops in order, with the kernel if it begins in this stage."""
        stage = self.bounds.stage
        kernel = self.bounds.place.kernel
        slots: list[Slot] = list(stage.loops.leaves)
        if kernel is not None and kernel.stage is stage:
            slots.insert(kernel.start, kernel)
        return slots

    def wrap(
        self, slots: Sequence[Slot], body: Stmt, guards: Sequence[AxisGuard]
    ) -> Stmt:
        """Return `body` inside `slots`, each guard as far outside as it can stand."""
        kernel = self.bounds.place.kernel
        threads: set[Var] = set()
        if kernel is not None:
            threads.update(kernel.variables.values())
        around_attached: list[AxisGuard] = []
        others: list[AxisGuard] = []
        for guard in guards:
            # Barriers need a condition on which all threads agree.
            is_uniform = threads.isdisjoint(variables_in(guard.condition))
            if self.guards_attached and is_uniform:
                around_attached.append(guard)
            else:
                others.append(guard)
        attached = [k for k, slot in enumerate(slots) if slot in self.attach_points]
        outer = self._placed(slots, around_attached, outermost=-1)
        inner = self._placed(slots, others, outermost=max(attached, default=-1))
        numbers = self._numbers(slots)
        for number in reversed(range(len(slots))):
            slot = slots[number]
            body = self.guarded(inner.get(number, []), body)
            body = self._inside(slot, body, outer.get(number, []))
            if isinstance(slot, IterVar) and self.bind_reads is not None:
                deeper: list[AxisGuard] = []
                for place, placed in inner.items():
                    deeper += placed if place >= number else []
                known = [g for g in deeper if _innermost(g, numbers) < number]
                body = self.bind_reads(slot, body, known)
        outside = [*outer.get(-1, []), *inner.get(-1, [])]
        return self.guarded(outside, body)

    def _placed(
        self, slots: Sequence[Slot], guards: Sequence[AxisGuard], outermost: int
    ) -> dict[int, list[AxisGuard]]:
        """Return the guards by the innermost slot around them, -1 for none.

        No guard stands outside the slot `outermost`.
        """
        numbers = self._numbers(slots)
        placed: dict[int, list[AxisGuard]] = {}
        for guard in guards:
            innermost = max(outermost, _innermost(guard, numbers))
            placed.setdefault(innermost, []).append(guard)
        return placed

    def _numbers(self, slots: Sequence[Slot]) -> dict[Var, int]:
        """Return the number of the slot that binds each variable."""
        numbers: dict[Var, int] = {}
        for number, slot in enumerate(slots):
            if isinstance(slot, Kernel):
                # Bound loops are made here, whatever their own places are.
                numbers |= dict.fromkeys(slot.variables.values(), number)
            elif slot not in self.bounds.stage.threads.bound:
                numbers[self.bounds.variables[slot]] = number
            for bound in self.bounds.ranges.read:
                if bound.loop is slot:
                    numbers[bound.var] = number
        return numbers

    def _inside(self, slot: Slot, body: Stmt, guards: Sequence[AxisGuard]) -> Stmt:
        """Return the loop around `guards`, the stages attached to it, and `body`."""
        if isinstance(slot, Kernel):
            return self._kernel(slot, self.guarded(guards, body))
        body = self.attach(slot, body)
        body = self.guarded(guards, body)
        stage = self.bounds.stage
        origin = self.origin(slot)
        if slot not in stage.threads.bound:
            # A mark that is not a kind belongs to another primitive, such as tensorize.
            mark = stage.loops.marks.get(slot)
            kind = mark if isinstance(mark, LoopKind) else SERIAL
            extent = self.bounds.extents[slot]
            begin = self.bounds.ranges.begins[slot]
            body = For(slot.var, begin, extent, kind, body, origin)
        return with_pragmas(stage, slot, body, origin)

    def _kernel(self, kernel: Kernel, body: Stmt) -> Stmt:
        """Return `body` inside the bound loops of `kernel`."""
        for tag in reversed(kernel.tags):
            if tag in kernel.bound:
                # All loops of a tag have the same extent (see `infer_stages`).
                first = kernel.bound[tag][0]
                bounds = self.all_bounds[first.stage]
                extent = bounds.extents[first.axis]
                origin = origin_of(bounds, first.axis)
            else:
                extent = kernel.env[tag].extent
                origin = self.origin()
            body = For(kernel.variables[tag], IntImm(0, I64), extent, tag, body, origin)
        return body

    def guarded(self, guards: Sequence[AxisGuard], body: Stmt) -> Stmt:
        """Return `body` under the conjunction of `guards`."""
        if not guards:
            return body
        condition = guards[0].condition
        for guard in guards[1:]:
            condition = And(condition, guard.condition)
        return IfThenElse(condition, body, None, self.origin(guards[0].axis))

    def origin(self, axis: IterVar | None = None) -> Origin:
        """Return the origin of this stage's statements, or of those of a loop."""
        return origin_of(self.bounds, axis)


def _innermost(guard: AxisGuard, numbers: Mapping[Var, int]) -> int:
    """Return the greatest number of a variable that the guard reads, or -1."""
    return max([numbers.get(var, -1) for var in variables_in(guard.condition)] or [-1])


def origin_of(bounds: StageBounds, axis: IterVar | None = None) -> Origin:
    """Return the origin of the statements of a stage, or of one of its loops."""
    stage = bounds.stage
    if axis is None:
        return Origin(stage.name, primitive=stage.primitive, line=stage.op.line)
    provenance = stage.loops.provenance.get(axis, _OWN_AXIS)
    primitive = provenance.primitive or stage.primitive
    return Origin(stage.name, axis.name, primitive, provenance.line or stage.op.line)

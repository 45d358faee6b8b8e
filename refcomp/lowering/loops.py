"""The loops around a statement: with what is attached to them, guards, and the kernel's threads.

Each loop holds first the stages that are computed in it, then the guards that can be evaluated
there, then the rest. A guard never stands around an attached stage: that may hold a barrier, which
all threads must reach. Bound loops leave no loop where they stand; they are made where the kernel
begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refcomp.foundation.dtype import I64
from refcomp.ir.expr import And, IntImm, Var
from refcomp.ir.rewrite import variables_in
from refcomp.ir.stmt import LOOP_KINDS, SERIAL, For, IfThenElse, Origin, Pragma, Stmt
from refcomp.lowering.bounds.kernels import Kernel
from refcomp.lowering.bounds.regions import StageBounds
from refcomp.schedule.axes import AxisGuard
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.tensor import IterVar

_OWN_AXIS = Provenance("", "")
Slot = (
    IterVar | Kernel
)  # a loop, or the place where all bound loops of the kernel stand
AttachStages = Callable[[IterVar, Stmt], Stmt]


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of one stage.

    Attributes:
        bounds: the bounds of the stage.
        all_bounds: the bounds of every stage.
        attach: puts the stages that are attached to a loop before the rest of its body.
        attach_points: the loops that stages are attached to.
        guards_attached: True if guards stand around attached stages, too. A row of a scan must not
            read rows that come later, which the iterations beyond a tail would do.
    """

    bounds: StageBounds
    all_bounds: Mapping[Stage, StageBounds]
    attach: AttachStages
    attach_points: frozenset[IterVar]
    guards_attached: bool = False

    def slots(self) -> list[Slot]:
        """The loops in order, and the kernel's place among them if it begins in this stage."""
        stage, kernel = self.bounds.stage, self.bounds.place.kernel
        slots: list[Slot] = list(stage.loops.leaves)
        if kernel is not None and kernel.stage is stage:
            slots.insert(kernel.start, kernel)
        return slots

    def wrap(
        self, slots: Sequence[Slot], body: Stmt, guards: Sequence[AxisGuard]
    ) -> Stmt:
        """Return `body` inside `slots` and `guards`, each guard as far outside as it can stand."""
        around_attached: list[AxisGuard] = []
        others: list[AxisGuard] = []
        for guard in guards:
            (around_attached if self._may_guard_attached(guard) else others).append(
                guard
            )
        outer, inner = (
            self._placed(slots, around_attached, -1),
            self._placed(slots, others),
        )
        for number in reversed(range(len(slots))):
            body = self.guarded(inner.get(number, []), body)
            body = self._inside(slots[number], body, outer.get(number, []))
        return self.guarded([*outer.get(-1, []), *inner.get(-1, [])], body)

    def _may_guard_attached(self, guard: AxisGuard) -> bool:
        """Return True for a guard around attached stages, on which all threads agree."""
        kernel = self.bounds.place.kernel
        threads = () if kernel is None else kernel.variables.values()
        return self.guards_attached and not any(
            v in threads for v in variables_in(guard.condition)
        )

    def _placed(
        self,
        slots: Sequence[Slot],
        guards: Sequence[AxisGuard],
        deepest: int | None = None,
    ) -> dict[int, list[AxisGuard]]:
        """Return guards by the number of the innermost slot around them, -1 for none.

        None stands further outside than slot `deepest`, by default the innermost that a
        stage is attached to.
        """
        numbers = self._numbers(slots)
        if deepest is None:
            deepest = max(
                (k for k, slot in enumerate(slots) if slot in self.attach_points),
                default=-1,
            )
        placed: dict[int, list[AxisGuard]] = {}
        for guard in guards:
            reads = (numbers.get(var, -1) for var in variables_in(guard.condition))
            placed.setdefault(max(deepest, *reads, -1), []).append(guard)
        return placed

    def _numbers(self, slots: Sequence[Slot]) -> dict[Var, int]:
        """The slot that binds each variable; threads are bound where the kernel begins."""
        numbers: dict[Var, int] = {}
        for number, slot in enumerate(slots):
            if isinstance(slot, Kernel):
                numbers |= dict.fromkeys(slot.variables.values(), number)
            elif slot not in self.bounds.stage.threads.bound:
                numbers[self.bounds.variables[slot]] = number
        return numbers

    def _inside(self, slot: Slot, body: Stmt, guards: Sequence[AxisGuard]) -> Stmt:
        """Return the loop of `slot` around `guards`, the stages attached to it, and `body`."""
        if isinstance(slot, Kernel):
            return self._kernel(slot, self.guarded(guards, body))
        body = self.guarded(guards, self.attach(slot, body))
        if slot not in self.bounds.stage.threads.bound:
            body = self._loop(slot, body)
        for wish in self.bounds.stage.loops.pragmas:
            if wish.axis is slot and isinstance(
                wish.value, int
            ):  # texts belong to the function
                body = Pragma(
                    wish.key, IntImm(wish.value, I64), body, self.origin(slot)
                )
        return body

    def _loop(self, axis: IterVar, body: Stmt) -> Stmt:
        mark = self.bounds.stage.loops.marks.get(axis)
        kind = mark if mark in LOOP_KINDS else SERIAL
        extent = self.bounds.extents[axis]
        return For(axis.var, axis.minimum, extent, kind, body, self.origin(axis))

    def _kernel(self, kernel: Kernel, body: Stmt) -> Stmt:
        for tag in reversed(kernel.tags):
            var, loops = kernel.variables[tag], kernel.bound.get(tag, ())
            extent, origin = (
                kernel.env[tag].extent if not loops else None,
                self.origin(),
            )
            for first in loops[:1]:
                bounds = self.all_bounds[first.stage]
                extent, origin = (
                    bounds.extents[first.axis],
                    origin_of(bounds, first.axis),
                )
            assert extent is not None
            body = For(var, IntImm(0, I64), extent, tag, body, origin)
        return body

    def guarded(self, guards: Sequence[AxisGuard], body: Stmt) -> Stmt:
        """`body` where all of `guards` hold."""
        if not guards:
            return body
        condition = guards[0].condition
        for guard in guards[1:]:
            condition = And(condition, guard.condition)
        return IfThenElse(condition, body, None, self.origin(guards[0].axis))

    def origin(self, axis: IterVar | None = None) -> Origin:
        """Where a statement of this stage comes from."""
        return origin_of(self.bounds, axis)


def origin_of(bounds: StageBounds, axis: IterVar | None = None) -> Origin:
    """Where a statement of a stage, or of one of its loops, comes from."""
    stage, op = bounds.stage, bounds.stage.op
    if axis is None:
        return Origin(stage.name, primitive=stage.primitive, line=op.line)
    provenance = stage.loops.provenance.get(axis, _OWN_AXIS)
    primitive = provenance.primitive or stage.primitive
    return Origin(stage.name, axis.name, primitive, provenance.line or op.line)

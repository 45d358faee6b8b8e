"""A stage: the loops that compute one operation, as data that the primitives change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from refcomp.errors import UserError
from refcomp.ir.expr import Expr
from refcomp.schedule.relations import Relation
from refcomp.te.operation import ComputeOp, Operation
from refcomp.te.tensor import IterVar, axis


@dataclass(frozen=True, slots=True)
class Made:
    """Which primitive made or marked something, and at which line of the user."""

    primitive: str
    line: str


@dataclass(slots=True, eq=False)
class Stage:
    """How `op` is computed: `relations` lead from its own axes to the loops `leaves`, outermost
    first. `marks` maps a loop to vectorized, unrolled or parallel. `attach` is `root` (a loop nest
    of its own) or `inline` (its expression replaces every read of it)."""

    op: Operation
    name: str
    is_output: bool
    leaves: list[IterVar] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    marks: dict[IterVar, str] = field(default_factory=dict)
    made: dict[IterVar, Made] = field(default_factory=dict)
    attach: Literal["root", "inline"] = "root"

    @property
    def roots(self) -> tuple[IterVar, ...]:
        """The operation's own axes, reduction axes last; none for a placeholder."""
        return (*self.op.axis, *self.op.reduce_axis) if isinstance(self.op, ComputeOp) else ()

    def axes(self) -> dict[str, IterVar]:
        """Every axis the stage has or had, by name."""
        known = [*self.roots]
        for relation in self.relations:
            made = (getattr(relation, name, None) for name in ("outer", "inner", "fused"))
            known.extend(axis for axis in made if axis is not None)
        return {axis.name: axis for axis in known}

    def derive_axis(self, name: str, extent: Expr, kind: str, made: Made) -> IterVar:
        """A fresh axis from 0 whose name, if taken, gets a suffix; remembers who made it."""
        taken = self.axes()
        unique = name
        count = 0
        while unique in taken:
            count += 1
            unique = f"{name}.{count}"
        derived = axis(unique, 0, extent, kind)
        self.made[derived] = made
        return derived

    def leaf(self, given: Any, primitive: str) -> IterVar:
        """`given` if it is a loop of this stage; else UserError that tells the loops there are."""
        if isinstance(given, IterVar) and any(given is leaf for leaf in self.leaves):
            return given
        named = given.name if isinstance(given, IterVar) else repr(given)
        if any(given is known for known in self.axes().values()):
            self.refuse(primitive, named, "it was split or fused before and is no loop any more")
        self.refuse(primitive, named, "it is no axis of this stage")

    def refuse(self, primitive: str, axis: str, why: str, remedy: str | None = None) -> NoReturn:
        """Raises the UserError that `primitive` is illegal on the axis named `axis`."""
        loops = ", ".join(f"{leaf.name} ({leaf.kind})" for leaf in self.leaves)
        raise UserError(
            f"cannot {primitive} axis {axis} of stage {self.name}",
            where=f"stage {self.name}, loops: {loops or 'none'}",
            why=why,
            remedy=remedy or "use one of the stage's loops",
        )

"""A stage: the loops that compute one operation, as data that the primitives change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NoReturn

from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames
from refcomp.foundation.near_misses import advise
from refcomp.foundation.provenance import declared_at, done_at
from refcomp.foundation.records import record
from refcomp.foundation.snippets import Snippet
from refcomp.ir.buffer import StorageScope
from refcomp.ir.expr import Expr, IntImm, Var
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import For, LoopKind, Stmt
from refcomp.schedule.relations import Fuse, Relation, Split
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.operation import ExternOp, Operation
from refcomp.te.tensor import OPAQUE, ORDERED, AxisKind, IterVar, Tensor

if TYPE_CHECKING:
    from refcomp.te.intrin import TensorIntrin

# The verb of a primitive in messages, where its name is not one.
_VERBS = {"parallel": "parallelize"}
# Primitives that change a loop of a hybrid function, and those that let iterations run at once.
_IN_STATEMENTS = (
    "split",
    "tile",
    "fuse",
    "reorder",
    "unroll",
    "vectorize",
    "parallel",
    "bind",
    "pragma",
)
_AT_ONCE = ("vectorize", "parallel", "bind")
# What to write in place of a primitive that does not apply to such a loop.
_INSTEAD = {
    "tensorize": "compute the block by compute(...) in a stage of its own, and tensorize that; or "
    "call the intrinsic in extern(...)",
    "prefetch": "prefetch in a stage that computes; processors load ahead what loops read in order",
}


# The primitives that say how a loop is executed, for one kind of target.
MARKING_PRIMITIVES = ("vectorize", "unroll", "parallel", "bind")

# How a loop is executed: a kind other than serial, or by the tensor intrinsic of the stage.
LoopMark = LoopKind | Literal["tensorized"]


@record
class Provenance:
    """The call of a primitive that made or marked something."""

    primitive: str
    line: str  # the user's line, as `file:line`

    def snippet(self, name: str = "") -> Snippet:
        """Return the line for messages; `name` is what the primitive was applied to."""
        return done_at(self.primitive, self.line, name)


@record(eq=False)
class AttachPoint:
    """A loop of another stage. Each iteration of it computes a part of the attached stage."""

    stage: Stage
    axis: IterVar  # the loop of `stage`
    line: str  # the user's line of compute_at, as `file:line`

    def snippet(self, name: str = "") -> Snippet:
        """Return the line for messages; `name` is the attached stage."""
        return done_at("compute_at", self.line, name)


@record(eq=False)
class Prefetched:
    """A hint to load elements of a tensor into the cache in each iteration of a loop."""

    tensor: Tensor
    axis: IterVar  # the loop
    offset: int  # iterations between the hint and the read


@record(eq=False)
class Tensorized:
    """A tensor intrinsic that replaces loops of a stage."""

    axis: IterVar  # the outermost of the loops
    intrin: TensorIntrin
    line: str  # the user's line, as `file:line`

    def snippet(self, name: str = "") -> Snippet:
        """Return the line for messages; `name` is what was tensorized."""
        return done_at("tensorize", self.line, name)


# A pragma of parallel loops: wait at the end, which every parallel loop does.
BARRIER_WHEN_FINISH = "parallel_barrier_when_finish"


@record(eq=False)
class LoopPragma:
    """A hint for the compiler about the loop `axis`."""

    axis: IterVar
    key: str
    value: int | str


@record
class StrideAlignment:
    """The request that a stride is k * factor + offset elements, for some k."""

    factor: int
    offset: int


@record(eq=False, frozen=False)
class StageLoops:
    """The loops that compute a stage, and how each of them is executed."""

    # The present loops, outermost first.
    leaves: list[IterVar] = field(default_factory=list)
    # The splits and fusions that lead from the operation's axes to the leaves, oldest first.
    relations: list[Relation] = field(default_factory=list)
    # Axes of one iteration that `fuse` made of no axes.
    singles: list[IterVar] = field(default_factory=list)
    # Loop -> vectorized, unrolled, parallel, tensorized, or the tag of its threads.
    marks: dict[IterVar, LoopMark] = field(default_factory=dict)
    # Axis -> the call that made or marked it.
    provenance: dict[IterVar, Provenance] = field(default_factory=dict)
    # Hints for later passes, oldest first.
    pragmas: list[LoopPragma] = field(default_factory=list)
    # Hints for the host's caches.
    prefetches: list[Prefetched] = field(default_factory=list)
    # The intrinsic that replaces the innermost loops.
    tensorized: Tensorized | None = None
    # The statement of a hybrid function, with the present loops; None for other operations.
    statement: Stmt | None = None

    def position(self, axis: IterVar) -> int:
        """Return the position of a loop among the leaves, 0 for the outermost."""
        return next(k for k, leaf in enumerate(self.leaves) if leaf is axis)

    def mark(self, axis: IterVar, mark: LoopMark, provenance: Provenance) -> None:
        """Record how a loop is executed, and the call that asked for it."""
        self.marks[axis] = mark
        self.provenance[axis] = provenance


@record(eq=False, frozen=False)
class StageMemory:
    """The memory of a stage's tensors, and the threads that store to it."""

    # None if the scope follows from the placement of the stage.
    scope: StorageScope | None = None
    # True to allocate the memory twice, and fill it one iteration ahead.
    is_double_buffered: bool = False
    # Dimension -> the requested stride.
    alignments: dict[int, StrideAlignment] = field(default_factory=dict)
    # Thread tag -> index of the thread that stores a redundantly computed value (default 0).
    store_predicate: dict[str, int] = field(default_factory=dict)


@record(eq=False, frozen=False)
class StageThreads:
    """The threads of a GPU that compute a stage."""

    # Bound loop -> its thread axis, without loops of virtual threads.
    bound: dict[IterVar, IterVar] = field(default_factory=dict)
    # Loop -> the axis of virtual threads that it is bound to.
    virtual: dict[IterVar, IterVar] = field(default_factory=dict)
    # The threads of a kernel that begins outside of the stage's loops; else empty.
    env: list[IterVar] = field(default_factory=list)


# A stage has a loop nest of its own ("root"), replaces its reads ("inline"), or is attached.
Placement = Literal["root", "inline"] | AttachPoint


@record(eq=False, frozen=False)
class Stage:
    """The state of one operation in a schedule."""

    op: Operation
    name: str  # unique in the schedule; steps refer to stages by name
    is_output: bool  # True if the caller provides the memory of its tensors
    # All stages of the schedule, producers first. The stages share this list.
    siblings: list[Stage] = field(default_factory=list)
    # The primitive that made the stage; empty for an operation of the user.
    primitive: str = ""
    loops: StageLoops = field(default_factory=StageLoops)
    placement: Placement = "root"
    memory: StageMemory = field(default_factory=StageMemory)
    threads: StageThreads = field(default_factory=StageThreads)

    def __repr__(self) -> str:
        return f"stage {self.name}"

    @property
    def roots(self) -> tuple[IterVar, ...]:
        """Return the operation's own axes, reduction axes last; none for a placeholder."""
        return (*getattr(self.op, "axis", ()), *getattr(self.op, "reduce_axis", ()))

    @property
    def attach_point(self) -> AttachPoint | None:
        """Return the attach point of the stage, or None if it is not attached."""
        return self.placement if isinstance(self.placement, AttachPoint) else None

    @property
    def attached(self) -> tuple[Stage, ...]:
        """Return the stages that are attached to loops of this one, producers first."""
        points = ((stage, stage.attach_point) for stage in self.siblings)
        return tuple(
            stage
            for stage, point in points
            if point is not None and point.stage is self
        )

    def axes(self) -> dict[str, IterVar]:
        """Return every axis that the stage has or had, by name."""
        known = [*self.roots, *self.loops.singles]
        for relation in self.loops.relations:
            made = (
                getattr(relation, name, None) for name in ("outer", "inner", "fused")
            )
            known.extend(axis for axis in made if axis is not None)
        return {axis.name: axis for axis in known}

    def derive_axis(
        self, name: str, extent: Expr, kind: AxisKind, provenance: Provenance
    ) -> IterVar:
        """Return a new axis from 0, and record its provenance. A taken name gets a number."""
        unique = UniqueNames(self.axes(), separator=".").take(name)
        # Not by `axis`: an extent may depend on elements, if that of the first axis does.
        derived = IterVar(Var(unique, I64), IntImm(0, I64), extent, kind)
        self.loops.provenance[derived] = provenance
        return derived

    def leaf(self, given: object, primitive: str) -> IterVar:
        """Return `given` if it is a loop of this stage that the primitive may change.

        Raises:
            UserError: it is not. The error lists the loops, and where this one was replaced.
        """
        if not isinstance(given, IterVar):
            remedy = "pass the loop itself: an axis, or what a primitive returned"
            self.refuse(
                primitive,
                repr(given),
                "it is not an axis of this stage",
                advise(given, [leaf.name for leaf in self.loops.leaves], remedy),
            )
        if any(given is leaf for leaf in self.loops.leaves):
            self._refuse_opaque(given, primitive)
            return given
        for relation in self.loops.relations:
            if isinstance(relation, Split) and relation.parent is given:
                self._refuse_replaced(primitive, given, relation.outer)
            if isinstance(relation, Fuse) and given in (relation.outer, relation.inner):
                self._refuse_replaced(primitive, given, relation.fused)
        self.refuse(
            primitive,
            given.name,
            "it is not an axis of this stage",
            earlier=[self.declaration()],
        )

    def _refuse_replaced(
        self, primitive: str, axis: IterVar, made: IterVar
    ) -> NoReturn:
        call = self.loops.provenance[made]
        why = f"{call.primitive} replaced it by {made.name}"
        self.refuse(primitive, axis.name, why, earlier=[call.snippet()])

    def _refuse_opaque(self, axis: IterVar, primitive: str) -> None:
        if isinstance(self.op, HybridOp):
            self._refuse_in_statement(self.op, axis, primitive)
            return
        if axis.kind == ORDERED and primitive not in ("unroll", "compute_at"):
            self.refuse(
                primitive,
                axis.name,
                "it is ordered: each iteration of a scan needs the rows of the ones before",
                "schedule the axes of the stages that compute a row",
                earlier=[self.declaration()],
            )
        if axis.kind == OPAQUE:
            self.refuse(
                primitive,
                axis.name,
                f"it is opaque: {self.op.what} computes all of its elements in a way of its own",
                self._remedy_within(),
                earlier=[self.declaration()],
            )

    def _refuse_in_statement(self, op: HybridOp, axis: IterVar, primitive: str) -> None:
        """Refuse what is not possible with a loop of a hybrid function."""
        if primitive not in _IN_STATEMENTS:
            known = ", ".join(_IN_STATEMENTS)
            self.refuse(
                primitive,
                axis.name,
                "it is a loop of a hybrid function, which reads and writes whole tensors",
                _INSTEAD.get(
                    primitive,
                    f"use {known}; schedule the stages before and after it",
                ),
                earlier=[self.declaration()],
            )
        if axis.kind != ORDERED or primitive not in _AT_ONCE:
            return
        conflicts = dict(zip(op.axis, op.conflicts, strict=True))
        why = next(filter(None, (conflicts[root] for root in self.origins(axis))), "")
        self.refuse(
            primitive,
            axis.name,
            f"its iterations may depend on each other: {why}",
            "split, fuse, unroll and reorder keep their order; if they are independent, write "
            "parallel(n), vectorize(n) or bind(tag, n) in the hybrid function",
            earlier=[self.declaration()],
        )

    def origins(self, axis: IterVar) -> tuple[IterVar, ...]:
        """Return the operation's axes of which `axis` is made, outermost first."""
        for relation in self.loops.relations:
            if isinstance(relation, Split):
                if axis in (relation.outer, relation.inner):
                    return self.origins(relation.parent)
            elif axis is relation.fused:
                return (*self.origins(relation.outer), *self.origins(relation.inner))
        return (axis,)

    def _remedy_within(self) -> str:
        """Describe how the user can schedule the loops of an opaque operation."""
        beside = "the stages before and after it can be scheduled as usual"
        if not isinstance(self.op, ExternOp):
            return "schedule the stages before and after it"
        if any(isinstance(node, For) for node in walk(self.op.body)):
            return (
                'in the ir_builder, write for_range(0, n, for_type="parallel"), "vectorize" or '
                f'"unroll"; {beside}'
            )
        return "schedule the stages before and after it; cache_read copies what it reads or makes"

    def mark_text(self, loop: IterVar) -> str:
        """Describe for messages how a marked loop is executed."""
        mark = self.loops.marks[loop]
        return f"bound to {mark}" if loop in self.threads.bound else mark

    def unmarked_leaf(self, given: object, primitive: str, remedy: str) -> IterVar:
        """Return `given` like `leaf`, but refuse a loop that is marked."""
        loop = self.leaf(given, primitive)
        if loop in self.loops.marks:
            why = f"it is {self.mark_text(loop)} already"
            call = self.loops.provenance[loop]
            is_mark = call.primitive in MARKING_PRIMITIVES
            if is_mark and primitive in MARKING_PRIMITIVES:
                remedy += (
                    "; for another target, mark a copy: schedule.copy(marks=False)"
                )
            self.refuse(primitive, loop.name, why, remedy, earlier=[call.snippet()])
        return loop

    def replaceable_leaf(self, given: object, primitive: str) -> IterVar:
        """Return `given` like `unmarked_leaf`, but refuse a loop at which a stage is attached."""
        loop = self.unmarked_leaf(given, primitive, f"{primitive} first, then mark")
        for attached in self.attached:
            point = attached.attach_point
            if point is not None and point.axis is loop:
                self.refuse(
                    primitive,
                    loop.name,
                    f"stage {attached.name} is computed at it",
                    f"{primitive} first, then compute_at one of the resulting loops",
                    earlier=[point.snippet()],
                )
        return loop

    def declaration(self) -> Snippet:
        """Return the line that declared the stage's operation, for messages."""
        return declared_at(self.op.line, f"stage {self.name}")

    def refuse(
        self,
        primitive: str,
        axis: str,
        why: str,
        remedy: str | None = None,
        *,
        earlier: Iterable[Snippet] = (),
    ) -> NoReturn:
        """Raise UserError: `primitive` is illegal on the axis named `axis`.

        `earlier` holds the lines with which the request conflicts.
        """
        loops = ", ".join(f"{leaf.name} ({leaf.kind})" for leaf in self.loops.leaves)
        raise UserError(
            f"cannot {_VERBS.get(primitive, primitive)} axis {axis} of stage {self.name}",
            where=f"stage {self.name}, loops: {loops or 'none'}",
            why=why,
            remedy=remedy or "use one of the stage's loops",
            earlier=earlier,
        )

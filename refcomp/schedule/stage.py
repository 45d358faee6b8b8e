"""A stage: the loops that compute one operation, as data that the primitives change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.foundation.names import UniqueNames
from refcomp.ir.expr import Expr
from refcomp.ir.rewrite import walk
from refcomp.ir.stmt import For
from refcomp.schedule.relations import Relation
from refcomp.te.extern import ExternOp
from refcomp.te.intrin import TensorIntrin
from refcomp.te.operation import Operation
from refcomp.te.tensor import OPAQUE, ORDERED, IterVar, Tensor, axis


@dataclass(frozen=True, slots=True)
class Provenance:
    """The call of a primitive that made or marked something."""

    primitive: str
    # The user's line, as `file:line`.
    line: str


@dataclass(frozen=True, slots=True, eq=False)
class AttachPoint:
    """Where an attached stage is computed: in each iteration of a loop of another stage."""

    stage: Stage
    # The loop of `stage`.
    axis: IterVar
    # The user's line that said so, as `file:line`.
    line: str


@dataclass(frozen=True, slots=True, eq=False)
class Prefetched:
    """A tensor that is asked for in each iteration of `axis`, as of `offset` iterations later."""

    tensor: Tensor
    axis: IterVar
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Tensorized:
    """The loops from `axis` inwards are done by `intrin`, as was said at `line`."""

    axis: IterVar
    intrin: TensorIntrin
    line: str


@dataclass(frozen=True, slots=True, eq=False)
class LoopPragma:
    """The wish that `key` is `value` around the loop `axis`."""

    axis: IterVar
    key: str
    value: int | str


@dataclass(frozen=True, slots=True)
class StrideAlignment:
    """A dimension's stride is k * factor + offset elements, for some k."""

    factor: int
    offset: int


@dataclass(slots=True, eq=False)
class StageLoops:
    """The loops that compute a stage, and how each of them is carried out."""

    # The loops, outermost first.
    leaves: list[IterVar] = field(default_factory=list)
    # Splits and fusions that lead from the operation's own axes to the leaves, in their order.
    relations: list[Relation] = field(default_factory=list)
    # Loop -> vectorized, unrolled, parallel, tensorized, or the tag of the threads that run it.
    marks: dict[IterVar, str] = field(default_factory=dict)
    # Axis -> the call that made or marked it.
    provenance: dict[IterVar, Provenance] = field(default_factory=dict)
    # Wishes for the passes behind, in the order in which they were given.
    pragmas: list[LoopPragma] = field(default_factory=list)
    # Hints for the host's caches.
    prefetches: list[Prefetched] = field(default_factory=list)
    # The intrinsic that replaces the innermost loops.
    tensorized: Tensorized | None = None

    def position(self, axis: IterVar) -> int:
        """Return the place of a loop among the leaves, 0 for the outermost."""
        return next(k for k, leaf in enumerate(self.leaves) if leaf is axis)

    def mark(self, axis: IterVar, mark: str, provenance: Provenance) -> None:
        """Record how a loop is carried out, and which call said so."""
        self.marks[axis] = mark
        self.provenance[axis] = provenance


@dataclass(slots=True, eq=False)
class StageMemory:
    """The memory that holds a stage's tensors, and who stores to it."""

    # Name of the scope; None: the place where the stage is computed decides.
    scope: str | None = None
    # The memory is held twice, and filled one iteration ahead.
    is_double_buffered: bool = False
    # Dimension -> its stride.
    alignments: dict[int, StrideAlignment] = field(default_factory=dict)
    # Thread tag -> index of the thread that stores a redundantly computed value (default 0).
    store_predicate: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class StageThreads:
    """The threads of a GPU that compute a stage."""

    # Bound loop -> its thread axis. Loops of virtual threads are not among them.
    bound: dict[IterVar, IterVar] = field(default_factory=dict)
    # Thread axes for which the stage's kernel begins outside its loops; empty: at the bound loops.
    env: list[IterVar] = field(default_factory=list)


# Where a stage is computed: in a loop nest of its own, in the place of every read of it, or in a
# loop of another stage.
Placement = Literal["root", "inline"] | AttachPoint


@dataclass(slots=True, eq=False, repr=False)
class Stage:
    """How one operation is computed."""

    op: Operation
    # Unique in the schedule; recorded steps refer to stages by it.
    name: str
    # The caller gives the memory of the operation's tensors, and needs all of them.
    is_output: bool
    # All stages of the schedule, producers first: one list that they share.
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
        """The operation's own axes, reduction axes last; none for a placeholder."""
        return (*getattr(self.op, "axis", ()), *getattr(self.op, "reduce_axis", ()))

    @property
    def attach_point(self) -> AttachPoint | None:
        """Return where the stage is attached, None when it is not."""
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
        """Every axis the stage has or had, by name."""
        known = [*self.roots]
        for relation in self.loops.relations:
            made = (
                getattr(relation, name, None) for name in ("outer", "inner", "fused")
            )
            known.extend(axis for axis in made if axis is not None)
        return {axis.name: axis for axis in known}

    def derive_axis(
        self, name: str, extent: Expr, kind: str, provenance: Provenance
    ) -> IterVar:
        """Return a fresh axis from 0, and record its provenance; a taken name gets a suffix."""
        unique = UniqueNames(self.axes(), separator=".").take(name)
        derived = axis(unique, 0, extent, kind)
        self.loops.provenance[derived] = provenance
        return derived

    def leaf(self, given: Any, primitive: str) -> IterVar:
        """`given` if it is a loop of this stage; else UserError that tells the loops there are."""
        if isinstance(given, IterVar) and any(
            given is leaf for leaf in self.loops.leaves
        ):
            self._refuse_opaque(given, primitive)
            return given
        named = given.name if isinstance(given, IterVar) else repr(given)
        if any(given is known for known in self.axes().values()):
            self.refuse(
                primitive, named, "it was split or fused before and is no loop any more"
            )
        self.refuse(primitive, named, "it is no axis of this stage")

    def _refuse_opaque(self, axis: IterVar, primitive: str) -> None:
        if axis.kind == ORDERED and primitive not in ("unroll", "compute_at"):
            self.refuse(
                primitive,
                axis.name,
                "it is ordered: each iteration of a scan needs the rows of the ones before",
                "schedule the axes of the stages that compute a row",
            )
        if axis.kind == OPAQUE:
            self.refuse(
                primitive,
                axis.name,
                f"it is opaque: {self.op.what} computes all of its elements in a way of its own",
                self._remedy_within(),
            )

    def _remedy_within(self) -> str:
        """Where it is said how the loops of an opaque operation run."""
        beside = "the stages before and after it are scheduled as ever"
        if not isinstance(self.op, ExternOp):
            return "schedule the stages before and after it"
        if self.op.tag == "hybrid":
            return (
                "say it in the hybrid function, in place of range(n): parallel(n), vectorize(n), "
                f'unroll(n) or bind("threadIdx.x", n); {beside}'
            )
        if any(isinstance(node, For) for node in walk(self.op.body)):
            return (
                'say it in the ir_builder: for_range(0, n, for_type="parallel"), "vectorize" or '
                f'"unroll"; {beside}'
            )
        return "schedule the stages before and after it; cache_read copies what it reads or makes"

    def mark_text(self, loop: IterVar) -> str:
        """Return how a marked loop is carried out, for messages."""
        mark = self.loops.marks[loop]
        return f"bound to {mark}" if loop in self.threads.bound else mark

    def unmarked_leaf(self, given: Any, primitive: str, remedy: str) -> IterVar:
        """As `leaf`, and how the loop is carried out is not yet said."""
        loop = self.leaf(given, primitive)
        if loop in self.loops.marks:
            self.refuse(
                primitive, loop.name, f"it is {self.mark_text(loop)} already", remedy
            )
        return loop

    def replaceable_leaf(self, given: Any, primitive: str) -> IterVar:
        """As `unmarked_leaf`, and no stage is computed at the loop: it may make way for others."""
        loop = self.unmarked_leaf(given, primitive, f"{primitive} first, then mark")
        for attached in self.attached:
            point = attached.attach_point
            if point is not None and point.axis is loop:
                self.refuse(
                    primitive,
                    loop.name,
                    f"stage {attached.name} is computed at it since {point.line}",
                    f"{primitive} first, then compute_at one of the loops that come of it",
                )
        return loop

    def refuse(
        self, primitive: str, axis: str, why: str, remedy: str | None = None
    ) -> NoReturn:
        """Raises the UserError that `primitive` is illegal on the axis named `axis`."""
        loops = ", ".join(f"{leaf.name} ({leaf.kind})" for leaf in self.loops.leaves)
        raise UserError(
            f"cannot {primitive} axis {axis} of stage {self.name}",
            where=f"stage {self.name}, loops: {loops or 'none'}",
            why=why,
            remedy=remedy or "use one of the stage's loops",
        )

"""Kernels: which stages run together on a GPU, and the threads that they share.

A kernel begins at the first bound loop of a stage that is not computed inside another kernel; at
the outermost reduction loop, if that stands before it, as a launch for each step would gain
nothing; outside all loops, where env_threads names the stage's threads. The loops outside are the
host's. All stages attached inside belong to the kernel, and their loops bound to one tag are one
loop, whose variable they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Var
from refcomp.ir.stmt import BLOCK_TAGS, THREAD_TAGS, THREADS_IN_BLOCK_TAGS
from refcomp.schedule.placement import NestLoop, loops_around, place_text
from refcomp.schedule.stage import Stage
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import REDUCTION, IterVar

SHARED, LOCAL, GLOBAL = "shared", "local", "global"
_ORDER = tuple(reversed(THREAD_TAGS[:3])) + tuple(reversed(THREAD_TAGS[3:]))


@dataclass(slots=True, eq=False)
class Kernel:
    """Stages that run in one launch, and the threads that they share."""

    # The stage in which the kernel begins, and the number of the loop that it begins at.
    stage: Stage
    start: int
    # Thread tag -> the loops that are bound to it, of all stages of the kernel.
    bound: dict[str, list[NestLoop]] = field(default_factory=dict)
    # Thread tag -> the variable that these loops share.
    variables: dict[str, Var] = field(default_factory=dict)
    # Thread tag -> the thread axis that env_threads names.
    env: dict[str, IterVar] = field(default_factory=dict)

    def add(self, stage: Stage) -> None:
        """Takes in the bound loops of a stage of this kernel, and the threads it names itself."""
        for axis in stage.threads.env:
            self.env[axis.thread_tag] = axis
            self.variables.setdefault(axis.thread_tag, Var(axis.thread_tag, I64))
        for leaf in stage.loops.leaves:
            if leaf in stage.threads.bound:
                tag = stage.loops.marks[leaf]
                self.bound.setdefault(tag, []).append(NestLoop(stage, leaf))
                self.variables.setdefault(tag, Var(tag, I64))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags in use, in the order of the loops of a kernel."""
        return tuple(tag for tag in _ORDER if tag in self.bound or tag in self.env)


def find_kernels(stages: Sequence[Stage]) -> dict[Stage, Kernel]:
    """The kernel of each stage that is in one. `stages` are those that are computed."""
    kernels: dict[Stage, Kernel] = {}
    for stage in reversed(stages):  # what is attached after what it is attached to
        kernel = _kernel_around(stage, kernels)
        if kernel is not None and stage.threads.env:
            _refuse_inner(stage, kernel)
        if kernel is None and (stage.threads.bound or stage.threads.env):
            kernel = Kernel(stage, 0 if stage.threads.env else _start(stage))
        if kernel is not None:
            kernels[stage] = kernel
            kernel.add(stage)
    for kernel in dict.fromkeys(kernels.values()):
        _check_env(kernel)
    return kernels


def _refuse_inner(stage: Stage, kernel: Kernel) -> None:
    raise UserError(
        f"env_threads of stage {stage.name} cannot begin a kernel",
        where=place_text(stage),
        why=f"the stage is computed in the kernel that begins at stage {kernel.stage.name}",
        remedy=f"name the threads for stage {kernel.stage.name}",
    )


def _check_env(kernel: Kernel) -> None:
    """Refuses threads without an extent, and groups that would do the same work."""
    for tag, axis in kernel.env.items():
        owners = [loop.stage for loop in kernel.bound.get(tag, ())]
        if tag in BLOCK_TAGS and kernel.stage not in owners:
            why = "all groups would do the same work, and could not wait for each other"
            remedy = f"bind a loop of stage {kernel.stage.name} to it, or leave it out"
        elif not owners and _is_open(axis):
            why = "it has no extent, and no loop in the kernel is bound to it"
            remedy = f'give it one: thread_axis((0, 64), "{tag}")'
        else:
            continue
        raise UserError(
            f"env_threads of stage {kernel.stage.name} cannot take {tag}",
            where=f"stage {kernel.stage.name}",
            why=why,
            remedy=remedy,
        )


def _is_open(axis: IterVar) -> bool:
    return as_int(simplify(axis.extent)) == 0


def _kernel_around(stage: Stage, kernels: Mapping[Stage, Kernel]) -> Kernel | None:
    point = stage.attach_point
    if point is None:
        return None
    kernel = kernels.get(point.stage)
    if kernel is None or kernel.stage is not point.stage:
        return kernel
    return kernel if point.stage.loops.position(point.axis) >= kernel.start else None


def _start(stage: Stage) -> int:
    return next(
        k
        for k, leaf in enumerate(stage.loops.leaves)
        if leaf in stage.threads.bound or leaf.kind == REDUCTION
    )


def scope_of(stage: Stage, kernel: Kernel | None) -> str:
    """Where the stage's tensors lie; UserError where the scope that was asked for cannot be."""
    scope = stage.memory.scope or _default_scope(stage, kernel)
    if kernel is None and scope == SHARED:
        _refuse(
            stage,
            scope,
            "shared memory belongs to a group of threads, and no kernel is around the stage",
            "compute_at a loop inside one that is bound to blockIdx",
        )
    if kernel is None:
        return scope
    is_inside = stage is not kernel.stage
    if _is_row(stage, kernel):
        if stage.memory.scope not in (None, GLOBAL):
            why = f"its rows are those of scan {kernel.stage.name}, whose memory is global"
            _refuse(stage, scope, why, "leave its scope as it is")
        scope = GLOBAL
    elif is_inside and scope == GLOBAL:
        why = "a kernel cannot allocate global memory, and the stage is computed inside one"
        _refuse(
            stage,
            scope,
            why,
            "use the scope shared or local, or compute it at the root",
        )
    if not is_inside and scope != GLOBAL:
        why = "what one kernel computes for another must outlive it"
        _refuse(
            stage,
            scope,
            why,
            "compute_at a loop of its consumer's kernel, or keep it global",
        )
    _check_threads(stage, kernel, scope)
    return scope


def _is_row(stage: Stage, kernel: Kernel) -> bool:
    """Whether the stage computes the rows of the scan whose kernel it is in."""
    op = kernel.stage.op
    return isinstance(op, ScanOp) and any(
        tensor in op.update for tensor in stage.op.outputs
    )


def _default_scope(stage: Stage, kernel: Kernel | None) -> str:
    if kernel is None or stage is kernel.stage:
        return GLOBAL
    around = (loop.stage.loops.marks.get(loop.axis, "") for loop in loops_around(stage))
    return LOCAL if any(mark in THREADS_IN_BLOCK_TAGS for mark in around) else SHARED


def _check_threads(stage: Stage, kernel: Kernel, scope: str) -> None:
    """A stage inside a kernel shares its loops among those only who share its memory."""
    if stage is kernel.stage:
        return
    for leaf, thread in stage.threads.bound.items():
        is_combined = (
            leaf.kind == REDUCTION
        )  # what threads have found together, each may keep
        if (
            is_combined or scope != LOCAL
        ) and thread.thread_tag in THREADS_IN_BLOCK_TAGS:
            continue
        if scope == GLOBAL:
            _refuse_groups(stage, leaf, thread, kernel)
        owner = "each group of threads" if scope == SHARED else "each thread"
        raise UserError(
            f"stage {stage.name} binds axis {leaf.name} to {thread.thread_tag}, "
            f"but its memory is {scope}",
            where=f"stage {stage.name}, at {stage.loops.provenance[leaf].line}",
            why=f"{owner} has its own {scope} memory and must fill it alone",
            remedy=f"leave {leaf.name} unbound, or keep {stage.name} in another scope",
        )


def _refuse_groups(
    stage: Stage, leaf: IterVar, thread: IterVar, kernel: Kernel
) -> None:
    raise UserError(
        f"stage {stage.name} binds axis {leaf.name} to {thread.thread_tag} within one launch",
        where=f"stage {stage.name}, at {stage.loops.provenance[leaf].line}",
        why="a row needs all of those before, and groups of threads cannot wait for each other",
        remedy=f"leave {leaf.name} unbound, or do without env_threads of {kernel.stage.name}, so "
        "that each row is a launch of its own",
    )


def _refuse(stage: Stage, scope: str, why: str, remedy: str) -> None:
    what = f"stage {stage.name} cannot lie in {scope} memory"
    raise UserError(what, where=place_text(stage), why=why, remedy=remedy)

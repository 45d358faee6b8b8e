"""Kernels: the stages that run together on a GPU, and the threads that they share.

A kernel begins at the first bound loop of a stage that is not computed inside another
kernel. If the outermost reduction loop stands before that loop, the kernel begins there,
since a launch for each step would gain nothing. If env_threads names the stage's threads,
the kernel begins outside all loops. The loops outside run on the host.

All stages attached inside belong to the kernel. Their loops bound to one tag are one
loop, and share its variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from refcomp.arith import simplify
from refcomp.foundation.dtype import I64
from refcomp.foundation.errors import UserError
from refcomp.ir.buffer import GLOBAL, LOCAL, SHARED, StorageScope
from refcomp.ir.constants import as_int
from refcomp.ir.expr import Var
from refcomp.ir.stmt import BLOCK_TAGS, THREADS_IN_BLOCK_TAGS, LoopKind
from refcomp.schedule.placement import (
    NestLoop,
    loops_around,
    place_text,
    placement_lines,
)
from refcomp.schedule.stage import Stage
from refcomp.te.operation import ScanOp
from refcomp.te.tensor import REDUCTION, IterVar

# The order of the loops of a kernel: z before y before x, groups before threads.
_ORDER = (*reversed(BLOCK_TAGS), *reversed(THREADS_IN_BLOCK_TAGS))


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
        """Add the bound loops and the env_threads of a stage of this kernel."""
        for axis in stage.threads.env:
            tag = axis.thread_tag
            self.env[tag] = axis
            self.variables.setdefault(tag, Var(tag, I64))
        for leaf in stage.loops.leaves:
            if leaf in stage.threads.bound:
                tag = stage.loops.marks[leaf]
                self.bound.setdefault(tag, []).append(NestLoop(stage, leaf))
                self.variables.setdefault(tag, Var(tag, I64))

    @property
    def tags(self) -> tuple[LoopKind, ...]:
        """The tags in use, in the order of the loops of a kernel."""
        return tuple(tag for tag in _ORDER if tag in self.bound or tag in self.env)


def find_kernels(stages: Sequence[Stage]) -> dict[Stage, Kernel]:
    """Return the kernel of each of `stages` that runs in one.

    Raises:
        UserError: env_threads cannot begin a kernel, or names threads of no use.
    """
    kernels: dict[Stage, Kernel] = {}
    for stage in reversed(stages):  # an attached stage after its attach point's stage
        threads = stage.threads
        kernel = _kernel_around(stage, kernels)
        if kernel is not None and threads.env:
            raise UserError(
                f"env_threads of stage {stage.name} cannot begin a kernel",
                where=place_text(stage),
                why="the stage is computed in the kernel "
                f"that begins at stage {kernel.stage.name}",
                remedy=f"name the threads for stage {kernel.stage.name}",
                earlier=placement_lines(stage),
            )
        if kernel is None and (threads.bound or threads.env):
            start = 0
            if not threads.env:
                # A launch for each step of a reduction would gain nothing.
                is_first = [
                    leaf in threads.bound or leaf.kind == REDUCTION
                    for leaf in stage.loops.leaves
                ]
                start = is_first.index(True)
            kernel = Kernel(stage, start)
        if kernel is not None:
            kernels[stage] = kernel
            kernel.add(stage)
    for kernel in dict.fromkeys(kernels.values()):
        _check_env(kernel)
    return kernels


def _check_env(kernel: Kernel) -> None:
    """Refuse threads without an extent, and groups that would do the same work."""
    for tag, axis in kernel.env.items():
        owners = [loop.stage for loop in kernel.bound.get(tag, ())]
        if tag in BLOCK_TAGS and kernel.stage not in owners:
            why = "all groups would do the same work, and could not wait for each other"
            remedy = f"bind a loop of stage {kernel.stage.name} to it, or leave it out"
        elif not owners and as_int(simplify(axis.extent)) == 0:
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


def _kernel_around(stage: Stage, kernels: Mapping[Stage, Kernel]) -> Kernel | None:
    point = stage.attach_point
    if point is None:
        return None
    kernel = kernels.get(point.stage)
    if kernel is None or kernel.stage is not point.stage:
        return kernel
    # A loop outside of the kernel's first one is a loop of the host.
    is_inside = point.stage.loops.position(point.axis) >= kernel.start
    return kernel if is_inside else None


def scope_of(stage: Stage, kernel: Kernel | None) -> StorageScope:
    """Return the scope of the memory of the stage's tensors.

    Raises:
        UserError: the requested scope is not possible.
    """
    requested = stage.memory.scope
    scope = requested or _default_scope(stage, kernel)
    if kernel is None:
        if scope == SHARED:
            _refuse(
                stage,
                scope,
                why="shared memory belongs to a group of threads, "
                "and no kernel is around the stage",
                remedy="compute_at a loop inside one that is bound to blockIdx",
            )
        return scope
    is_inside = stage is not kernel.stage
    # The rows of a scan lie in its result, which outlives the kernel.
    scan = kernel.stage.op
    is_row = isinstance(scan, ScanOp) and any(
        t in scan.update for t in stage.op.outputs
    )
    if is_row:
        if requested not in (None, GLOBAL):
            _refuse(
                stage,
                scope,
                why=f"its rows are those of scan {kernel.stage.name}, "
                "whose memory is global",
                remedy="leave its scope as it is",
            )
        scope = GLOBAL
    elif is_inside and scope == GLOBAL:
        _refuse(
            stage,
            scope,
            why="a kernel cannot allocate global memory, "
            "and the stage is computed inside one",
            remedy="use the scope shared or local, or compute it at the root",
        )
    if not is_inside and scope != GLOBAL:
        _refuse(
            stage,
            scope,
            why="what one kernel computes for another must outlive it",
            remedy="compute_at a loop of its consumer's kernel, or keep it global",
        )
    if is_inside:
        _check_threads(stage, kernel, scope)
    return scope


def _default_scope(stage: Stage, kernel: Kernel | None) -> StorageScope:
    if kernel is None or stage is kernel.stage:
        return GLOBAL
    for loop in loops_around(stage):
        mark = loop.stage.loops.marks.get(loop.axis, "")
        if mark in THREADS_IN_BLOCK_TAGS:
            return LOCAL  # inside one thread
    return SHARED


def _check_threads(stage: Stage, kernel: Kernel, scope: StorageScope) -> None:
    """Refuse to share the loops of a stage among threads that do not share its memory."""
    for leaf, thread in stage.threads.bound.items():
        # After a reduction across threads, each thread may keep the result.
        is_combined = leaf.kind == REDUCTION
        is_in_block = thread.thread_tag in THREADS_IN_BLOCK_TAGS
        if is_in_block and (is_combined or scope != LOCAL):
            continue
        where = f"stage {stage.name}"
        bound = stage.loops.provenance[leaf].snippet()
        binding = f"stage {stage.name} binds axis {leaf.name} to {thread.thread_tag}"
        if scope == GLOBAL:
            raise UserError(
                f"{binding} within one launch",
                where=where,
                why="a row needs all of those before, "
                "and groups of threads cannot wait for each other",
                remedy=f"leave {leaf.name} unbound, or do without env_threads of "
                f"{kernel.stage.name}, so that each row is a launch of its own",
                at=bound,
            )
        owner = "each group of threads" if scope == SHARED else "each thread"
        raise UserError(
            f"{binding}, but its memory is {scope}",
            where=where,
            why=f"{owner} has its own {scope} memory and must fill it alone",
            remedy=f"leave {leaf.name} unbound, or keep {stage.name} in another scope",
            at=bound,
            earlier=placement_lines(stage),
        )


def _refuse(stage: Stage, scope: StorageScope, *, why: str, remedy: str) -> None:
    what = f"stage {stage.name} cannot lie in {scope} memory"
    raise UserError(
        what,
        where=place_text(stage),
        why=why,
        remedy=remedy,
        earlier=placement_lines(stage),
    )

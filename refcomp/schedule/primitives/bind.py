"""bind: let the threads of a GPU execute the iterations of a loop."""

from __future__ import annotations

from refcomp.arith import simplify
from refcomp.foundation.errors import Unsupported
from refcomp.ir.constants import as_int
from refcomp.ir.kernels import is_bound
from refcomp.ir.rewrite import statements_in
from refcomp.ir.stmt import BLOCK_TAGS, VTHREAD, For, LoopKind
from refcomp.schedule.primitives.mark import check_extent
from refcomp.schedule.relations import Split
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.hybrid_operation import HybridOp
from refcomp.te.tensor import REDUCTION, THREAD, IterVar


def bind(stage: Stage, provenance: Provenance, axis: object, thread: object) -> None:
    """Let each thread, or each group of threads, execute one iteration of loop `axis`."""
    loop = stage.unmarked_leaf(
        axis, "bind", "split it, and bind the part that is not marked"
    )
    if not (isinstance(thread, IterVar) and thread.kind == THREAD):
        named = thread.name if isinstance(thread, IterVar) else repr(thread)
        stage.refuse(
            "bind",
            loop.name,
            f"{named} is not a thread axis",
            'pass a thread axis, such as thread_axis("threadIdx.x")',
        )
    if isinstance(stage.op, HybridOp):
        _bind_in_statement(stage, provenance, loop, thread)
        return
    if thread.thread_tag.startswith(VTHREAD):
        _bind_virtual(stage, provenance, loop, thread)
        return
    _check_reduction(stage, loop, thread)
    _check_once(stage, loop, thread)
    _check_extent(stage, loop, thread)
    stage.loops.mark(loop, LoopKind(thread.thread_tag), provenance)
    stage.threads.bound[loop] = thread


def _bind_in_statement(
    stage: Stage, provenance: Provenance, loop: IterVar, thread: IterVar
) -> None:
    """Bind a loop of a hybrid function. The loops of a kernel are joined when it is lowered."""
    statement = stage.loops.statement
    assert statement is not None
    own = next((stmt for stmt in statements_in(statement) if is_bound(stmt)), None)
    if isinstance(own, For):
        why = f"the hybrid function binds a loop to {own.kind} itself"
        remedy = "bind all loops in the function, or all in the schedule"
        stage.refuse("bind", loop.name, why, remedy, earlier=[stage.declaration()])
    if thread.thread_tag.startswith(VTHREAD):
        _bind_virtual(stage, provenance, loop, thread)
        return
    _check_extent(stage, loop, thread)
    stage.loops.mark(loop, LoopKind(thread.thread_tag), provenance)


def _bind_virtual(
    stage: Stage, provenance: Provenance, loop: IterVar, thread: IterVar
) -> None:
    """Bind a loop to virtual threads. Each real thread executes all of them in turn."""
    if loop.kind == REDUCTION:
        stage.refuse(
            "bind",
            loop.name,
            "it is a reduction axis, and virtual threads cannot combine their parts",
            "bind an output axis, or unroll the reduction",
            earlier=[stage.declaration()],
        )
    # The extent of an attached stage's loop is known only when the region is: lowering checks it.
    if stage.attach_point is None:
        check_extent(stage, loop, loop.extent, VTHREAD)
    _check_extent(stage, loop, thread)
    stage.loops.mark(loop, VTHREAD, provenance)
    stage.threads.virtual[loop] = thread


def _check_reduction(stage: Stage, loop: IterVar, thread: IterVar) -> None:
    """Refuse a reduction unless a known number of threads of one group can share it."""
    if loop.kind != REDUCTION:
        return
    if thread.thread_tag in BLOCK_TAGS:
        raise Unsupported(
            f"cannot bind axis {loop.name} of stage {stage.name} to {thread.thread_tag}",
            where=f"stage {stage.name}",
            why="it is a reduction axis: its threads must combine their parts, but groups of "
            "threads cannot wait for each other",
            remedy="bind it to threadIdx; or rfactor it, and bind the new output axis",
            earlier=[stage.declaration()],
        )
    extent = simplify(loop.extent)
    minimum = simplify(loop.minimum)
    count = as_int(extent)
    if count is None or count < 1:
        stage.refuse(
            "bind",
            loop.name,
            f"it is a reduction axis of {extent} iterations: to combine their parts, the threads "
            "must have a constant number of at least 1",
            "split it by a factor, and bind the inner loop",
        )
    # The number of a thread is its iteration.
    if as_int(minimum) != 0:
        why = f"it is a reduction axis that begins at {minimum}, and threads are counted from 0"
        stage.refuse(
            "bind", loop.name, why, "split it by a factor, and bind the inner loop"
        )


def _check_once(stage: Stage, loop: IterVar, thread: IterVar) -> None:
    for other, tag in stage.loops.marks.items():
        if tag == thread.thread_tag:
            stage.refuse(
                "bind",
                loop.name,
                f"axis {other.name} of this stage is bound to {tag} already",
                "fuse both axes and bind the result, or use another thread axis",
                earlier=[stage.loops.provenance[other].snippet(f"axis {other.name}")],
            )


def _check_extent(stage: Stage, loop: IterVar, thread: IterVar) -> None:
    """Refuse a loop of another extent than the thread axis, unless compute_at may change it."""
    fixed = (
        stage.is_output
        or isinstance(stage.op, HybridOp)
        or loop.kind == REDUCTION
        or any(
            isinstance(relation, Split)
            and loop is (relation.outer if relation.factor is None else relation.inner)
            for relation in stage.loops.relations
        )
    )
    # A thread axis of extent 0 takes the extent of the loop.
    given = as_int(simplify(loop.extent))
    wanted = as_int(simplify(thread.extent))
    if fixed and given is not None and wanted and given != wanted:
        stage.refuse(
            "bind",
            loop.name,
            f"it has {given} iterations, and {thread.thread_tag} has {wanted} threads",
            f"split it by a factor of {wanted}, or give the thread axis no range",
        )

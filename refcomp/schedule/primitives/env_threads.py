"""env_threads: begin the kernel of a stage outside all of its loops."""

from __future__ import annotations

from typing import NoReturn

from refcomp.arith import simplify
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.stmt import BLOCK_TAGS, THREAD_TAGS
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.operation import ComputeOp, ScanOp
from refcomp.te.tensor import THREAD, IterVar


def env_threads(stage: Stage, provenance: Provenance, threads: object) -> None:
    """Let one launch with `threads` compute the whole stage.

    Loops outside of the bound ones are executed by each thread. Groups would all do the same work,
    so an axis of blockIdx must be bound by a loop of the stage itself. A scan takes axes of
    threadIdx only, because one group computes all rows in order.
    """
    axes = list(threads) if isinstance(threads, list | tuple) else [threads]
    if not isinstance(stage.op, ComputeOp | ScanOp):
        why = f"it is {stage.op.what}, which has no loops to bind"
        _refuse(stage, why, "name the threads of a stage that computes")
    if stage.threads.env:
        _refuse(stage, "its threads are named already", "name all of them in one call")
    if not axes:
        _refuse(stage, "no thread axis is given")
    checked = [_checked_axis(stage, axis) for axis in axes]
    tags = [axis.thread_tag for axis in checked]
    if len(set(tags)) < len(tags):
        _refuse(stage, f"{', '.join(tags)} are not different thread axes")
    stage.threads.env.extend(checked)


def _checked_axis(stage: Stage, axis: object) -> IterVar:
    if not (
        isinstance(axis, IterVar)
        and axis.kind == THREAD
        and axis.thread_tag in THREAD_TAGS
    ):
        named = axis.name if isinstance(axis, IterVar) else repr(axis)
        _refuse(stage, f"{named} is not an axis of real threads")
    # The launch begins outside of the loops, so that no loop can give the extent.
    if as_int(simplify(axis.extent)) is None:
        _refuse(
            stage,
            f"the extent of {axis.thread_tag} is {axis.extent}, which is not a constant",
        )
    if isinstance(stage.op, ScanOp) and axis.thread_tag in BLOCK_TAGS:
        _refuse(
            stage,
            f"a row needs all rows before it, and groups of {axis.thread_tag} cannot wait for "
            "each other",
            "name axes of threadIdx only, so that one group computes all rows; or bind blockIdx in "
            "the stages that compute a row, so that each row is a launch of its own",
        )
    return axis


def _refuse(stage: Stage, why: str, remedy: str | None = None) -> NoReturn:
    raise UserError(
        f"cannot begin the kernel of stage {stage.name} outside its loops",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy
        or 'pass thread axes: env_threads([thread_axis((0, 64), "threadIdx.x")])',
    )

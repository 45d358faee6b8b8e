"""env_threads: a stage's kernel begins outside all of its loops, for these threads."""

from __future__ import annotations

from typing import Any, NoReturn

from refcomp.arith import simplify
from refcomp.foundation.errors import UserError
from refcomp.ir.constants import as_int
from refcomp.ir.stmt import BLOCK_TAGS, THREAD_TAGS
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.operation import ComputeOp
from refcomp.te.scan import ScanOp
from refcomp.te.tensor import THREAD, IterVar


def env_threads(stage: Stage, provenance: Provenance, threads: Any) -> None:
    """One launch runs the whole stage: loops that stand outside the bound ones are each thread's.

    `threads` come from thread_axis. Each has an extent, or is bound by a loop inside; one of
    blockIdx by a loop of the stage itself, as groups would do the same work otherwise. A scan's
    are threadIdx only: one group computes all rows, one after the other.
    """
    axes = list(threads) if isinstance(threads, list | tuple) else [threads]
    if not isinstance(stage.op, ComputeOp | ScanOp):
        why = f"it is {stage.op.what}, which has no loops to bind"
        _refuse(stage, why, "name the threads of a stage that computes")
    if stage.threads.env:
        _refuse(stage, "its threads are named already", "name all of them in one call")
    if not axes:
        _refuse(stage, "no thread axis is given")
    for axis in axes:
        _check_axis(stage, axis)
    tags = [axis.thread_tag for axis in axes]
    if len(set(tags)) < len(tags):
        _refuse(stage, f"{', '.join(tags)} are not different thread axes")
    stage.threads.env.extend(axes)


def _check_axis(stage: Stage, axis: Any) -> None:
    if not (
        isinstance(axis, IterVar)
        and axis.kind == THREAD
        and axis.thread_tag in THREAD_TAGS
    ):
        named = axis.name if isinstance(axis, IterVar) else repr(axis)
        _refuse(stage, f"{named} is no axis of real threads")
    if as_int(simplify(axis.extent)) is None:
        _refuse(
            stage,
            f"the extent of {axis.thread_tag} is {axis.extent}, which is no constant",
        )
    if isinstance(stage.op, ScanOp) and axis.thread_tag in BLOCK_TAGS:
        _refuse(
            stage,
            f"a row needs all of those before, and groups of {axis.thread_tag} cannot wait for "
            "each other",
            "name axes of threadIdx only, so that one group computes all rows; or bind blockIdx in "
            "the stages that compute a row, each of which is a launch of its own then",
        )


def _refuse(stage: Stage, why: str, remedy: str | None = None) -> NoReturn:
    raise UserError(
        f"cannot begin the kernel of stage {stage.name} outside its loops",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy
        or 'pass thread axes: env_threads([thread_axis((0, 64), "threadIdx.x")])',
    )

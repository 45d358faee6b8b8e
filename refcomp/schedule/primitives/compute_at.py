"""compute_at: a stage is computed inside a loop of a stage that reads it."""

from __future__ import annotations

from typing import Any, NoReturn

from refcomp.foundation.errors import UserError
from refcomp.schedule.scan_body import refuse_moving_update
from refcomp.schedule.stage import AttachPoint, Provenance, Stage
from refcomp.schedule.stage_graph import depends_on, readers_of
from refcomp.te.extern import ExternOp
from refcomp.te.operation import ComputeOp
from refcomp.te.scan import ScanOp


def compute_at(stage: Stage, provenance: Provenance, consumer: Any, axis: Any) -> None:
    """In each iteration of loop `axis` of stage `consumer`, as much of this stage is computed as
    the iteration needs.

    All stages that read it must be `consumer` or be computed inside that loop themselves, which is
    known only when all is scheduled; what can never come true is refused here.
    """
    if not isinstance(consumer, Stage):
        _refuse(stage, f"{consumer!r} is no stage", "name the consumer as s[C]")
    refuse_moving_update(stage, "move")
    if isinstance(stage.op, ExternOp | ScanOp):
        _refuse(
            stage,
            f"it is {stage.op.what}: all of it is computed at once",
            f"leave it at the root, and compute what reads {stage.name} after it",
        )
    if not isinstance(stage.op, ComputeOp):
        _refuse(
            stage,
            "it is a placeholder: its elements are given, not computed",
            'make a copy with s.cache_read(A, "shared", [C]) and compute that',
        )
    if stage.is_output:
        _refuse(
            stage,
            "it is an output of the schedule: all of it is needed, not what a loop reads",
            f'take apart what it computes with s.cache_write({stage.name}, "local")',
        )
    _check_readers(stage, consumer)
    _check_inits(stage, consumer)
    loop = consumer.leaf(axis, "compute_at")
    if consumer.placement == "inline":
        _refuse(
            stage,
            f"stage {consumer.name} is inlined and has no loops",
            "name its consumer",
        )
    stage.placement = AttachPoint(consumer, loop, provenance.line)


def _check_readers(stage: Stage, consumer: Stage) -> None:
    if not depends_on(consumer, stage):
        names = ", ".join(reader.name for reader in readers_of(stage))
        _refuse(
            stage,
            f"stage {consumer.name} does not read it",
            f"compute it at a loop of a stage that does: {names or 'there is none'}",
        )
    for reader in readers_of(stage):
        if reader is not consumer and not depends_on(consumer, reader):
            _refuse(
                stage,
                f"stage {reader.name} reads it too, and is not needed by {consumer.name}, so that "
                "it can never be computed inside its loops",
                f"leave it at the root, or give {reader.name} a copy by cache_read",
            )


def _check_inits(stage: Stage, consumer: Stage) -> None:
    scan = consumer.op
    if not isinstance(scan, ScanOp):
        return
    for init in consumer.siblings:
        is_init = not set(scan.init).isdisjoint(init.op.outputs)
        if is_init and (init is stage or depends_on(init, stage)):
            of = "it" if init is stage else f"init {init.name}, which reads it,"
            _refuse(
                stage,
                f"{of} fills the first rows of scan {consumer.name} before its loop begins",
                f"compute it before the scan: s[{stage.name}].compute_root()",
            )


def _refuse(stage: Stage, why: str, remedy: str) -> NoReturn:
    raise UserError(
        f"cannot compute stage {stage.name} at a loop of another",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy,
    )

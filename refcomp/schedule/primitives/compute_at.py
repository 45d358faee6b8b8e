"""compute_at: compute a stage inside a loop of a stage that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from refcomp.foundation.errors import UserError
from refcomp.foundation.snippets import Snippet
from refcomp.schedule.scan_body import refuse_moving_update
from refcomp.schedule.stage import AttachPoint, Provenance, Stage
from refcomp.schedule.stage_graph import depends_on, readers_of
from refcomp.te.operation import ComputeOp, ExternOp, ScanOp


def compute_at(
    stage: Stage, provenance: Provenance, consumer: object, axis: object
) -> None:
    """Attach the stage to loop `axis` of stage `consumer`.

    Whether all readers are inside that loop is known only when all is scheduled. Here a stage is
    refused if some reader can never be inside.
    """
    if not isinstance(consumer, Stage):
        _refuse(stage, f"{consumer!r} is not a stage", "name the consumer as s[C]")
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
            "it is an output of the schedule, which needs all of its elements",
            f'compute it into a copy: s.cache_write({stage.name}, "local")',
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
    """Refuse unless `consumer` reads the stage, and needs all other readers of it."""
    if not depends_on(consumer, stage):
        names = ", ".join(reader.name for reader in readers_of(stage))
        _refuse(
            stage,
            f"stage {consumer.name} does not read it",
            f"compute it at a loop of a stage that does: {names or 'there is none'}",
            [consumer.declaration()],
        )
    for reader in readers_of(stage):
        if reader is not consumer and not depends_on(consumer, reader):
            _refuse(
                stage,
                f"stage {reader.name} also reads it, but can never be computed inside a loop of "
                f"{consumer.name}, which does not need it",
                f"leave it at the root, or give {reader.name} a copy by cache_read",
                [reader.declaration()],
            )


def _check_inits(stage: Stage, consumer: Stage) -> None:
    """Refuse a loop of a scan for what the scan's inits need: they run before the loop."""
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
                [consumer.declaration()],
            )


def _refuse(
    stage: Stage, why: str, remedy: str, earlier: Iterable[Snippet] = ()
) -> NoReturn:
    raise UserError(
        f"cannot compute stage {stage.name} at a loop of another",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy,
        earlier=earlier,
    )

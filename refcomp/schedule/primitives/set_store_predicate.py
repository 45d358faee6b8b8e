"""set_store_predicate: choose the thread that stores a redundantly computed value."""

from __future__ import annotations

from typing import NoReturn

from refcomp.foundation.errors import UserError
from refcomp.ir.expr import EQ, And, Expr, IntImm, Var
from refcomp.ir.stmt import THREADS_IN_BLOCK_TAGS
from refcomp.schedule.stage import Provenance, Stage
from refcomp.te.operation import ComputeOp
from refcomp.te.tensor import REDUCTION


def set_store_predicate(
    stage: Stage, provenance: Provenance, predicate: object
) -> None:
    """Store the stage only where `predicate` holds.

    The predicate is `tx.var == 0`, or several such joined by `all`, for thread axes to which the
    stage binds no output axis. Any other condition would leave elements unwritten.
    """
    if not isinstance(stage.op, ComputeOp):
        remedy = "choose the thread in the stages before and after it"
        _refuse(
            stage, f"it is {stage.op.what}, which stores its elements itself", remedy
        )
    chosen: dict[str, int] = {}
    for condition in _conjuncts(stage, predicate):
        match condition:
            case EQ(a=Var(name=tag), b=IntImm(value=number)) if (
                tag in THREADS_IN_BLOCK_TAGS
            ):
                chosen[tag] = number
            case _:
                _refuse(
                    stage, f"{condition} does not choose one thread of a thread axis"
                )
    for tag, number in chosen.items():
        bound = [leaf for leaf, mark in stage.loops.marks.items() if mark == tag]
        if bound and bound[0].kind != REDUCTION:
            _refuse(
                stage,
                f"axis {bound[0].name} is bound to {tag}: each thread has other elements",
            )
        # After a reduction across threads, thread 0 has the result.
        if number < 0 or (bound and number):
            _refuse(stage, f"thread {number} of {tag} does not have the result")
    stage.memory.store_predicate |= chosen


def _conjuncts(stage: Stage, predicate: object) -> list[Expr]:
    if not (isinstance(predicate, Expr) and predicate.dtype.is_bool):
        _refuse(stage, f"{predicate!r} is not a condition")
    if isinstance(predicate, And):
        return [*_conjuncts(stage, predicate.a), *_conjuncts(stage, predicate.b)]
    return [predicate]


def _refuse(stage: Stage, why: str, remedy: str | None = None) -> NoReturn:
    raise UserError(
        f"cannot store stage {stage.name} by such a predicate",
        where=f"stage {stage.name}",
        why=why,
        remedy=remedy
        or "use tx.var == 0 for a thread axis tx that the stage binds to no output axis",
    )

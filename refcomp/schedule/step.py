"""A step: one call of a primitive, with stages and axes by name, so that it can be replayed.

The name of an axis belongs to the last stage named before it in the arguments, else to the stage of
the step. Thread axes and numbers stand as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from refcomp.foundation.errors import UserError
from refcomp.foundation.near_misses import advise
from refcomp.foundation.records import record
from refcomp.foundation.snippets import Snippet
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import THREAD, IterVar

T = TypeVar("T")


@record
class StageName:
    """A reference to the stage of that name."""

    name: str

    def __str__(self) -> str:
        return f"s[{self.name}]"


@record
class AxisName:
    """A reference to the axis of that name."""

    name: str

    def __str__(self) -> str:
        return self.name


@record
class Step:
    """One call of a primitive."""

    stage: str  # the name of the stage
    primitive: str
    args: tuple[object, ...]  # with StageName and AxisName in place of stages and axes
    options: tuple[tuple[str, object], ...]  # the named arguments that were given
    line: str  # the user's line, as `file:line`

    def __str__(self) -> str:
        args = (_to_text(arg) for arg in self.args)
        given = [*args, *(f"{name}={value}" for name, value in self.options)]
        return f"s[{self.stage}].{self.primitive}({', '.join(given)})"


def _to_text(arg: object) -> str:
    if isinstance(arg, tuple):
        return f"[{', '.join(map(_to_text, arg))}]"
    if isinstance(arg, str) and "\n" in arg:  # LLVM IR of a pragma
        return f"<a text of {len(arg.splitlines())} lines>"
    return arg.name if isinstance(arg, IterVar) else str(arg)


def to_name(value: object) -> object:
    """Return `value` with references in place of stages and axes."""
    if isinstance(value, list | tuple):
        return tuple(map(to_name, value))
    if isinstance(value, Stage):
        return StageName(value.name)
    # A thread axis belongs to no stage, so that a replay uses the same object.
    if isinstance(value, IterVar) and value.kind != THREAD:
        return AxisName(value.name)
    return value


def resolve(step: Step, stages: Iterable[Stage]) -> tuple[Stage, list[object]]:
    """Return the stage and the arguments that `step` refers to.

    Raises:
        UserError: a name belongs to none of `stages`, or to no axis of the stage.
    """
    known = {stage.name: stage for stage in stages}
    # `owner` is the stage to which the names of axes belong, as in compute_at(s[C], C's axis).
    own = owner = _found(known, step.stage, step)
    args: list[object] = []
    for arg in step.args:
        if isinstance(arg, StageName):
            owner = _found(known, arg.name, step)
            args.append(owner)
        elif isinstance(arg, AxisName):
            args.append(_found(owner.axes(), arg.name, step))
        elif isinstance(arg, tuple):
            listed = [
                _found(known, one.name, step) if isinstance(one, StageName) else one
                for one in arg
            ]
            args.append(listed)
        else:
            args.append(arg)
    return own, args


def _found(known: Mapping[str, T], name: str, step: Step) -> T:
    if name not in known:
        raise UserError(
            f"the step {step} names {name}, which does not exist",
            earlier=[Snippet(step.line, "recorded here")],
            remedy=advise(
                name,
                known,
                "replay steps on the computation they were recorded for, in their order",
            ),
        )
    return known[name]

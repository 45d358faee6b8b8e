"""A step: one primitive as it was called, with its arguments by name.

Stages stand by name, axes by name within the stage they belong to (the last one named before them,
else the step's own), thread axes and numbers as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from refcomp.foundation.errors import UserError
from refcomp.schedule.stage import Stage
from refcomp.te.tensor import THREAD, IterVar


@dataclass(frozen=True, slots=True)
class StageName:
    """Stands for the stage of that name."""

    name: str

    def __str__(self) -> str:
        return f"s[{self.name}]"


@dataclass(frozen=True, slots=True)
class AxisName:
    """Stands for the axis of that name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Step:
    """One primitive as it was called. Stages and axes stand by name among `args`."""

    stage: str
    primitive: str
    args: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    line: str

    def __str__(self) -> str:
        args = (_to_text(arg) for arg in self.args)
        given = [*args, *(f"{name}={value}" for name, value in self.options)]
        return f"s[{self.stage}].{self.primitive}({', '.join(given)})"


def _to_text(arg: Any) -> str:
    if isinstance(arg, tuple):
        return f"[{', '.join(map(_to_text, arg))}]"
    if isinstance(arg, str) and "\n" in arg:
        return f"<a text of {len(arg.splitlines())} lines>"
    return arg.name if isinstance(arg, IterVar) else str(arg)


def to_name(value: Any) -> Any:
    """What stands for `value` in a step."""
    if isinstance(value, list | tuple):
        return tuple(map(to_name, value))
    if isinstance(value, Stage):
        return StageName(value.name)
    return (
        AxisName(value.name)
        if isinstance(value, IterVar) and value.kind != THREAD
        else value
    )


def resolve(step: Step, stages: Iterable[Stage]) -> tuple[Stage, list[Any]]:
    """The stage and the arguments that `step` names, among `stages`; UserError for one it lacks."""
    known = {stage.name: stage for stage in stages}
    own = owner = _found(known, step.stage, step)
    args: list[Any] = []
    for arg in step.args:
        if isinstance(arg, StageName):
            owner = _found(known, arg.name, step)
            args.append(owner)
        elif isinstance(arg, tuple):
            args.append([_element(known, one, step) for one in arg])
        else:
            args.append(
                _found(owner.axes(), arg.name, step)
                if isinstance(arg, AxisName)
                else arg
            )
    return own, args


def _element(known: dict[str, Stage], one: Any, step: Step) -> Any:
    return _found(known, one.name, step) if isinstance(one, StageName) else one


def _found(known: dict[str, Any], name: str, step: Step) -> Any:
    if name not in known:
        raise UserError(
            f"the step {step} names {name}, which is not there",
            where=f"at {step.line}",
            remedy="replay steps on the computation they were recorded for, in their order",
        )
    return known[name]

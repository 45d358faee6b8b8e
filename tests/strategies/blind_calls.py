"""Calls of primitives with arguments that nobody has thought about, most of them illegal.

Drawn: any primitive on any stage, with axes of this stage or another one, loops or not any more,
thread axes, tensors, texts, and numbers that are no factors. Never drawn: schedules and stages of
another computation, what is no Schedule at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import refcomp
from refcomp.foundation.errors import RefcompError
from refcomp.ir.stmt import THREAD_TAGS
from refcomp.schedule.schedule import Schedule

_Draw = Callable[[Any], Any]

_NUMBERS = (1, 2, 3, 4, 8, 0, -1, 1 << 40, 2.5, None, True)
_TEXTS = ("shared", "local", "global", "warp", "", "auto_unroll_max_step", "unroll_explicit", "x")


def blind_call(draw: _Draw, schedule: Schedule) -> RefcompError | None:
    """One call; what it raised, None when it was legal. Anything but a RefcompError passes."""
    stages = schedule.stages
    stage = schedule[stages[draw(st.integers(0, len(stages) - 1))].op.outputs[0]]
    name, kinds = draw(st.sampled_from(_CALLS))
    args = [_ARGUMENTS[kind](draw, schedule, stage) for kind in kinds]
    owner = schedule if name in ("cache_read", "cache_write", "rfactor") else stage
    try:
        getattr(owner, name)(*args)
    except RefcompError as error:
        return error
    return None


def _axis(draw: _Draw, schedule: Schedule, stage: Any) -> Any:
    if draw(st.integers(0, 3)):
        own = list(stage.leaf_iter_vars) or [None]
        return own[draw(st.integers(0, len(own) - 1))]
    every = [axis for s in schedule.stages for axis in s.axes().values()]
    every += [refcomp.thread_axis("threadIdx.x"), None, "i"]
    return every[draw(st.integers(0, len(every) - 1))]


def _thread(draw: _Draw, schedule: Schedule, stage: Any) -> Any:
    if not draw(st.integers(0, 5)):
        return _axis(draw, schedule, stage)
    extent = draw(st.sampled_from([None, (0, 4), (0, 3)]))
    return refcomp.thread_axis(extent, draw(st.sampled_from([*THREAD_TAGS, "vthread"])))


def _tensor(draw: _Draw, schedule: Schedule, _stage: Any) -> Any:
    made = [tensor for s in schedule.stages for tensor in s.op.outputs]
    return made[draw(st.integers(0, len(made) - 1))]


def _tensors(draw: _Draw, schedule: Schedule, stage: Any) -> Any:
    return [_tensor(draw, schedule, stage) for _ in range(draw(st.integers(0, 2)))]


def _stage(draw: _Draw, schedule: Schedule, stage: Any) -> Any:
    return schedule[_tensor(draw, schedule, stage)]


def _predicate(draw: _Draw, schedule: Schedule, stage: Any) -> Any:
    thread = _thread(draw, schedule, stage)
    number = draw(st.sampled_from([0, 1, -1]))
    return thread == number if hasattr(thread, "var") else number


_ARGUMENTS: dict[str, Callable[[_Draw, Schedule, Any], Any]] = {
    "axis": _axis,
    "thread": _thread,
    "tensor": _tensor,
    "tensors": _tensors,
    "stage": _stage,
    "predicate": _predicate,
    "number": lambda draw, _schedule, _stage: draw(st.sampled_from(_NUMBERS)),
    "text": lambda draw, _schedule, _stage: draw(st.sampled_from(_TEXTS)),
}
_CALLS = tuple(
    (name, tuple(kinds.split()))
    for name, kinds in (
        ("split", "axis number"),
        ("split", "axis number number"),
        ("tile", "axis axis number number"),
        ("fuse", "axis axis"),
        ("fuse", "axis"),
        ("reorder", "axis axis"),
        ("reorder", "axis axis axis"),
        ("vectorize", "axis"),
        ("unroll", "axis"),
        ("parallel", "axis"),
        ("bind", "axis thread"),
        ("bind", "axis thread"),
        ("compute_inline", ""),
        ("compute_root", ""),
        ("compute_at", "stage axis"),
        ("compute_at", "stage axis"),
        ("set_scope", "text"),
        ("cache_read", "tensor text tensors"),
        ("cache_write", "tensor text"),
        ("cache_write", "tensors text"),
        ("rfactor", "tensor axis number"),
        ("rfactor", "tensor axis"),
        ("pragma", "axis text number"),
        ("prefetch", "tensor axis number"),
        ("double_buffer", ""),
        ("storage_align", "axis number number"),
        ("set_store_predicate", "predicate"),
        ("env_threads", "thread"),
        ("tensorize", "axis number"),
    )
)

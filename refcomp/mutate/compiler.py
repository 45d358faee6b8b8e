"""Mutants of the compiler itself: what a schedule's steps do, lowering, and the passes.

Of the functions that compile a subject, those lines that run are edited in places that are drawn,
one at a time, each in a child of its own; there the schedule's steps are replayed, lowered and led
through all passes. Where a program comes out, it is compared with the right one: `mutate.trial`;
what only a step or lowering did may add up in another order, what a pass did must not.

Equivalent is a mutant that makes the same program, after simplification perhaps, or one that agrees
on elements of the field, which never round, for many more inputs than ours compares: another legal
schedule. A mutant that the compiler refuses, or fails on, is no code.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from types import FrameType
from typing import Any

from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import RefcompError
from refcomp.ir.func import PrimFunc
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.lower import lower
from refcomp.mutate.child import Outcome, Tell, run_in_child
from refcomp.mutate.edits import Edit, edits_of
from refcomp.mutate.mutant import COMPILES, RUNS, Mutant, mutant_of
from refcomp.mutate.mutations import draw
from refcomp.mutate.score import check_subject
from refcomp.mutate.subjects import Subject
from refcomp.mutate.trial import MutantTrial
from refcomp.schedule.schedule import replay

ROOMS = ("schedule", "lowering", "passes")
_LIMIT_S, _PROCESSOR_S = 120.0, 5.0
_Lines = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class _Known:
    """A subject, and the lines of the compiler that run for it."""

    subject: Subject
    func: PrimFunc
    lines: _Lines

    def trial(self, room: str) -> MutantTrial:
        return MutantTrial(self.subject, self.func, is_free=room != "passes")


def score_compiler(
    subjects: Sequence[Subject], count: int, seed: int = 0
) -> Iterator[Mutant]:
    """About `count` mutants, where there are as many, as many of each room.
    Raises UserError for a subject whose extents are not constant."""
    for subject in subjects:
        check_subject(subject)
    rng = random.Random(seed)
    known = [_know(subject) for subject in subjects]
    for room in ROOMS:
        trials = [one.trial(room) for one in known]
        for edit in draw(_edits_in(room, known), ceil(count / len(ROOMS)), rng):
            reached = [
                trial
                for trial, one in zip(trials, known, strict=True)
                if (edit.file, edit.line) in one.lines
            ]
            rng.shuffle(reached)
            work = partial(_try, edit, reached)
            yield _mutant(room, edit, run_in_child(work, _LIMIT_S, _PROCESSOR_S))


def _mutant(room: str, edit: Edit, outcome: Outcome) -> Mutant:
    stage = f"{room} ({edit.function.__module__.split('.', 2)[2]})"
    return mutant_of(stage, edit, "the compiler", outcome)


def _know(subject: Subject) -> _Known:
    func, lines = _traced(subject)
    return _Known(subject, func, lines)


def _compiled(subject: Subject) -> PrimFunc:
    """The subject's steps taken again, lowered, after all passes."""
    schedule = replay(subject.schedule.outputs, subject.schedule.steps)
    func = lower(schedule, subject.args, "subject")
    for step in passes_for(subject.kind):
        func = run_pass(step, func)
    return func


def _traced(subject: Subject) -> tuple[PrimFunc, _Lines]:
    """The subject compiled, and which lines of which files ran for it."""
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        file = frame.f_code.co_filename
        if not any(f"/refcomp/{room}/" in file for room in ROOMS):
            return None
        if event == "line":
            lines.add((file, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        func = _compiled(subject)
    finally:
        sys.settrace(before)
    return func, frozenset(lines)


def _edits_in(room: str, known: Sequence[_Known]) -> list[Edit]:
    """All edits in the room of lines that run for any of the subjects."""
    lines = frozenset().union(*(one.lines for one in known))
    modules = [
        m
        for name, m in sorted(sys.modules.items())
        if name.startswith(f"refcomp.{room}.")
    ]
    found = (edit for module in modules for edit in edits_of(module))
    return [edit for edit in found if (edit.file, edit.line) in lines]


def _try(edit: Edit, trials: Sequence[MutantTrial], tell: Tell) -> None:
    """In a child: compiles with the edit, and without it again tells what came out, of the first
    subject with a program that ours tells from the right one, or of the last with another one."""
    reasons: dict[str, str] = {}
    for trial in trials:
        tell({"step": COMPILES})
        try:
            func = _compiled_with(edit, trial.subject)
        except RefcompError as error:
            reasons["refused"] = f"the compiler refuses it ({type(error).__name__})"
            continue
        except Exception as error:
            reasons["refused"] = f"the compiler fails ({type(error).__name__})"
            continue
        if structurally_equal(func, trial.func):
            continue
        tell({"step": RUNS, "subject": trial.subject.name})
        told = trial.difference(func)
        tell({"told": told, "noticed": sorted(trial.noticed_by_tolerances(func))})
        reasons["equivalent"] = "" if told else _equivalence(trial, func)
        if not reasons["equivalent"]:
            return
    if "equivalent" in reasons:
        reasons.pop("refused", None)
    tell(reasons or {"equivalent": "the same programs"})


def _compiled_with(edit: Edit, subject: Subject) -> PrimFunc:
    before = edit.function.__code__
    edit.function.__code__ = edit.code()
    try:
        return _compiled(subject)
    finally:
        edit.function.__code__ = before


def _equivalence(trial: MutantTrial, func: PrimFunc) -> str:
    if trial.is_same(func):
        return "the same program after simplification"
    return (
        ""
        if trial.differs_elsewhere(func)
        else "the same on elements of the field: legal"
    )

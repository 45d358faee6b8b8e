"""Mutants of the compiler itself: of schedule primitives, lowering and the passes.

Only lines that run while a subject is compiled are mutated, at places chosen at random. Each mutant
runs in a child process of its own, which replays the schedule's steps, lowers the result and
applies all passes. `mutate.trial` compares the resulting program with the right one. A mutant of a
primitive or of lowering may change the order of additions; a mutant of a pass may not.

A mutant is equivalent if its program is the same, perhaps only after simplification. It is also
equivalent if its program is another legal schedule: it agrees with the right program on field
elements, which never round, for many more inputs than our comparison takes. A mutant that makes
the compiler refuse or fail is stillborn.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from types import FrameType
from typing import TYPE_CHECKING

from refcomp.driver.pipeline import passes_for
from refcomp.driver.steps import run_pass
from refcomp.foundation.errors import RefcompError
from refcomp.foundation.options import build_options
from refcomp.ir.func import PrimFunc
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.lower import lower
from refcomp.mutate.child import Send, run_in_child
from refcomp.mutate.edits import Edit, edits_of
from refcomp.mutate.loop_ir import check_subject
from refcomp.mutate.mutant import COMPILES, RUNS, Message, Mutant, mutant_of
from refcomp.mutate.mutations import draw
from refcomp.mutate.subjects import Subject
from refcomp.mutate.trial import MutantTrial
from refcomp.schedule.schedule import replay

if TYPE_CHECKING:
    from _typeshed import TraceFunction

ROOMS = ("schedule", "lowering", "passes")
_LIMIT_S = 120.0
_PROCESSOR_S = 5.0
_SAME = "the same programs"


@dataclass(frozen=True, slots=True)
class TracedSubject:
    """A subject, its right program, and the coverage of compiling it."""

    subject: Subject
    func: PrimFunc
    lines: frozenset[tuple[str, int]]  # files of ROOMS and line numbers

    def trial(self, room: str) -> MutantTrial:
        """Return the trial for mutants of the code of `room`."""
        return MutantTrial(self.subject, self.func, is_free=room != "passes")


def score_compiler(
    subjects: Sequence[Subject], count: int, seed: int = 0
) -> Iterator[Mutant]:
    """Yield about `count` mutants, or all, the same number for each room.

    Raises UserError for a subject whose extents are not constant.
    """
    for subject in subjects:
        check_subject(subject)
    rng = random.Random(seed)
    traced = [trace(subject) for subject in subjects]
    for room in ROOMS:
        trials = [one.trial(room) for one in traced]
        for edit in draw(edits_in(room, traced), ceil(count / len(ROOMS)), rng):
            reached = [
                trial
                for trial, one in zip(trials, traced, strict=True)
                if (edit.file, edit.line) in one.lines
            ]
            rng.shuffle(reached)
            yield tried(edit, room, reached)


def tried(edit: Edit, room: str, trials: Sequence[MutantTrial]) -> Mutant:
    """Return the mutant that `edit` makes of a function of `room`."""
    outcome = run_in_child(partial(try_edit, edit, trials), _LIMIT_S, _PROCESSOR_S)
    module = edit.function.__module__.split(".", 2)[2]
    return mutant_of(f"{room} ({module})", edit, "the compiler", outcome)


def trace(subject: Subject) -> TracedSubject:
    """Compile `subject`, and record which lines of ROOMS run."""
    lines: set[tuple[str, int]] = set()

    def on_event(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
        file = frame.f_code.co_filename
        if not any(f"/refcomp/{room}/" in file for room in ROOMS):
            return None
        if event == "line":
            lines.add((file, frame.f_lineno))
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        func = _compile(subject)
    finally:
        sys.settrace(before)
    return TracedSubject(subject, func, frozenset(lines))


def edits_in(room: str, traced: Sequence[TracedSubject]) -> list[Edit]:
    """Return all edits of lines of `room` that run for at least one of the subjects."""
    lines = frozenset().union(*(one.lines for one in traced))
    found = []
    for name, module in sorted(sys.modules.items()):
        if name.startswith(f"refcomp.{room}."):
            edits = edits_of(module)
            found += [edit for edit in edits if (edit.file, edit.line) in lines]
    return found


def try_edit(edit: Edit, trials: Sequence[MutantTrial], send: Send) -> None:
    """Compile the subjects with the edit, and send the `Message`s on the mutant.

    The first subject whose wrong program survives or is killed decides; only a subject whose
    program is equivalent leaves the decision to the next one.
    """
    stillborn = equivalent = ""
    for trial in trials:
        send(Message(step=COMPILES))
        try:
            func = _compile_with(edit, trial.subject)
        except RefcompError as error:
            stillborn = f"the compiler refuses it ({type(error).__name__})"
            continue
        except Exception as error:
            stillborn = f"the compiler fails ({type(error).__name__})"
            continue
        if structurally_equal(func, trial.func):
            continue
        send(Message(step=RUNS, subject=trial.subject.name))
        symptom = trial.difference(func)
        killed_by = sorted(trial.killing_tolerances(func))
        send(Message(symptom=symptom, killed_by=killed_by))
        if symptom:
            return
        equivalent = _equivalence(trial, func)
        if not equivalent:
            return
    if stillborn and not equivalent:
        send(Message(stillborn=stillborn))
    else:
        send(Message(equivalent=equivalent or _SAME))


def _compile(subject: Subject) -> PrimFunc:
    """Replay the subject's steps, lower it, and apply all passes, each of which is verified."""
    schedule = replay(subject.schedule.outputs, subject.schedule.steps)
    func = lower(schedule, subject.args, "subject")
    with build_options(verify_steps=True):
        for step in passes_for(subject.kind):
            func = run_pass(step, func)
    return func


def _compile_with(edit: Edit, subject: Subject) -> PrimFunc:
    with edit.applied():
        return _compile(subject)


def _equivalence(trial: MutantTrial, func: PrimFunc) -> str:
    if trial.is_same_simplified(func):
        return "the same program after simplification"
    if trial.differs_on_more_inputs(func):
        return ""
    return "the same on elements of the field: legal"

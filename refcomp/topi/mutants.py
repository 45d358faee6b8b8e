"""Mutants of operators: of their computes, of what these share, and of their schedules.

Only lines that run while samples are built are mutated (`refcomp.mutate.edits`). A mutant is tried
in a child process, on samples of operators that run its line.

- Ours kills a mutant of a compute if the numpy meaning is not legal for the mutated compute. It
  kills a mutant of a schedule if what the loops compute is not legal for the compute. The tests of
  operators compare in the same way.
- A tolerance kills a mutant if results differ by more than this part of them, where those of the
  right program do not.

A mutant is stillborn if it refuses samples and leaves the others as they are. If it changes others,
any comparison notices the refusal. It is equivalent if it makes the same loops, or if many more
samples have legal results only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from refcomp.foundation.errors import RefcompError, UserError
from refcomp.ir.func import PrimFunc
from refcomp.ir.structure import structurally_equal
from refcomp.lowering.lower import lower
from refcomp.mutate.child import Send, run_in_child
from refcomp.mutate.edits import Edit, edits_of
from refcomp.mutate.mutant import (
    COMPILES,
    RUNS,
    TOLERANCES,
    Message,
    Mutant,
    mutant_of,
    tolerances_exceeded,
)
from refcomp.mutate.mutations import draw
from refcomp.oracle.compare import judge_bounded
from refcomp.oracle.floats.error_bounds import Bounded, bound_errors
from refcomp.oracle.lockstep.interpret import interpret
from refcomp.schedule.schedule import Schedule, create_schedule
from refcomp.te.operation import placeholder, reachable_operations
from refcomp.te.tensor import Tensor
from refcomp.topi.draws import Draws
from refcomp.topi.operator import Operator, find_operator, operator_names
from refcomp.topi.schedules.gpu import schedule_gpu
from refcomp.topi.schedules.llvm import schedule_llvm
from refcomp.topi.shapes import Array

if TYPE_CHECKING:
    from _typeshed import TraceFunction

_Schedules = Callable[[Sequence[Tensor]], Schedule]
_Line = tuple[str, int]  # file and number

_ROOM = "refcomp.topi."
_SCHEDULES = "refcomp.topi.schedules."
# Samples of each operator whose lines are recorded.
_TRACED = 8
# Samples that our comparison tries, and further ones, by which a survivor is found equivalent. The
# tests of operators try 45 samples of each operator, of which a line of a helper has several.
_SAMPLES = 64
_MORE_SAMPLES = 160
_LIMIT_S = 240.0
_PROCESSOR_S = 60.0


@dataclass(frozen=True, slots=True)
class Built:
    """An operator applied to a sample: its te compute and its numpy meaning."""

    feeds: Mapping[Tensor, Array]
    outputs: tuple[Tensor, ...]
    meant: tuple[Array, ...]

    def func(self, schedules: _Schedules) -> PrimFunc:
        """Return the loops of the outputs."""
        args = [*self._read(), *self.outputs]
        return lower(schedules(self.outputs), args, "subject")

    def run(self, func: PrimFunc) -> tuple[Array, ...]:
        """Return the results of the function for the operands."""
        results = [np.full_like(array, 77) for array in self.meant]
        interpret(func, [*self._read().values(), *results])
        return tuple(results)

    def legal(self) -> list[Bounded]:
        """Return the results that are legal for the compute."""
        return bound_errors(self.outputs, self.feeds)

    def _read(self) -> dict[Tensor, Array]:
        """Return the operands that a result needs."""
        read = reachable_operations([output.op for output in self.outputs])
        return {t: array for t, array in self.feeds.items() if t.op in read}


@dataclass(frozen=True, slots=True)
class SampleResults:
    """The results of a program on a sample, and what is legal."""

    results: tuple[Array, ...]
    legal: Sequence[Bounded]
    failure: str = ""  # why a program did not end

    def difference(self) -> str:
        """Return a description of an illegal result; '' if all results are legal."""
        if self.failure or len(self.results) != len(self.legal):
            return self.failure or "another number of results"
        for result, legal in zip(self.results, self.legal, strict=True):
            try:
                report = judge_bounded(result, legal)
            except UserError as error:
                return error.what
            if not report.agrees:
                return str(report)
        return ""

    def tolerances(self) -> set[str]:
        """Return the tolerances by which a result differs from the reference."""
        pairs = list(zip(self.results, self.legal, strict=False))
        if self.failure or any(r.shape != legal.value.shape for r, legal in pairs):
            return set(TOLERANCES)
        with np.errstate(all="ignore"):
            return tolerances_exceeded((r, legal.nearest) for r, legal in pairs)


@dataclass(frozen=True, slots=True)
class SampledOperator:
    """A sample of an operator, on which mutants are tried.

    Attributes:
        operator: its record.
        seed: draws the sample.
        schedules: makes the schedule that is mutated; None if the compute is.
    """

    operator: Operator
    seed: int
    schedules: _Schedules | None = None

    def built(self) -> Built:
        """Return the compute and the meaning of the sample."""
        assert self.operator.sample is not None
        sample = self.operator.sample(Draws(self.seed))
        feeds: dict[Tensor, Array] = {}
        operands: list[Tensor | None] = []
        for place, array in enumerate(sample.operands):
            if array is None:
                operands.append(None)
                continue
            tensor = placeholder(array.shape, array.dtype, name=f"p{place}")
            operands.append(tensor)
            feeds[tensor] = array
        made = self.operator.compute(*operands, **sample.attributes)
        with np.errstate(all="ignore"):
            meant = self.operator.numpy(*sample.operands, **sample.attributes)
        outputs = tuple(made if isinstance(made, list) else [made])
        return Built(
            feeds, outputs, tuple(meant if isinstance(meant, list) else [meant])
        )

    def right(self) -> SampleResults:
        """Return the sample without an edit."""
        built = self.built()
        if self.schedules is None:
            return SampleResults(built.meant, built.legal())
        return SampleResults(built.run(built.func(self.schedules)), built.legal())

    def mutated(self, edit: Edit) -> SampleResults | None:
        """Return the sample with the edit; None if its loops are the same."""
        right = self.built()
        if self.schedules is None:
            func = right.func(create_schedule)
            with edit.applied():
                wrong = self.built()
                if structurally_equal(func, wrong.func(create_schedule)):
                    return None
            return SampleResults(wrong.meant, wrong.legal())
        func = right.func(self.schedules)
        with edit.applied():
            mutant = right.func(self.schedules)
        if structurally_equal(func, mutant):
            return None
        try:
            return SampleResults(right.run(mutant), right.legal())
        except RefcompError as error:
            return SampleResults((), (), failure=error.what)

    def build(self) -> None:
        """Run the code that is mutated."""
        built = self.built()
        if self.schedules is not None:
            self.schedules(built.outputs)


def score_operators(
    count: int, seed: int = 0, names: Sequence[str] = ()
) -> Iterator[Mutant]:
    """Yield about `count` mutants, or all: half of computes, a quarter of each kind of schedules.

    Args:
        count: how many mutants to draw.
        seed: draws them.
        names: the operators; all by default.
    """
    rng = random.Random(seed)
    operators = [find_operator(name) for name in names or operator_names()]
    ways: tuple[tuple[str, _Schedules | None, int], ...] = (
        ("computes", None, -(-count // 2)),
        ("host schedules", schedule_llvm, -(-count // 4)),
        ("GPU schedules", schedule_gpu, -(-count // 4)),
    )
    for way, schedules, share in ways:
        samples = [
            SampledOperator(operator, place, schedules)
            for operator in operators
            if operator.sample is not None
            for place in range(_TRACED)
        ]
        reached = reached_lines(samples)
        edits = [e for e in _edits(schedules is None) if (e.file, e.line) in reached]
        for edit in draw(edits, share, rng):
            owners = reached[edit.file, edit.line]
            rng.shuffle(owners)
            yield tried(edit, way, owners)


def tried(edit: Edit, way: str, owners: Sequence[SampledOperator]) -> Mutant:
    """Return the mutant that `edit` makes, tried on `owners` and more samples of them."""
    work = partial(try_edit, edit, owners)
    outcome = run_in_child(work, _LIMIT_S, _PROCESSOR_S)
    stage = f"{way} ({edit.function.__module__.removeprefix(_ROOM)})"
    return mutant_of(stage, edit, "building samples", outcome)


@dataclass(slots=True)
class _Findings:
    """The findings on a mutant, from some samples."""

    subject: str = ""  # an operator that has other loops
    symptom: str = ""
    refusal: str = ""
    killed_by: set[str] = field(default_factory=set)

    def add(self, edit: Edit, sample: SampledOperator) -> None:
        try:
            trial = sample.mutated(edit)
        except Exception as error:
            self.refusal = f"samples are refused ({type(error).__name__})"
            return
        if trial is None:
            return
        difference = trial.difference()
        if not self.subject or (difference and not self.symptom):
            self.subject = sample.operator.name
        self.symptom = self.symptom or difference
        exceeded = trial.tolerances() - self.killed_by
        self.killed_by |= exceeded and exceeded - sample.right().tolerances()


def try_edit(edit: Edit, owners: Sequence[SampledOperator], send: Send) -> None:
    """Try the mutant of `edit` on samples, and send the `Message`s on it."""
    names = list(dict.fromkeys(owner.operator.name for owner in owners))
    firsts = {owner.operator.name: owner for owner in owners}
    further = [
        replace(firsts[name], seed=place)
        for place in range(_TRACED, _TRACED + _MORE_SAMPLES)
        for name in names
    ]
    samples = [*owners, *further]
    found = _Findings()
    send(Message(step=COMPILES))
    for sample in samples[:_SAMPLES]:
        found.add(edit, sample)
        if found.symptom and found.killed_by == set(TOLERANCES):
            break
    if not found.subject:
        refused = Message(stillborn=found.refusal)
        send(refused if found.refusal else Message(equivalent="the same loops"))
        return
    if found.refusal and not found.symptom:
        # Other samples have become programs. Any test notices that this one did not.
        found.symptom = found.refusal
        found.killed_by |= set(TOLERANCES)
    killed_by = sorted(found.killed_by)
    send(Message(step=RUNS, subject=found.subject, symptom=found.symptom))
    send(Message(killed_by=killed_by))
    if found.symptom or found.killed_by:
        return
    more = _Findings()
    for sample in samples[_SAMPLES : _SAMPLES + _MORE_SAMPLES]:
        more.add(edit, sample)
        if more.symptom:
            return
    send(Message(equivalent="the results of many more samples are legal"))


def reached_lines(
    samples: Iterable[SampledOperator],
) -> dict[_Line, list[SampledOperator]]:
    """Return, for each line of topi, the samples that run it when they are built."""
    reached: dict[_Line, list[SampledOperator]] = {}
    for sample in samples:
        for line in _lines_of(sample):
            reached.setdefault(line, []).append(sample)
    return reached


def _lines_of(sample: SampledOperator) -> set[_Line]:
    lines: set[_Line] = set()

    def on_event(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
        file = frame.f_code.co_filename
        if "/refcomp/topi/" not in file:
            return None
        if event == "line":
            lines.add((file, frame.f_lineno))
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        sample.build()
    finally:
        sys.settrace(before)
    return lines


def _edits(of_computes: bool) -> Iterator[Edit]:
    """Yield the edits of computes, or of schedules, in files that are imported."""
    own = {__name__, f"{_ROOM}draws", f"{_ROOM}operator", f"{_ROOM}sources"}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(_ROOM) or name in own:
            continue
        if name.startswith(_SCHEDULES) == of_computes:
            continue
        for edit in edits_of(module):
            function = edit.function.__name__
            # Meanings and samples judge; they are not judged.
            is_sample = function.lstrip("_").startswith("sample")
            if not function.endswith("_numpy") and not is_sample:
                yield edit

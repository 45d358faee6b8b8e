"""Mutants of the templates and tables that spell the output, run as machine code.

Each mutant runs in a child of its own, which prints every computation of `mutate.operations` again.
Computations whose text changes are compiled and run, until all comparisons have killed the mutant.

Our comparison checks results against the interpreter: bit for bit, or by an error bound where the
last digits are free. On the host it also detects writes beyond an array and results that depend on
memory that is not the program's. Tolerances compare the same results as numpy's assert_allclose
does. A crash, an endless loop and a failed call are kills by all comparisons.

A mutant is equivalent if it prints the same texts, has the same machine code, or computes the same
bits on more numbers, random bits among them. It is stillborn if the printer or a tool refuses it.
Needs: the tools of the target. No OpenCL and no parallel region may have run in this process.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from refcomp.foundation.errors import CompilerBug, Unsupported
from refcomp.foundation.private_folder import private_folder
from refcomp.mutate.child import Outcome, Send, run_in_child
from refcomp.mutate.expected_results import ExpectedResults
from refcomp.mutate.host_runs import Ran
from refcomp.mutate.mutant import RUNS, TOLERANCES, Message, Mutant, mutant_of
from refcomp.mutate.mutations import draw
from refcomp.mutate.operations import Operations, operations
from refcomp.mutate.outputs import OUTPUTS, Output
from refcomp.mutate.spellings import SpellingEdit, spelling_edits

# Programs to run after which a mutant that only our comparison kills is done.
_MAX_RUNS = 3
_RIGHT = "right"
_Code = TypeVar("_Code")  # the compiled code of an output


def score_templates(
    target: str,
    count: int,
    seed: int = 0,
    chosen: Sequence[Operations] | None = None,
    without: Collection[str] = (),
) -> Iterator[Mutant]:
    """Yield at most `count` mutants of the templates of `target`, one of OUTPUTS.

    They run on the computations `chosen`, by default all `operations`. Files of the names `without`
    are left right. Raises ToolchainError if tools or the device are missing; CompilerBug if a
    comparison kills a right program.
    """
    with private_folder() as folder:
        output = OUTPUTS[target](folder)
        known = spelling_edits(*output.folders)
        places = [edit for edit in known if edit.file not in without]
        edits = draw(places, count, random.Random(seed))
        trial = template_trial(output, chosen or operations(target))
        for edit in edits:
            outcome = run_in_child(partial(trial.run, edit), output.limit_s)
            yield mutant_of(f"templates of {target}", edit, "the printer", outcome)


def template_trial(
    output: Output[_Code], computations: Sequence[Operations]
) -> TemplateTrial[_Code]:
    """Return the trial of mutants on `computations`, and check it on the right programs."""
    expected = [ExpectedResults(computation) for computation in computations]
    texts = output.print_right([one.func for one in expected])
    trial = TemplateTrial(output, tuple(zip(expected, texts, strict=True)))
    check_right(run_in_child(trial.run_right, len(expected) * output.limit_s))
    return trial


def check_right(outcome: Outcome) -> None:
    """Raise CompilerBug if a comparison has killed a right program."""
    if outcome.messages != (_RIGHT,):
        raise CompilerBug(f"a comparison kills right programs: {outcome}")


@dataclass(frozen=True, slots=True)
class TemplateTrial(Generic[_Code]):
    """All computations that mutants run on."""

    output: Output[_Code]
    right: tuple[tuple[ExpectedResults, str], ...]  # with the right text

    def run_right(self, send: Send) -> None:
        """Send `_RIGHT` if our comparison accepts all right programs."""
        for expected, _ in self.right:
            source = self.output.printed(expected.func)
            code = self.output.compiled(source, expected.func)
            difference = expected.difference(self._ran(expected, code))
            if difference:
                raise CompilerBug(f"{expected.name}: {difference}")
        send(_RIGHT)

    def run(self, edit: SpellingEdit, send: Send) -> None:
        """Run the computations whose texts the edit changes; send the `Message`s on the mutant."""
        edit.apply(self.output.folders)
        symptom = stillborn = ""
        killed_by: set[str] = set()
        runs = 0
        survived: list[tuple[ExpectedResults, _Code]] = []
        for expected, text in self.right:
            try:
                source = self.output.printed(expected.func)
                if source.text == text:
                    continue
                code = self.output.compiled(source, expected.func)
            except Exception as error:  # jinja, the printer's tables, tools and drivers
                stillborn = f"no tool takes it ({type(error).__name__})"
                continue
            send(Message(step=RUNS, subject=expected.name))
            try:
                ran = self._ran(expected, code)
            except Unsupported as error:
                stillborn = f"nothing here runs it ({error.what})"
                continue
            runs += 1
            killed_by |= expected.killing_tolerances(ran)
            difference = expected.difference(ran)
            symptom = symptom or difference
            if not difference:
                survived.append((expected, code))
            send(Message(symptom=symptom, killed_by=sorted(killed_by)))
            if symptom and (runs >= _MAX_RUNS or killed_by.issuperset(TOLERANCES)):
                return
        if runs == 0 and stillborn:
            send(Message(stillborn=stillborn))
        elif runs == 0:
            send(Message(equivalent="the same texts"))
        elif not symptom:
            send(Message(equivalent=self._equivalence(survived)))

    def _ran(self, expected: ExpectedResults, code: _Code) -> Ran:
        try:
            return self.output.run(code, expected.func, expected.arrays())
        except Unsupported:
            raise
        except Exception as error:
            return Ran((), f"it raises {type(error).__name__}")

    def _equivalence(self, survived: Sequence[tuple[ExpectedResults, _Code]]) -> str:
        if all(self.output.is_right_code(code, one.func) for one, code in survived):
            return "the same machine code"
        for expected, code in survived:
            run = partial(self.output.run, code, expected.func)
            if expected.differs_on_more_inputs(run):
                return ""
        return "the same bits, on many more numbers, too"

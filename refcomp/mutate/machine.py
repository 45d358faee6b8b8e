"""Mutants of what spells the output: templates and their tables, built and run as machine code.

One place is edited at a time, in a child; there every computation of `mutate.operations` is printed
again. Those whose text is another one are compiled and run, until all policies have noticed. Ours
compares with the interpreter, bit for bit, where every operation has one result, by the bound of
each element where the last digits are free; on the host it also tells what writes beyond an array,
and what hangs on memory that is not the program's. Tolerances compare the same numbers (numpy's
assert_allclose); a crash, an endless loop and a failed call count as noticed by all.

Equivalent is what prints the same texts, makes the same machine code, or gives the same bits on
more numbers, random bits among them. What the printer or the tools refuse is no code.
Needs: the tools of the target; no OpenCL and no parallel region may have run in this process.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from refcomp.foundation.errors import CompilerBug, Unsupported
from refcomp.foundation.private_folder import private_folder
from refcomp.mutate.child import Outcome, Tell, run_in_child
from refcomp.mutate.host_runs import Ran
from refcomp.mutate.mutant import POLICIES, RUNS, Mutant, mutant_of
from refcomp.mutate.mutations import draw
from refcomp.mutate.operations import Operations, operations
from refcomp.mutate.outputs import OUTPUTS, Output
from refcomp.mutate.right_results import RightResults
from refcomp.mutate.spellings import SpellingEdit, spelling_edits

_MOST_RUNS = (
    3  # of programs that ours has told apart, for tolerances to notice them, too
)


def score_spelling(
    target: str, count: int, seed: int = 0, chosen: Sequence[Operations] | None = None
) -> Iterator[Mutant]:
    """At most `count` mutants of the spelling of `target`, one of OUTPUTS, the kinds in turn, tried
    on all `operations` of it, or on those `chosen`. ToolchainError where its tools or its device
    are missing; CompilerBug where a right program is told from itself."""
    with private_folder() as folder:
        output = OUTPUTS[target](folder)
        edits = draw(list(spelling_edits(*output.folders)), count, random.Random(seed))
        right = [RightResults(one) for one in chosen or operations(target)]
        texts = output.right_texts([one.func for one in right])
        trial = _Trial(output, tuple(zip(right, texts, strict=True)))
        _check(run_in_child(trial.run_right, len(right) * output.limit_s))
        for edit in edits:
            outcome = run_in_child(partial(trial.run, edit), output.limit_s)
            where = f"templates of {target}"
            yield mutant_of(where, edit, "the printer", outcome)


def _check(outcome: Outcome) -> None:
    """No alarm may be false: the right programs are held to the same comparisons."""
    if outcome.told != ("well",):
        raise CompilerBug(f"the right programs are told from themselves: {outcome}")


@dataclass(frozen=True, slots=True)
class _Trial:
    """All computations, each with its right text."""

    output: Output
    right: tuple[tuple[RightResults, str], ...]

    def run_right(self, tell: Tell) -> None:
        """In a child: tells 'well' if ours, and every tolerance, takes all that is right."""
        for one, _ in self.right:
            code = self.output.compiled(self.output.printed(one.func), one.func)
            ran = self._ran(one, code)
            if one.told(ran):
                raise CompilerBug(f"{one.name}: {one.told(ran)}")
        tell("well")

    def run(self, edit: SpellingEdit, tell: Tell) -> None:
        """In a child: what becomes of the computations whose texts are others with the edit."""
        edit.apply(self.output.folders)
        told, noticed, runs, refused = "", set[str](), 0, ""
        quiet: list[tuple[RightResults, Any]] = []
        for one, text in self.right:
            try:
                code = self._compiled(one, text)
            except Exception as error:  # jinja, the printer's tables, tools and drivers
                refused = f"no tool takes it ({type(error).__name__})"
                continue
            if code is None:
                continue
            tell({"step": RUNS, "subject": one.name})
            try:
                ran = self._ran(one, code)
            except Unsupported as error:
                refused = f"nothing here runs it ({error.what})"
                continue
            verdict = one.told(ran)
            noticed |= one.noticed_by_tolerances(ran)
            told, runs = told or verdict, runs + 1
            quiet += [] if verdict else [(one, code)]
            tell({"told": told, "noticed": sorted(noticed)})
            if told and (runs >= _MOST_RUNS or noticed.issuperset(POLICIES[1:])):
                return
        if runs == 0:
            tell({"refused": refused} if refused else {"equivalent": "the same texts"})
        elif not told:
            tell({"equivalent": self._equivalence(quiet)})

    def _ran(self, one: RightResults, code: Any) -> Ran:
        try:
            return self.output.run(code, one.func, one.arrays())
        except Unsupported:
            raise
        except Exception as error:
            return Ran((), f"it raises {type(error).__name__}")

    def _compiled(self, one: RightResults, text: str) -> Any:
        """None where the text is the same."""
        source = self.output.printed(one.func)
        return None if source.text == text else self.output.compiled(source, one.func)

    def _equivalence(self, quiet: Sequence[tuple[RightResults, Any]]) -> str:
        if all(self.output.is_right_code(code, one.func) for one, code in quiet):
            return "the same machine code"
        differs = any(
            one.differs_elsewhere(partial(self.output.run, code, one.func))
            for one, code in quiet
        )
        return "" if differs else "the same bits, on many more numbers, too"

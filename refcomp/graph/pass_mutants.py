"""Mutants of the passes over graphs, tried on examples and on random graphs.

Only lines that run while a pass works on a trial are mutated (`refcomp.mutate.edits`). A trial is
the Before of the pass's docstring, or a random graph. A mutant is tried in a child process, on
trials that run its line.

- Ours kills a mutant if it makes a graph that is illegal or means something else, or if it does not
  turn the docstring's Before into its After.
- A tolerance kills a mutant if outputs differ by more than this part of them.

A mutant is stillborn if it fails on some trial and makes the right graphs of all others. A mutant
that ours does not kill is tried on further random graphs, which ours does not see. It survives if
one of them shows that it is wrong. Otherwise it is equivalent: it makes the same graphs, or others
of the same meaning, as a pass does that changes less than it could.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import chain, islice
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

import numpy as np

from refcomp.foundation.errors import RefcompError
from refcomp.graph.equivalence import EQUAL, UNKNOWN, difference
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.graph import Array, Graph
from refcomp.graph.optimize import OPTIONAL_STEPS, STEPS, GraphStep
from refcomp.graph.parser import parse_graph
from refcomp.graph.random_graphs import random_graph
from refcomp.graph.verify import verify_graph
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

if TYPE_CHECKING:
    from _typeshed import TraceFunction

_Line = tuple[str, int]  # file and number

_ROOM = "refcomp.graph.passes."
_GRAPHS = 400  # random ones, on which lines are recorded
_TRIALS = 40  # of a mutant that change a graph, and as many others
# Further graphs, which decide whether a mutant that ours does not kill is equivalent.
_MORE_GRAPHS = 200
_MORE_SEED = 10**7
_MORE_TRIALS = 400
_LIMIT_S = 60.0
_PROCESSOR_S = 30.0
_EXAMPLE = re.compile(r"(?m)^(?P<title>\w+)::\n\n(?P<text>(?:    .*\n|\n)+)")


def docstring_example(module: ModuleType, title: str) -> str:
    """Return the graph text under `title` (Before, After) in a module's docstring."""
    docstring = ast.get_docstring(ast.parse(inspect.getsource(module))) or ""
    found = {m["title"]: m["text"] for m in _EXAMPLE.finditer(docstring + "\n")}
    return textwrap.dedent(found[title]).strip()


@dataclass(frozen=True, slots=True, eq=False)
class PassTrial:
    """A pass and a graph that it works on.

    Attributes:
        step: the pass.
        graph: the graph.
        feeds: an array for each input; empty for the docstring's example.
        after: the text that the pass must make; empty for random graphs.
        right: what the pass makes without an edit.
    """

    step: GraphStep
    graph: Graph
    feeds: Mapping[str, Array]
    after: str = ""
    right: Graph = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", self.changed())

    def changed(self) -> Graph:
        """Return what the pass makes of the graph."""
        with np.errstate(all="ignore"):
            return self.step.apply(self.graph)

    def symptom(self, changed: Graph) -> str:
        """Return why a graph is not one that the pass may make; '' if it is."""
        try:
            verify_graph(changed)
        except RefcompError as error:
            return f"an illegal graph: {error.what}"
        if self.after:
            return EQUAL if str(changed) == self.after else "another After"
        try:
            text = difference(
                self.graph, changed, self.feeds, rounding=self.step.rounding
            )
        except Exception as error:
            return f"a graph that fails: {type(error).__name__}"
        return EQUAL if text == UNKNOWN else text

    def tolerances(self, changed: Graph) -> set[str]:
        """Return the tolerances by which outputs differ."""
        if self.after:
            return set()
        try:
            with np.errstate(all="ignore"):
                expected = evaluate_graph(self.graph, self.feeds)
                actual = evaluate_graph(changed, self.feeds)
                if [a.shape for a in expected] != [a.shape for a in actual]:
                    return set(TOLERANCES)
                return tolerances_exceeded(zip(actual, expected, strict=True))
        except Exception:
            return set(TOLERANCES)


def score_graph_passes(count: int, seed: int = 0) -> Iterator[Mutant]:
    """Yield about `count` mutants, or all, the same number for each file of passes.

    Args:
        count: how many mutants to draw.
        seed: draws them.
    """
    rng = random.Random(seed)
    reached = reached_lines(all_trials())
    more = further_trials(range(_MORE_SEED, _MORE_SEED + _MORE_GRAPHS))
    by_module: dict[str, list[Edit]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_ROOM):
            edits = [e for e in edits_of(module) if (e.file, e.line) in reached]
            by_module[name] = edits
    share = -(-count // max(len(by_module), 1))
    for edits in by_module.values():
        for edit in draw(edits, share, rng):
            yield tried(edit, reached[edit.file, edit.line], more)


def all_trials() -> Iterator[PassTrial]:
    """Yield each pass with its example and with each of the random graphs."""
    steps = list({step.name: step for step in (*OPTIONAL_STEPS, *STEPS)}.values())
    for step in steps:
        module = import_module(f"{_ROOM}{step.name}")
        before = parse_graph(docstring_example(module, "Before"))
        yield PassTrial(step, before, {}, docstring_example(module, "After"))
    for seed in range(_GRAPHS):
        drawn = random_graph(seed)
        for step in steps:
            yield PassTrial(step, drawn.graph, drawn.feeds)


def further_trials(seeds: Iterable[int]) -> dict[str, list[PassTrial]]:
    """Return trials of each pass, by its name, on the random graphs of `seeds`."""
    drawn = [random_graph(seed) for seed in seeds]
    return {
        step.name: [PassTrial(step, one.graph, one.feeds) for one in drawn]
        for step in (*OPTIONAL_STEPS, *STEPS)
    }


def reached_lines(trials: Iterable[PassTrial]) -> dict[_Line, list[PassTrial]]:
    """Return which trials run each line of a pass, examples first."""
    reached: dict[_Line, list[PassTrial]] = {}
    for trial in trials:
        for line in _lines_of(trial):
            reached.setdefault(line, []).append(trial)
    return reached


def _lines_of(trial: PassTrial) -> set[_Line]:
    lines: set[_Line] = set()

    def on_event(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
        file = frame.f_code.co_filename
        if "/refcomp/graph/passes/" not in file:
            return None
        if event == "line":
            lines.add((file, frame.f_lineno))
        return on_event

    before = sys.gettrace()
    sys.settrace(on_event)
    try:
        trial.changed()
    finally:
        sys.settrace(before)
    return lines


def tried(
    edit: Edit, owners: Sequence[PassTrial], more: Mapping[str, Sequence[PassTrial]]
) -> Mutant:
    """Return the mutant that `edit` makes.

    Args:
        edit: the edit.
        owners: trials that run its line.
        more: further trials of each pass, which decide whether it is equivalent.
    """
    work = partial(try_edit, edit, _chosen(owners), more)
    outcome = run_in_child(work, _LIMIT_S, _PROCESSOR_S)
    stage = edit.function.__module__.removeprefix(_ROOM)
    return mutant_of(stage, edit, "the pass", outcome)


def _chosen(owners: Sequence[PassTrial]) -> list[PassTrial]:
    """Return the examples, and trials from all random graphs, those first that change one."""
    examples = [trial for trial in owners if trial.after]
    others = [trial for trial in owners if not trial.after]
    fires = [trial for trial in others if trial.right is not trial.graph]
    rest = [trial for trial in others if trial.right is trial.graph]
    return [*examples, *fires[:_TRIALS], *rest[:_TRIALS]]


@dataclass(slots=True)
class _Seen:
    """The findings on a mutant, from several trials."""

    subject: str = ""  # a pass that makes another graph
    symptom: str = ""
    failure: str = ""
    killed_by: set[str] = field(default_factory=set)

    def add(self, edit: Edit, trial: PassTrial) -> None:
        try:
            with edit.applied():
                changed = trial.changed()
        except Exception as error:
            self.failure = f"the pass fails ({type(error).__name__})"
            return
        if _is_same(trial.right, changed):
            return
        symptom = trial.symptom(changed)
        if not self.subject or (symptom and not self.symptom):
            self.subject = trial.step.name
        self.symptom = self.symptom or symptom
        if symptom:
            own = trial.tolerances(trial.right)
            self.killed_by |= trial.tolerances(changed) - own


def try_edit(
    edit: Edit,
    trials: Sequence[PassTrial],
    more: Mapping[str, Sequence[PassTrial]],
    send: Send,
) -> None:
    """Try the mutant of `edit` on trials, and send the `Message`s on it."""
    seen = _Seen()
    send(Message(step=COMPILES))
    for trial in trials:
        seen.add(edit, trial)
        if seen.symptom and seen.killed_by == set(TOLERANCES):
            break
    if seen.failure and not seen.subject:
        send(Message(stillborn=seen.failure))
        return
    if seen.failure and not seen.symptom:
        # It made graphs of other trials. Any test notices that it failed on this one.
        seen.symptom = seen.failure
        seen.killed_by |= set(TOLERANCES)
    send(Message(step=RUNS, subject=seen.subject or trials[0].step.name))
    send(Message(symptom=seen.symptom, killed_by=sorted(seen.killed_by)))
    if seen.symptom:
        return
    names = dict.fromkeys(trial.step.name for trial in trials)
    further = _Seen()
    # One trial of each pass in turn: a helper such as `pointwise` belongs to many passes.
    rounds = zip(*(more[name] for name in names), strict=True)
    for trial in islice(chain.from_iterable(rounds), _MORE_TRIALS):
        further.add(edit, trial)
        if further.symptom or further.failure:
            return
    is_same = not seen.subject and not further.subject
    other = "other graphs of the same meaning"
    send(Message(equivalent="the same graphs" if is_same else other))


def _is_same(one: Graph, other: Graph) -> bool:
    """Return True for equal texts and equal constants."""
    if one is other:
        return True
    if str(one) != str(other):
        return False
    pairs = zip(one.constants.values(), other.constants.values(), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

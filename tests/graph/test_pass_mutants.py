"""Mutants of graph passes: which are noticed, and why others are not wrong."""

import sys
from functools import partial
from importlib import import_module

import pytest

from refcomp.graph import pass_mutants
from refcomp.graph.optimize import OPTIONAL_STEPS, STEPS
from refcomp.graph.pass_mutants import (
    all_trials,
    docstring_example,
    further_trials,
    reached_lines,
    score_graph_passes,
    tried,
)
from refcomp.mutate.edits import edits_of
from refcomp.mutate.mutant import COMPARISONS, MORE_DATA, OURS

PASSES = "refcomp.graph.passes"


@pytest.fixture(scope="module")
def reached():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pass_mutants, "_GRAPHS", 60)
        return reached_lines(all_trials())


@pytest.fixture(scope="module")
def further():
    """Trials that decide on the mutants that ours does not kill; made once for all tests."""
    return further_trials(range(900, 930))


@pytest.fixture
def outcome(reached, further):
    """Return a function from a module and a change to the `outcome_of` the mutant."""
    return partial(outcome_of, reached, further)


def outcome_of(reached, further, module: str, change: str):
    """The verdict on the first mutant of a module whose text has `change`."""
    (edit, *_) = [
        edit
        for edit in edits_of(sys.modules[f"{PASSES}.{module}"])
        if change in edit.change and (edit.file, edit.line) in reached
    ]
    return tried(edit, reached[edit.file, edit.line], further)


def test_each_pass_has_an_example() -> None:
    for step in (*STEPS, *OPTIONAL_STEPS):
        module = import_module(f"{PASSES}.{step.name}")
        for title in ("Before", "After"):
            assert docstring_example(module, title).startswith("graph net(")


def test_all_passes_are_reached(reached) -> None:
    files = {file.rsplit("/", 1)[1] for file, _ in reached}
    assert {f"{step.name}.py" for step in (*STEPS, *OPTIONAL_STEPS)} <= files
    # Examples come first: they are the smallest.
    assert all(trials[0].after or not any(t.after for t in trials) for trials in reached.values())


def test_wrong_weights_are_noticed_by_all(outcome) -> None:
    mutant = outcome("scaled_weights", "weights[rows].astype(np.float64) + scales[rows]")
    assert mutant.is_wrong and mutant.killed_by == set(COMPARISONS)
    assert (mutant.subject, mutant.stage) == ("fold_scale_axis", "scaled_weights")


def test_an_illegal_graph_is_noticed(outcome) -> None:
    mutant = outcome("remove_dead_nodes", "needed |= set(node.reads)  ->  nothing")
    assert mutant.is_wrong and OURS in mutant.killed_by
    assert mutant.symptom.startswith("an illegal graph: ")


def test_what_fails_and_what_changes_nothing(outcome) -> None:
    failing = outcome("fold_scale_axis", "self.graph = graph  ->  nothing")
    assert failing.stillborn == "the pass fails (AttributeError)"
    same = outcome("merge_equal_nodes", "(reads, node_key(node))")
    assert same.equivalent == "the same graphs"


def test_a_superfluous_node_means_the_same(outcome) -> None:
    more = outcome("cancel_layout_changes", "output in self.graph.outputs  ->  True")
    assert more.equivalent == "other graphs of the same meaning"


@pytest.mark.search
def test_a_sample_is_noticed(request, record_property, monkeypatch) -> None:
    """One of twenty may survive, and one of a smaller sample: the kept scores name one.

    With --nightly, all mutants are tried, on 400 random graphs; by day 32, on 150.
    """
    count = 10**6
    if not request.config.getoption("--nightly"):
        count = 32
        monkeypatch.setattr(pass_mutants, "_GRAPHS", 150)
    mutants = list(score_graph_passes(count, seed=1))
    wrong = [mutant for mutant in mutants if mutant.is_wrong]
    noticed = sum(OURS in mutant.killed_by for mutant in wrong)
    assert len(mutants) >= 32 and wrong
    assert len(wrong) - noticed <= max(1, 0.05 * len(wrong))
    record_property("summary", f"{len(mutants)} mutants, {len(wrong)} wrong, {noticed} noticed")


def test_what_only_further_graphs_show_survives(reached) -> None:
    """The example alone does not show that some constants are not known."""
    (edit,) = [
        edit
        for edit in edits_of(sys.modules[f"{PASSES}.fold_constants"])
        if edit.change == "all  ->  any"
    ]
    examples = [trial for trial in reached[edit.file, edit.line] if trial.after]
    more = further_trials(range(100))
    mutant = tried(edit, examples, more)
    assert mutant.is_wrong and not mutant.killed_by
    assert mutant.reason == MORE_DATA
    # Random graphs among the trials do: the pass fails on one.
    assert tried(edit, reached[edit.file, edit.line], more).stillborn

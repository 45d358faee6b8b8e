"""Edits of the compiler: what they make is judged, and what makes no other code is told apart."""

import pytest

from refcomp.mutate.compiler import ROOMS, edits_in, score_compiler, trace, tried, try_edit
from refcomp.mutate.mutant import COMPARISONS, OURS
from refcomp.mutate.subjects import subjects


@pytest.fixture(scope="module")
def known():
    return [trace(s) for s in subjects() if s.name in ("blur", "tiled transpose")]


def _tried(known, room, function, change):
    (edit, *_) = [
        edit
        for edit in edits_in(room, known)
        if edit.function.__qualname__ == function and change in edit.change
    ]
    trials = [one.trial(room) for one in known]
    return tried(edit, room, trials)


def test_a_sample_is_noticed(request, record_property):
    count = 1_500 if request.config.getoption("--nightly") else 48
    mutants = list(score_compiler(subjects(), count, seed=1))
    wrong = [mutant for mutant in mutants if mutant.is_wrong]
    assert len(mutants) >= count and len(wrong) >= count // 48
    noticed = {p: sum(p in mutant.killed_by for mutant in wrong) for p in COMPARISONS}
    assert noticed[OURS] >= 0.95 * len(wrong)
    assert noticed[OURS] >= max(noticed.values())
    record_property(
        "summary",
        f"{len(mutants)} edits of the compiler, {len(wrong)} of them make wrong code; "
        + ", ".join(f"{count} noticed by {policy}" for policy, count in noticed.items()),
    )


def test_a_wrong_origin_is_noticed(known):
    mutant = _tried(known, "lowering", "_element", "index - origin  ->  origin - index")
    assert mutant.is_wrong and "out of range" in mutant.symptom
    assert mutant.killed_by == set(COMPARISONS)
    assert mutant.stage == "lowering (nest)"


def test_a_split_that_reads_its_loops_the_wrong_way_is_noticed(known):
    change = "values[relation.outer] * step  ->  values[relation.outer] + step"
    mutant = _tried(known, "schedule", "root_indices", change)
    assert OURS in mutant.killed_by and mutant.subject in ("blur", "tiled transpose")


def test_a_lost_barrier_is_noticed_by_ours_alone(known):
    edits = [e for e in edits_in("passes", known) if "insert_barriers" in e.file]
    trials = [one.trial("passes") for one in known]
    found = (tried(edit, "passes", trials) for edit in edits)
    assert any("A.shared" in mutant.symptom and mutant.killed_by == {OURS} for mutant in found)


def test_what_is_refused_and_what_changes_nothing(known):
    gpu = [one for one in known if one.subject.name == "tiled transpose"]
    refused = _tried(gpu, "schedule", "bind", "thread.kind == THREAD  ->  thread.kind !=")
    assert refused.stillborn == "the compiler refuses it (UserError)"
    fails = _tried(known, "schedule", "resolve", "(own, args)  ->  (args, own)")
    assert fails.stillborn == "the compiler fails (TypeError)"
    same = _tried(known, "lowering", "_workspace", "dim.value < 1  ->  dim.value <= 1")
    assert same.equivalent == "the same programs"
    assert not any(mutant.is_wrong for mutant in (refused, fails, same))


def test_functions_have_their_own_code_again(known):
    (edit, *_) = [
        e for e in edits_in("schedule", known) if e.change == "(own, args)  ->  (args, own)"
    ]
    before = edit.function.__code__
    told = []
    try_edit(edit, [one.trial("schedule") for one in known], told.append)
    assert told[-1] == {"stillborn": "the compiler fails (TypeError)"}
    assert edit.function.__code__ is before


def test_only_lines_that_run_are_edited(known):
    lines = frozenset().union(*(one.lines for one in known))
    for room in ROOMS:
        edits = edits_in(room, known)
        assert edits and all((edit.file, edit.line) in lines for edit in edits)
        assert all(f"/refcomp/{room}/" in edit.file for edit in edits)

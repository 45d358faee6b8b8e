"""Mutants of operators: what is noticed, what is equivalent, and what refuses samples."""

import pytest

from refcomp.mutate.mutant import COMPARISONS, OURS
from refcomp.topi import mutants
from refcomp.topi.mutants import SampledOperator, reached_lines, score_operators, tried
from refcomp.topi.operator import find_operator
from refcomp.topi.schedules.gpu import schedule_gpu

pytestmark = pytest.mark.search


def _tried(name, function, change, schedules=None):
    """Return the mutant of an operator that the first edit of this text makes."""
    operator = find_operator(name)
    reached = reached_lines(SampledOperator(operator, seed, schedules) for seed in range(8))
    (edit, *_) = [
        edit
        for edit in mutants._edits(of_computes=schedules is None)
        if edit.function.__name__ == function and change in edit.change
    ]
    return tried(edit, "way", reached[edit.file, edit.line])


def test_a_sample_is_noticed(record_property):
    made = list(score_operators(16, seed=5, names=["softmax", "concatenate", "gemm", "clip"]))
    wrong = [mutant for mutant in made if mutant.is_wrong]
    assert len(made) >= 16 and wrong
    noticed = {p: sum(p in mutant.killed_by for mutant in wrong) for p in COMPARISONS}
    assert noticed[OURS] == len(wrong)
    record_property("summary", f"{len(made)} mutants of operators, {len(wrong)} wrong: {noticed}")


def test_a_wrong_compute_is_noticed() -> None:
    mutant = _tried("clip", "clip", "maths.maximum  ->  maths.minimum")
    assert mutant.is_wrong and mutant.subject == "clip"
    assert mutant.stage == "way (elementwise.activations)"
    assert OURS in mutant.killed_by and "wrong" in mutant.symptom


def test_another_legal_schedule_is_equivalent() -> None:
    mutant = _tried("relu", "bind_elements", "handle.bind(block, ", schedule_gpu)
    assert mutant.equivalent == "the results of many more samples are legal"
    assert not mutant.is_wrong


def test_an_edit_that_refuses_samples_is_no_program() -> None:
    mutant = _tried("sigmoid", "require_float", "not data.dtype.is_float  ->  not not")
    assert mutant.stillborn == "samples are refused (UserError)" and not mutant.is_wrong


def test_the_same_loops_are_equivalent() -> None:
    mutant = _tried("add", "combine_elements", "require_tensor(a, name)  ->  nothing")
    assert mutant.equivalent == "the same loops"
    assert not mutant.is_wrong

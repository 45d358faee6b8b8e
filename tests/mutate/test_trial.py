"""What tells wrong programs from a right one, and what is the same."""

import pytest

from refcomp.ir.parser import parse_func
from refcomp.ir.printer import print_func
from refcomp.mutate.loop_ir import LOWERING, stages_of, tried
from refcomp.mutate.mutations import mutations_of
from refcomp.mutate.subjects import subjects
from refcomp.mutate.trial import MutantTrial


def trial_of(name, stage=LOWERING, *, is_free=True):
    (subject,) = [s for s in subjects() if s.name == name]
    return MutantTrial(subject, dict(stages_of(subject))[stage], is_free)


def _changed(trial, old, new):
    text = print_func(trial.func)
    assert old in text
    return parse_func(text.replace(old, new))


@pytest.mark.parametrize("subject", subjects(), ids=lambda s: s.name)
def test_the_right_program_is_not_noticed(subject):
    for name, func in stages_of(subject):
        trial = MutantTrial(subject, func, name == LOWERING)
        assert trial.difference(func) == ""
        assert not trial.killing_tolerances(func)
        assert trial.is_same_simplified(func) and trial.makes_same_writes(func)
        assert not trial.differs_on_more_inputs(func)


def test_a_wrong_program_is_noticed_by_all():
    trial = trial_of("transpose")
    wrong = _changed(trial, "0.37213f32", "0.5f32")
    assert trial.difference(wrong) == "another result"
    assert trial.killing_tolerances(wrong) == {"rtol 1e-02", "rtol 1e-03"}
    assert trial.differs_on_more_inputs(wrong) and not trial.makes_same_writes(wrong)


def test_what_rounds_otherwise_is_within_the_bound_where_the_order_is_free_only():
    free, fixed = (trial_of("blur", is_free=is_free) for is_free in (True, False))
    mutants = [
        mutation.apply(free.func)
        for mutation in mutations_of(free.func)
        if mutation.operator == "kept in f16"
    ]
    assert mutants
    for mutant in mutants:
        assert "wrong" in free.difference(mutant)
        assert fixed.difference(mutant) == "another result"


def test_a_rule_that_is_broken_is_noticed():
    trial = trial_of("product")
    (mutant, *_) = [
        tried(m, trial, LOWERING) for m in mutations_of(trial.func) if m.operator == "guard dropped"
    ]
    assert "out of range" in mutant.symptom


def test_what_is_another_program_on_nan_alone_is_noticed_where_no_bit_may_change():
    fixed, free = (trial_of("transpose", is_free=is_free) for is_free in (False, True))
    text = print_func(fixed.func)
    (stored,) = {part.split(", 0.0f32)")[0] for part in text.split("max(")[1:]}
    wrong = _changed(
        fixed, f"max({stored}, 0.0f32)", f"select({stored} > 0.0f32, {stored}, 0.0f32)"
    )
    assert fixed.difference(wrong) == "another result" and fixed.differs_on_more_inputs(wrong)
    assert not fixed.killing_tolerances(wrong) and free.difference(wrong) == ""

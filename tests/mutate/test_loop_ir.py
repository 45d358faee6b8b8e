"""The mutation score: at least 95 % of the wrong code is noticed, and more than by tolerances."""

import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.mutate.loop_ir import LOWERING, score_loop_ir, tried
from refcomp.mutate.mutant import COMPARISONS, NO_DATA, OURS
from refcomp.mutate.mutations import mutations_of
from refcomp.mutate.subjects import Subject, subjects
from tests.mutate.test_trial import trial_of


def test_wrong_code_is_noticed(request, record_property):
    is_nightly = request.config.getoption("--nightly")
    mutants = list(score_loop_ir(subjects(), 2_000 if is_nightly else 200, seed=3))
    wrong = [mutant for mutant in mutants if not mutant.equivalent]
    shares = {p: 100 * sum(p in m.killed_by for m in wrong) / len(wrong) for p in COMPARISONS}
    assert len(wrong) >= 180
    assert shares[OURS] >= 95
    assert all(shares[OURS] >= shares[policy] for policy in COMPARISONS)
    assert all(OURS not in mutant.killed_by for mutant in mutants if mutant.equivalent)
    told = ", ".join(f"{share:.1f} % by {policy}" for policy, share in shares.items())
    record_property(
        "summary",
        f"{len(mutants)} mutants, {len(wrong)} of them wrong code; noticed: {told}",
    )


def _mutants(trial, kind):
    return [tried(m, trial, LOWERING) for m in mutations_of(trial.func) if m.operator == kind]


def test_a_lost_barrier_is_seen_by_ours_alone():
    (mutant, *_) = _mutants(trial_of("tiled transpose"), "barrier dropped")
    assert mutant.killed_by == {OURS}
    assert "A.shared" in mutant.symptom
    assert "lowering: barrier dropped: barrier  ->  block" in str(mutant)


def test_sums_kept_in_f16_are_beyond_the_bound():
    for mutant in _mutants(trial_of("product"), "kept in f16"):
        if "= 0.0f32" not in str(mutant):
            assert OURS in mutant.killed_by and "wrong" in mutant.symptom
            assert "rtol 1e-02" not in mutant.killed_by


def test_a_rule_that_is_broken_counts_for_all():
    noticed = [m.killed_by for m in _mutants(trial_of("product"), "bound too large")]
    assert frozenset(COMPARISONS) in noticed


def test_equivalent_mutants_are_told_apart():
    (unneeded,) = [
        m
        for m in _mutants(trial_of("argmax"), "bound too large")
        if m.equivalent and "i.outer" in str(m)
    ]
    assert "whatever the data" in unneeded.equivalent and not unneeded.symptom


def test_the_same_polynomial_is_equivalent():
    """Of the blur's last columns, one reads a border that is 0: subtracting it changes nothing."""
    trial = trial_of("blur", "flatten_storage", is_free=False)
    flips = [m for m in mutations_of(trial.func) if m.operator == "operator flipped"]
    found = [tried(m, trial, "flatten_storage") for m in flips]
    same = [mutant for mutant in found if "polynomial" in mutant.equivalent]
    assert same and all("0.12345f32" in mutant.change for mutant in same)
    assert all(OURS in mutant.killed_by for mutant in found if mutant.is_wrong)


def test_survivors_say_what_is_known_of_them():
    """Of an argmax' two results, the values are the same whichever of two equal ones is taken."""
    found = _mutants(trial_of("argmax"), "comparison off by one")
    survivors = [mutant for mutant in found if mutant.is_wrong and not mutant.symptom]
    assert survivors and {mutant.reason for mutant in survivors} == {NO_DATA}
    assert not any(mutant.reason for mutant in found if mutant.symptom)


def test_extents_must_be_constant():
    n = refcomp.var("n")
    a = refcomp.placeholder((n,), name="A")
    b = refcomp.compute((n,), lambda i: a[i] + 1, name="B")
    subject = Subject("open", "llvm", refcomp.create_schedule(b), (a, b))
    with pytest.raises(UserError, match="open cannot be mutated") as caught:
        list(score_loop_ir([subject], 1))
    assert "argument A is not a tensor of constant shape" in str(caught.value)

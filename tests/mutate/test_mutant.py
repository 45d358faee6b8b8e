"""What a mutant says of itself."""

from dataclasses import dataclass

from refcomp.mutate.child import Outcome
from refcomp.mutate.mutant import COMPARISONS, MORE_DATA, OURS, RUNS, Mutant, first_line, mutant_of


def _mutant(stage="lowering", **what):
    return Mutant("product", stage, "guard dropped", "a  ->  b", frozenset(), **what)


def test_wrong_is_what_is_a_program_and_another_one():
    assert _mutant().is_wrong
    assert not _mutant(equivalent="the same program").is_wrong
    assert not _mutant(stillborn="the compiler refuses it").is_wrong


def test_it_is_printed_in_one_line():
    assert str(_mutant()) == "product, lowering: guard dropped: a  ->  b"
    assert first_line(" a\nb") == "a" and first_line("") == "nothing"


def test_ours_comes_first():
    assert COMPARISONS == (OURS, "rtol 1e-02", "rtol 1e-03")


@dataclass(frozen=True)
class _Edit:
    operator: str = "guard dropped"

    def __str__(self):
        return "a  ->  b"


def _tried(*told, ended=""):
    return mutant_of("templates of c", _Edit(), "the printer", Outcome(told, ended))


def test_a_failure_before_any_program_ran_leaves_no_program():
    for early in (_tried(ended="did not end"), _tried({"error": "did not end: at all"})):
        assert early.stillborn == "the printer fails (did not end)" and not early.killed_by
        assert (early.subject, early.operator, early.change) == ("all", "guard dropped", "a  ->  b")


def test_a_failure_of_the_program_is_noticed_by_all():
    late = _tried({"step": RUNS, "subject": "i32"}, ended="crashed by SIGSEGV")
    assert late.symptom == "crashed by SIGSEGV" and late.killed_by == set(COMPARISONS)
    assert (late.subject, late.stage) == ("i32", "templates of c")


def test_what_was_told_is_kept():
    told = _tried({"step": RUNS}, {"symptom": "A[0] is 1", "killed_by": ["rtol 1e-02"]})
    assert told.killed_by == {OURS, "rtol 1e-02"} and not told.reason
    assert _tried({"step": RUNS}).reason == MORE_DATA
    assert not _tried({"equivalent": "the same texts"}).is_wrong
    assert not _tried({"stillborn": "no tool takes it"}).is_wrong

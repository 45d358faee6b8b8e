"""What a mutant says of itself."""

from refcomp.mutate.mutant import OURS, POLICIES, Mutant, first_line


def _mutant(stage="lowering", **what):
    return Mutant("product", stage, "guard dropped", "a  ->  b", frozenset(), **what)


def test_wrong_is_what_is_a_program_and_another_one():
    assert _mutant().is_wrong
    assert not _mutant(equivalent="the same program").is_wrong
    assert not _mutant(refused="the compiler refuses it").is_wrong


def test_it_is_printed_in_one_line():
    assert str(_mutant()) == "product, lowering: guard dropped: a  ->  b"
    assert first_line(" a\nb") == "a" and first_line("") == "nothing"


def test_ours_comes_first():
    assert POLICIES == (OURS, "rtol 1e-02", "rtol 1e-03")

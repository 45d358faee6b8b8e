"""How a certificate and a difference read, and which writes are missing or extra."""

import pytest

from refcomp.certificates.certificate import Certificate, Difference, changed_writes
from refcomp.certificates.trial import Algebra, Trial
from refcomp.foundation.errors import CompilerBug
from refcomp.oracle.watch import Write


def test_a_lost_write_is_told_as_such():
    difference = Difference("D", (0, 6), 3, 4)
    assert str(difference) == "D[0, 6] is 3, expected 4; nothing writes it"
    written = Difference("D", (0,), 3, 4, ("  3 with i = 0",), missing=("  1 with i = 1",))
    assert str(written) == (
        "D[0] is 3, expected 4; written\n      3 with i = 0\n      missing: 1 with i = 1"
    )
    bounded = Difference("D", (), 3.0, 4.0, extra=("x",), allowed=0.125)
    assert str(bounded).startswith("D[] is 3.0, expected 4.0 within 0.125; nothing writes it\n")
    assert str(Difference(broken_rule="a race")) == "a race"


def test_a_certificate_names_the_guilty_step_and_the_sizes():
    certificate = Certificate("f", (), "pass x", Difference("D", (0,), 3, 4), {"n": 5})
    assert "f: pass x is guilty (n = 5)" in str(certificate)
    assert not certificate.holds
    with pytest.raises(CompilerBug, match="pass x changes the result of f") as caught:
        certificate.require()
    assert "D[0] is 3, expected 4" in caught.value.why
    right = Certificate("f", ("a", "b"))
    assert right.holds and str(right) == "f: certified, 2 programs agree"
    right.require()
    standing_in = Certificate("f", ("a", "b"), sizes={"B.i": 7})
    assert str(standing_in) == "f: certified, 2 programs agree on a stand-in (B.i = 7)"


def test_a_certificate_reports_what_it_rests_on():
    trials = tuple(
        Trial({"n": size}, 0, None, (Algebra.FIELD, Algebra.BOUNDS), 2) for size in (5, 13)
    )
    certificate = Certificate("f", ("a", "b") * 2, trials=trials, steps=1, passes=("p", "q"))
    data = "random arrays of seed 0 (normal floats, integers of any value)"
    exactly = "exactly (field of 2147483647 elements, integers modulo 2^w)"
    assert certificate.report().splitlines() == [
        "f: certified, 4 programs agree",
        "  programs: 4 compared, made by 1 schedule step and 2 passes",
        f"  trial: n = 5; {data}",
        f"  trial: n = 13; {data}",
        f"  compared: {exactly}",
        "  compared: floats within their error bounds",
    ]
    assert certificate.brief() == (
        f"f: certified, 4 programs agree (1 step, 2 passes; n = 5; n = 13; {exactly}, "
        "floats within their error bounds)"
    )


def test_a_brief_certificate_without_symbols_names_constant_sizes():
    trial = Trial({}, 0, None, (Algebra.FIELD,), 2)
    certificate = Certificate("f", ("a", "b"), trials=(trial,), passes=("p",))
    assert "(0 steps, 1 pass; constant sizes; exactly (" in certificate.brief()


def _writes(*values, name="k"):
    return [Write(value, ((name, k),)) for k, value in enumerate(values)]


def test_terms_that_are_added_in_another_order_are_the_same():
    before, after = _writes(0, 5, 8, 15), _writes(0, 7, 12, 15, name="r")
    assert changed_writes(before, after) == ((), ())


def test_a_lost_term_and_an_extra_one_are_told():
    before, after = _writes(0, 5, 8, 15), _writes(0, 7, 12, name="r")
    assert changed_writes(before, after) == (("  8 with k = 2",), ())
    assert changed_writes(after, before) == ((), ("  8 with k = 2",))


def test_values_that_do_not_add_up_are_compared_as_they_are():
    before, after = _writes(2.5, 7.5), _writes(2.5, 8.5)
    assert changed_writes(before, after) == (("  7.5 with k = 1",), ("  8.5 with k = 1",))
    assert changed_writes(_writes(1), []) == (("  1 with k = 0",), ())

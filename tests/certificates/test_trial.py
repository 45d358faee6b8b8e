"""A trial says which sizes, data and algebras programs were compared on."""

import refcomp as rc
from refcomp.certificates import certify, certify_function
from refcomp.certificates.trial import Algebra, Trial, sizes_to_text
from refcomp.ir.parser import parse_func
from tests.properties.seeded_bugs import INTERPRETED, switched_on


def scaled():
    n = rc.var("n")
    a = rc.placeholder((n,), name="A")
    b = rc.compute((n,), lambda i: a[i] * 2.0 + 1.0, name="B")
    s = rc.create_schedule(b)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=4)[1])
    return s, [a, b]


def test_a_trial_reads_as_sizes_and_data():
    trial = Trial({"n": 5, "m": 3}, 7, None, (Algebra.FIELD, Algebra.BOUNDS), 2)
    assert str(trial) == (
        "n = 5, m = 3; random arrays of seed 7 (normal floats, integers of any value)"
    )
    assert trial.to_json() == {
        "sizes": {"n": 5, "m": 3},
        "data": "random arrays of seed 7 (normal floats, integers of any value)",
        "seed": 7,
        "greatest_integer": None,
        "algebras": ["finite field", "floats within bounds"],
        "programs": 2,
    }


def test_a_trial_without_symbols_and_with_small_integers_says_so():
    trial = Trial({}, 0, 99, (Algebra.FIELD,), 2)
    assert str(trial) == (
        "constant sizes; random arrays of seed 0 (normal floats, integers from 0 to 99)"
    )


def test_each_algebra_has_a_phrase():
    assert [algebra.phrase for algebra in Algebra] == [
        "exactly (field of 2147483647 elements, integers modulo 2^w)",
        "floats within their error bounds",
        "floats to the bit",
    ]


def test_sizes_read_as_equations():
    assert sizes_to_text({}) == ""
    assert sizes_to_text({"B.i": 7, "n": 2}) == "B.i = 7, n = 2"


def test_a_certificate_names_its_trials_steps_and_passes():
    certificate = certify(*scaled(), name="scale", seed=3)
    assert [trial.sizes for trial in certificate.trials] == [{"n": 5}, {"n": 9}]
    assert {trial.seed for trial in certificate.trials} == {3}
    assert {trial.algebras for trial in certificate.trials} == {(Algebra.FIELD, Algebra.BOUNDS)}
    assert sum(trial.programs for trial in certificate.trials) == len(certificate.compared)
    assert certificate.steps == len(scaled()[0].steps)
    assert certificate.passes[-1] == "introduce_lets"


def test_a_failed_certificate_names_the_trial_that_failed():
    (bug,) = [bug for bug in INTERPRETED if bug.name == "lost tail guard"]
    with switched_on(bug):
        certificate = certify(*scaled())
    (trial,) = certificate.trials
    assert trial.sizes == certificate.sizes == {"n": 5}


def test_a_certified_function_is_compared_to_the_bit():
    func = parse_func("func f(A: f32[n], B: f32[n] out) { for i in range(n) { B[i] = A[i] } }")
    (trial,) = certify_function(func).trials
    assert (trial.sizes, trial.algebras) == ({"n": 5}, (Algebra.FIELD, Algebra.BITS))


def test_a_program_of_integers_is_compared_exactly_alone():
    a = rc.placeholder((5,), "int32", name="A")
    b = rc.compute((5,), lambda i: a[i] + 1, name="B")
    (trial,) = certify(rc.create_schedule(b), [a, b]).trials
    assert trial.algebras == (Algebra.FIELD,)


def test_a_certified_build_says_so_where_the_environment_asks(monkeypatch, capsys):
    schedule, args = scaled()
    with rc.build_options(certify=True):
        rc.build(schedule, args, "interp", name="scale")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("REFCOMP_CERTIFY", "1")
    rc.build(schedule, args, "interp", name="scale")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("refcomp: scale: certified, 4 programs agree (2 steps, 0 passes")
    assert "; n = 5; n = 9; exactly (field of 2147483647 elements" in line
    assert line.endswith(", floats within their error bounds)")


def test_a_program_of_short_extents_is_not_certified_on_empty_arrays():
    n = rc.var("n")
    a = rc.placeholder((n - 9,), name="A")
    b = rc.compute((n - 9,), lambda i: a[i] + 1.0, name="B")
    s = rc.create_schedule(b)
    s[b].split(b.op.axis[0], factor=2)
    assert [trial.sizes for trial in certify(s, [a, b]).trials] == [{"n": 10}, {"n": 12}]
    (bug,) = [bug for bug in INTERPRETED if bug.name == "lost tail guard"]
    with switched_on(bug):
        assert not certify(s, [a, b]).holds

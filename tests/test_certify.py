"""Certificates hold for right schedules, and name the step that seeded bugs make guilty."""

import pytest
from hypothesis import HealthCheck, given, settings

import refcomp as rc
from refcomp.certify import Certificate, Difference, certify
from refcomp.errors import CompilerBug, Unsupported, UserError
from tests.properties.seeded_bugs import INTERPRETED, SeededBug, switched_on
from tests.properties.test_schedules import cases


def matmul(factor: int = 3):
    n, m = rc.var("n"), rc.var("m")
    a, b = rc.placeholder((n, 8), name="A"), rc.placeholder((8, m), name="B")
    k = rc.reduce_axis((0, 8), name="k")
    c = rc.compute((n, m), lambda i, j: rc.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = rc.compute((n, m), lambda i, j: rc.exp(c[i, j]) / (c[i, j] + 1.0), name="D")
    s = rc.create_schedule(d)
    outer, inner = s[c].split(k, factor=factor)
    s[c].reorder(inner, outer, *c.op.axis)
    s[c].compute_at(s[d], d.op.axis[0])
    s[d].vectorize(s[d].split(d.op.axis[1], factor=4)[1])
    return s, [a, b, d]


def seeded(name: str) -> SeededBug:
    (bug,) = [bug for bug in INTERPRETED if bug.name == name]
    return bug


def test_a_right_schedule_is_certified():
    certificate = certify(*matmul(), name="product")
    assert certificate.holds
    assert str(certificate).startswith("product: certified, ")
    assert "vectorize_loops" in certificate.compared
    assert "s[C].split(k, factor=3)" not in certificate.compared
    certificate.require()


def test_every_step_compares_each_primitive():
    certificate = certify(*matmul(), every_step=True)
    assert certificate.holds
    assert "s[C].split(k, factor=3)" in certificate.compared
    assert "s[D].vectorize(j.inner)" in certificate.compared


@pytest.mark.parametrize(
    ("bug", "guilty", "told"),
    [
        ("lost tail guard", "s[C].split(k, factor=3), at ", "index 8 in dimension 1 of A is out"),
        ("split rounds down", "s[C].split(k, factor=3), at ", r"D\[0, 0\] is \d+, expected \d+"),
        ("missing initialisation of a reduction", "lowering", "element 0 of C is read, never wr"),
        ("region one element short", "s[C].compute_at(s[D], i), at ", "is out of range"),
        ("wrong stride", "pass flatten_storage", "out of range"),
    ],
)
def test_the_guilty_step_is_named(bug, guilty, told):
    with switched_on(seeded(bug)):
        certificate = certify(*matmul(), name="product")
    assert not certificate.holds
    assert certificate.guilty.startswith(guilty)
    assert certificate.sizes
    assert pytest.importorskip("re").search(told, str(certificate))
    with pytest.raises(CompilerBug, match="changes the result of product"):
        certificate.require()


def test_a_lost_write_is_told_as_such():
    difference = Difference("D", (0, 6), 3, 4)
    assert str(difference) == "D[0, 6] is 3, expected 4; nothing writes it"
    written = Difference("D", (0,), 3, 4, ("3 with i = 0",))
    assert "written\n    3 with i = 0" in str(written)
    assert "f: pass x is guilty (n = 5)" in str(
        Certificate("f", (), "pass x", difference, {"n": 5})
    )


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(cases())
def test_random_schedules_are_certified(case):
    computation, schedule = case
    certificate = certify(schedule, computation.args)
    assert certificate.holds, str(certificate)


def test_a_schedule_for_a_gpu_is_certified_with_its_barriers():
    n = rc.var("n")
    a = rc.placeholder((n, 8), name="A")
    t = rc.compute((n, 8), lambda i, j: a[i, j] * 2.0, name="T")
    b = rc.compute((n, 8), lambda i, j: t[i, 7 - j] + t[i, j], name="B")
    s = rc.create_schedule(b)
    i, j = b.op.axis
    s[b].bind(i, rc.thread_axis("blockIdx.x"))
    s[b].bind(j, rc.thread_axis("threadIdx.x"))
    s[t].set_scope("shared")
    s[t].compute_at(s[b], i)
    s[t].bind(t.op.axis[1], rc.thread_axis("threadIdx.x"))
    certificate = certify(s, [a, b])
    assert certificate.holds, str(certificate)
    assert "flatten_storage" in certificate.compared


def test_too_large_computations_are_refused():
    a = rc.placeholder((1000, 1000), name="A")
    b = rc.compute((1000, 1000), lambda i, j: a[i, j], name="B")
    with pytest.raises(Unsupported, match="main computes 1000000 values, too many") as caught:
        certify(rc.create_schedule(b), [a, b])
    assert "symbolic extents" in caught.value.remedy


def test_what_is_no_schedule_is_refused():
    with pytest.raises(UserError, match="cannot be certified"):
        certify(3, [])

"""Each access is proved, checked at entry, decided by data, or not stated."""

import json

import pytest

import refcomp as rc
from refcomp.certificates import certify, certify_function
from refcomp.certificates.bounds import Reason, bounds_of
from refcomp.ir.parser import parse_func

PROVED, AT_ENTRY, BY_DATA, NOT_STATED = Reason
PARAMS = "A: f32[n], X: i64[m], C: f32[m] out, k: i64"


def _accesses(body: str) -> dict[str, str]:
    return dict(bounds_of(parse_func(f"func f({PARAMS}) {{ {body} }}")).accesses)


@pytest.mark.parametrize(
    ("body", "accesses"),
    [
        ("for i in range(m) { C[i] = A[i] }", {"C[i]": PROVED, "A[i]": AT_ENTRY}),
        ("for i in range(m) { if (i < n) { C[i] = A[i] } }", {"C[i]": PROVED, "A[i]": PROVED}),
        (
            "for i in range(m) { if (i < n) { } else { C[i] = A[i - n] } }",
            {"C[i]": PROVED, "A[i - n]": AT_ENTRY},
        ),
        (
            "for i in range(m) { C[i] = A[X[i]] }",
            {"C[i]": PROVED, "A[X[i]]": BY_DATA, "X[i]": PROVED},
        ),
        (
            "for i in range(m) { let x: i64 = X[i] { C[i] = A[min(max(x, 0), n - 1)] } }",
            {"X[i]": PROVED, "C[i]": PROVED, "A[min(max(x, 0), n - 1)]": BY_DATA},
        ),
        (
            "for i in range(m) { for j in range(X[i]) { C[j] = 0.0f32 } }",
            {"X[i]": PROVED, "C[j]": BY_DATA},
        ),
        (
            "for i in range(m) { if (X[i] < 9) { C[i + 1] = 0.0f32 } }",
            {"X[i]": PROVED, "C[i + 1]": BY_DATA},
        ),
        (
            "for i in range(m) { C[i] = if_then_else(i < n, A[i], A[i64(exp(f32(i)))]) }",
            {"C[i]": PROVED, "A[i]": PROVED, "A[i64(exp(f32(i)))]": NOT_STATED},
        ),
        ("for i in range(m) { C[i] = A[k] }", {"C[i]": PROVED, "A[k]": AT_ENTRY}),
        ("packed f(read(A), write(C))", {"read(A)": NOT_STATED, "write(C)": NOT_STATED}),
        ("for i in range(m) { prefetch A[i + 9] }", {}),
    ],
)
def test_how_bounds_are_known(body: str, accesses: dict[str, str]) -> None:
    assert _accesses(body) == accesses


def test_indices_are_compared_as_i64() -> None:
    loop = "for i in range(m) { C[i] = A[s] + A[i32(X[i]) % 3i32] + A[i32(i)] }"
    head = "func f(A: f32[n], X: i64[m], C: f32[m] out, s: i32)"
    found = dict(bounds_of(parse_func(f"{head} {{ if (3 < n) {{ {loop} }} }}")).accesses)
    assert found == {
        "X[i]": PROVED,
        "C[i]": PROVED,
        "A[i32(X[i]) % 3i32]": PROVED,
        "A[s]": AT_ENTRY,
        "A[i32(i)]": AT_ENTRY,
    }


def test_the_report_counts_and_lists() -> None:
    store = "C[i] = A[i] + A[X[i]] + A[i64(exp(f32(i)))]"
    func = parse_func(f"func f({PARAMS}) {{ for i in range(m) {{ {store} }} }}")
    report = bounds_of(func)
    assert str(report) == (
        "bounds: 5 accesses: 2 proved, 1 checked at entry, 1 depends on data, 1 not stated\n"
        "  checked at entry: m - 1 < n (`C[i] = A[i] + A[X[i]] + A[i64(exp(f32(i)))]` reads A[i])\n"
        "  depends on data: A[X[i]]\n"
        "  not stated: A[i64(exp(f32(i)))]"
    )
    assert json.loads(json.dumps(report.to_json())) == {
        "proved": 2,
        "checked_at_entry": 1,
        "depends_on_data": 1,
        "not_stated": 1,
        "conditions": ["m - 1 < n (`C[i] = A[i] + A[X[i]] + A[i64(exp(f32(i)))]` reads A[i])"],
        "accesses_by_data": ["A[X[i]]"],
        "accesses_not_stated": ["A[i64(exp(f32(i)))]"],
    }


def test_a_certificate_of_sizes_that_have_to_fit() -> None:
    n, k, m = rc.var("n"), rc.var("k"), rc.var("m")
    a, b = rc.placeholder((n,), name="A"), rc.placeholder((k,), name="B")
    output = rc.compute((m,), lambda i: a[i] * b[i], name="C")
    schedule = rc.create_schedule(output.op)
    schedule[output].split(output.op.axis[0], 4)
    certificate = certify(schedule, [a, b, output])
    assert certificate.bounds is not None
    assert certificate.bounds.counts == {PROVED: 1, AT_ENTRY: 2, BY_DATA: 0, NOT_STATED: 0}
    loop = "for i in range(n) { C[i] = A[i] }"
    found = certify_function(parse_func(f"func f(A: f32[m], C: f32[n] out) {{ {loop} }}"))
    assert found.bounds is not None and found.bounds.counts[AT_ENTRY] == 1
    wider = certify_function(parse_func(f"func f(C: f32[n] out, A: f32[m]) {{ {loop} }}"))
    assert wider.bounds is not None and wider.bounds.counts[AT_ENTRY] == 1

"""Reads that are certainly out of range are refused; what may be in range is not."""

import pytest

import refcomp as rc
from refcomp.arith.attained import Box
from refcomp.foundation.errors import UserError

N, M = rc.var("n"), rc.var("m")
A = rc.placeholder((10,), name="A")
S = rc.placeholder((N, 8), name="S")
K = rc.reduce_axis((0, 11), name="k")


@pytest.mark.parametrize(
    ("shape", "function", "what", "why"),
    [
        ((10,), lambda i: A[i + 1], "reads index 10 of dimension 0 of A", "0 .. 9"),
        ((10,), lambda i: A[i - 1] * 2, "reads index -1 of dimension 0 of A", "0 .. 9"),
        ((10,), lambda i: A[8 - i], "reads index -1 of", "0 .. 9"),
        ((11,), lambda i: A[i], "reads index 10 of", "0 .. 9"),
        ((4, 3), lambda i, j: A[i * 3 + j + 1], "index 12 of", "0 .. 9"),
        ((22,), lambda i: A[i // 2], "index 10 of", "0 .. 9"),
        ((1,), lambda i: rc.sum(A[K], axis=K), "index 10 of", "0 .. 9"),
        ((1,), lambda i: A[12], "index 12 of", "0 .. 9"),
        ((11,), lambda i: A[i * 3 % 11], "index 10 of", "0 .. 9"),
        ((4, 5), lambda i, j: A[i * j], "index 12 of", "0 .. 9"),
        ((N,), lambda i: S[i + 1, 0], "index n of dimension 0 of S", "0 .. n - 1"),
        ((N,), lambda i: S[i, 8], "index 8 of dimension 1 of S", "0 .. 7"),
        ((N + 1,), lambda i: S[i, 0], "index n of dimension 0 of S", "0 .. n - 1"),
        ((5,), lambda i: rc.select(A[i + 6] > 0, 1, 2), "index 10 of", "0 .. 9"),
    ],
)
def test_a_certain_read_beyond_a_tensor_is_refused(shape, function, what, why):
    with pytest.raises(UserError) as caught:
        rc.create_schedule(rc.compute(shape, function, name="C"))
    assert caught.value.what.startswith("compute C reads")
    assert what in caught.value.what
    assert caught.value.why == f"that dimension has the elements {why}"
    assert "if_then_else" in caught.value.remedy


@pytest.mark.parametrize(
    ("shape", "function"),
    [
        ((9,), lambda i: A[i + 1]),
        ((11,), lambda i: rc.if_then_else(i > 0, A[i - 1], 0.0)),
        ((11,), lambda i: rc.select(i < 10, A[i], 0.0)),
        ((1,), lambda i: rc.sum(A[K], axis=K, where=K < 10)),
        ((11,), lambda i: A[i - i]),
        ((11,), lambda i: A[rc.minimum(i, 9)]),
        ((11,), lambda i: A[i % 10]),
        ((M,), lambda i: S[i, 0]),
        ((0,), lambda i: A[i + 10]),
        ((5, 3), lambda i, j: A[i * 2 + j // 2]),
    ],
)
def test_a_read_that_may_be_in_range_is_taken(shape, function):
    assert rc.compute(shape, function, name="C").name == "C"


@pytest.mark.parametrize("logic", [rc.all, rc.any])
def test_a_guard_beside_a_read_is_to_be_nested(logic):
    with pytest.raises(UserError) as caught:
        rc.compute((12,), lambda i: rc.if_then_else(logic(i < 10, A[i] > 0), 1, 2))
    assert caught.value.remedy == (
        "compute a smaller tensor, or nest two conditions, as both sides of and/or are evaluated: "
        "if_then_else(i < n, if_then_else(A[i] > 0, x, y), y)"
    )
    rc.compute((12,), lambda i: rc.if_then_else(i < 10, rc.if_then_else(A[i] > 0, 1, 2), 2))


def test_an_axis_of_the_whole_dimension_needs_no_proof(monkeypatch):
    def refuse(*_args):
        raise AssertionError("judged")

    monkeypatch.setattr(Box, "judge", refuse)
    n = rc.var("n")
    a, b = rc.placeholder((n, 8), name="A"), rc.placeholder((9, n), name="B")
    k = rc.reduce_axis((0, 8), name="k")
    rc.compute((n, 8), lambda i, j: a[i, j] + b[j, i], name="C")
    rc.compute((n,), lambda i: rc.sum(a[i, k], k), name="D")
    with pytest.raises(AssertionError, match="judged"):
        rc.compute((n, 9), lambda i, j: a[i, j], name="E")
    with pytest.raises(AssertionError, match="judged"):
        rc.compute((n,), lambda i: a[i, i], name="F")
    with pytest.raises(AssertionError, match="judged"):
        later = rc.reduce_axis((1, 8), name="k")
        rc.compute((n,), lambda i: rc.sum(a[i, later], later), name="G")

"""Operators on tensors: those of the element where there is one, otherwise refused with advice."""

import operator
from typing import Any

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.oracle.tensors.evaluate import evaluate

A = rc.placeholder((4,), name="A")
B = rc.placeholder((4,), name="B")
M = rc.placeholder((2, 3), name="M")

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def refused(call: Any) -> str:
    with pytest.raises(UserError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("symbol", BINARY)
def test_tensors_have_no_operators(symbol: str) -> None:
    text = refused(lambda: BINARY[symbol](A, B))
    assert text.startswith(f"`{symbol}` cannot be applied to tensor A\n")
    assert f"refcomp.compute(A.shape, lambda i: A[i] {symbol} B[i])" in text
    number = refused(lambda: BINARY[symbol](A, 2))
    assert f"lambda i: A[i] {symbol} 2)" in number
    assert "topi" not in number


@pytest.mark.parametrize("symbol", [s for s in BINARY if s not in ("<", "<=", ">", ">=")])
def test_a_number_on_the_left_stays_there(symbol: str) -> None:
    assert f"lambda i: 2 {symbol} A[i])" in refused(lambda: BINARY[symbol](2, A))


def test_operators_of_topi_are_named() -> None:
    assert refused(lambda: A + B).endswith("; or refcomp.topi.add(A, B)")
    assert refused(lambda: A / B).endswith("; or refcomp.topi.divide(A, B)")


def test_an_element_and_a_tensor() -> None:
    assert "read an element: B[i]" in refused(lambda: A[0] + B)
    assert "read an element: B[i]" in refused(lambda: np.float32(2) * A[0] * B)


@pytest.mark.parametrize(
    ("call", "what", "remedy"),
    [
        (lambda: -M, "`-` cannot", "lambda i, j: -M[i, j])"),
        (lambda: ~M, "`~` cannot", "lambda i, j: ~M[i, j])"),
        (lambda: M @ M, "`@` cannot", "refcomp.topi.matmul(A, B)"),
        (lambda: M**2, "`**` cannot", "M[i, j] * ..."),
        (lambda: abs(M), "abs() cannot", "refcomp.abs(M[i, j]))"),
        (lambda: np.exp(M), "numpy's exp cannot", "lambda i, j: refcomp.exp(M[i, j]))"),
        (lambda: np.sum(M), "numpy's sum cannot", "refcomp.sum(x, axis=k)"),
        (lambda: np.ones(3) * M, "`*` cannot", "array([1., 1., 1.]) * M[i, j]"),
        (lambda: np.asarray(M), "numpy's array() cannot", "the built function"),
        (lambda: float(M), "float()", "refcomp.exp(M[i, j])"),
    ],
)
def test_functions_of_numpy_and_python(call: Any, what: str, remedy: str) -> None:
    text = refused(call)
    assert text.startswith(what)
    assert "applied to tensor M" in text
    assert remedy in text


def test_writing_and_slicing() -> None:
    assert "tensor A cannot be written to" in refused(lambda: operator.setitem(A, 0, 1))
    for index in [(0, slice(None)), slice(1), (..., 0)]:
        text = refused(lambda index=index: M[index])
        assert text.startswith("tensor M is read with a slice\n")
        assert "compute over the index: lambda j: M[i, j]" in text


def test_tensors_are_still_compared_by_identity() -> None:
    assert A == A
    assert A != B
    assert {A: 1}[A] == 1
    assert np.float32(1) != A
    assert np.ones(3) != A


def test_a_tensor_without_dimensions_is_its_element() -> None:
    point = rc.placeholder((), "int32", name="p")
    value = -(((point + 1) * 2 - point) // 3) % 5 + (3 - point) * (~point & 6 | 1 ^ point)
    result = rc.compute((1,), lambda i: value + rc.select(point > 2, 1 << point, point >> 1))
    for x in (2, 5):
        (found,) = evaluate([result], {point: np.array(x, "int32")})
        plain = -(((x + 1) * 2 - x) // 3) % 5 + (3 - x) * (~x & 6 | 1 ^ x)
        # `%` truncates in C and here
        wanted = plain - (5 if -(((x + 1) * 2 - x) // 3) % 5 else 0) + (1 << x if x > 2 else x >> 1)
        assert found[0] == wanted

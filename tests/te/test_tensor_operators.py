"""Operators on tensors: those of the elements, and what is refused with advice."""

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


# As numbers of the operands: exact in every operator.
_ROW, _COLUMN = np.array([5, 7, 2], "int32"), np.array([[3], [2]], "int32")


def _numpy(symbol: str, x: Any, y: Any) -> Any:
    """Return what the elements are: `/` and `%` of integers truncate, as in C."""
    return BINARY["//" if symbol == "/" else symbol](x, y)


@pytest.mark.parametrize("symbol", BINARY)
def test_operators_work_element_by_element_and_broadcast(symbol: str) -> None:
    row = rc.placeholder((3,), "int32", name="row")
    column = rc.placeholder((2, 1), "int32", name="column")
    result = BINARY[symbol](row, column)
    (found,) = evaluate([result], {row: _ROW, column: _COLUMN})
    wanted = _numpy(symbol, _ROW, _COLUMN)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("symbol", BINARY)
@pytest.mark.parametrize("other", [3, np.int32(3), rc.const(3)])
def test_a_number_stands_for_each_element(symbol: str, other: Any) -> None:
    row = rc.placeholder((3,), "int32", name="row")
    right, left = BINARY[symbol](row, other), BINARY[symbol](other, row)
    found = evaluate([right, left], {row: _ROW})
    np.testing.assert_array_equal(found[0], _numpy(symbol, _ROW, 3))
    np.testing.assert_array_equal(found[1], _numpy(symbol, 3, _ROW))


def test_scalar_arguments_and_tensors_of_rank_0_stand_for_each_element() -> None:
    k, point = rc.var("k", "float32"), rc.placeholder((), name="p")
    result = (k * A - point) / (point + A)
    built = rc.build(rc.create_schedule(result), [k, A, point, result], "interp")
    given, found = np.array([1, 2, 4, 8], "float32"), np.zeros(4, "float32")
    built(2.0, given, np.array(1, "float32"), found)
    np.testing.assert_array_equal(found, (2 * given - 1) / (1 + given))


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_arithmetic_on_scalar_arguments_stands_for_each_element(dtype: str) -> None:
    n, whole = rc.var("n", dtype), rc.placeholder((4,), dtype, name="W")
    shared = rc.select(n > 2, n, n * 2).astype("float32")
    result = (n + 1) * whole - whole / (2 * n - 1) + rc.sqrt(shared) * A
    built = rc.build(rc.create_schedule(result), [n, whole, A, result], "interp")
    given, others = np.array([1, 2, 4, 8], dtype), np.array([1, 0, 2, 3], "float32")
    found = np.zeros(4, "float32")
    built(4, given, others, found)
    divided = given / 7 if dtype == "float32" else given // 7
    wanted = (5 * given - divided).astype("float32") + 2 * others
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_an_extent_is_a_scalar_that_elements_may_share() -> None:
    n = rc.var("n")
    vector = rc.placeholder((n,), "int64", name="V")
    result = vector * (n - 1)
    assert result.op.tag == rc.topi.add(A, B).op.tag
    (found,) = evaluate([result], {vector: np.arange(5)})
    np.testing.assert_array_equal(found, np.arange(5) * 4)


def test_an_axis_of_another_compute_is_no_scalar_argument() -> None:
    k = rc.reduce_axis(4, "k")
    made = (k + 1) * B
    text = refused(lambda: rc.lower(rc.create_schedule(made), [B, made]))
    assert text.startswith("the computation uses k, which nothing gives a value\n")


def test_dtypes_are_those_of_the_elements() -> None:
    small = rc.placeholder((4,), "int8", name="small")
    assert (A + small).dtype == "float32"
    assert (small + small).dtype == (small + 1).dtype == "int8"
    assert (small < A).dtype == (A >= 1).dtype == "bool"
    assert (-small).dtype == (~small).dtype == "int8"


def test_the_result_is_a_stage_that_is_computed_where_it_is_read() -> None:
    total = A + B
    assert (total.name, (A > B).name, (-A).name) == ("add", "gt", "negative")
    assert total.op.tag == rc.topi.add(A, B).op.tag


def test_tensors_that_do_not_broadcast() -> None:
    text = refused(lambda: A + M)
    assert text.startswith("add: an extent of the second operand is 3 instead of 4\n")
    assert "M: f32[2, 3] is declared here" in text


@pytest.mark.parametrize("use", [lambda: A[0] + B, lambda: B + A[0], lambda: 2 * A[0] > B])
def test_an_element_and_a_tensor(use: Any) -> None:
    text = refused(use)
    assert "cannot be applied to tensor B and an expression" in text.splitlines()[0]
    assert "read an element: " in text
    assert "B[i]" in text


def test_advice_for_an_element_and_a_tensor_can_be_pasted() -> None:
    k = rc.reduce_axis(4, "k")
    assert "read an element: (TensorRead(A, 0) + 1.0f32) * B[i]" in refused(lambda: (A[0] + 1) * B)
    assert "read an element: B[i] * k" in refused(lambda: B * k)
    assert "M has 2 dimensions and is read with 1 index\n" in refused(lambda: M[0] + B)


def test_numpy_leaves_an_expression_and_a_tensor_to_the_tensor() -> None:
    for function in (np.add, np.less):
        assert "applied to tensor B and an expression" in refused(lambda f=function: f(A[0], B))
    k = rc.var("k", "float32")
    (found,) = evaluate([np.add(rc.const(1.0), A)], {A: np.arange(4, dtype="float32")})
    np.testing.assert_array_equal(found, [1, 2, 3, 4])
    assert np.subtract(k, A).name == "subtract"


@pytest.mark.parametrize("use", [lambda: 0 < A < 1, lambda: A < 0 or A > 1, lambda: not A < 0])
def test_comparisons_have_no_truth_value(use: Any) -> None:
    text = refused(use)
    assert "of bool has no truth value" in text.splitlines()[0]
    assert "(0 < A) & (A < 1)" in text
    assert A


def test_an_operator_inside_of_a_compute_is_not_an_element() -> None:
    text = refused(lambda: rc.compute((4,), lambda i: A + B))
    assert text.startswith("tensor add is used as a number\n")
    assert "read an element: add[i]" in text


@pytest.mark.parametrize(
    ("call", "what", "remedy"),
    [
        (lambda: M @ M, "`@` cannot", "refcomp.topi.matmul(A, B)"),
        (lambda: M**2, "`**` cannot", "M[i, j] * ..."),
        (lambda: abs(M), "abs() cannot", "refcomp.abs(M[i, j]))"),
        (lambda: np.exp(M), "numpy's exp cannot", "lambda i, j: refcomp.exp(M[i, j]))"),
        (lambda: np.sum(M), "numpy's sum cannot", "refcomp.sum(x, axis=k)"),
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

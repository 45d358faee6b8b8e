"""Tensor expressions by numpy, against numpy written by hand."""

import math

import numpy as np
import pytest

import refcomp
from refcomp.foundation.dtype import F32, I64
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Let, Var
from refcomp.oracle.tensors.evaluate import EvaluateError, evaluate
from refcomp.te import maths, reducer
from refcomp.te.maths import if_then_else, select
from refcomp.te.operation import compute, placeholder
from refcomp.te.reducer import comm_reducer, reduce_axis
from refcomp.te.tensor import var

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-9, 10, shape).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 7])
def test_adds_element_by_element_for_any_extent(n: int) -> None:
    size = var("n")
    a, b = placeholder((size,), name="A"), placeholder((size,), name="B")
    c = compute((size,), lambda i: a[i] + b[i] * 2)
    x, y = floats(n), floats(n)
    (result,) = evaluate([c], {a: x, b: y})
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, x + y * np.float32(2))


@pytest.mark.parametrize(("n", "k", "m"), [(3, 4, 5), (3, 0, 5), (0, 4, 5)])
def test_multiplies_matrices(n: int, k: int, m: int) -> None:
    a, b = placeholder((var("n"), k), name="A"), placeholder((k, m), name="B")
    r = reduce_axis(k, "r")
    c = compute((a.shape[0], m), lambda i, j: reducer.sum(a[i, r] * b[r, j], axis=r))
    x, y = integers(n, k), integers(k, m)
    np.testing.assert_array_equal(evaluate([c], {a: x, b: y})[0], x @ y)


def test_sums_in_the_order_of_the_axis_and_rounds_each_step() -> None:
    a = placeholder((3,), "float16", name="A")
    r = reduce_axis(3)
    total = compute((), lambda: reducer.sum(a[r], axis=r))
    x = np.array([2048, 1, 1], np.float16)  # 2048 + 1 is a tie that goes to 2048
    assert evaluate([total], {a: x})[0] == np.float16(2048)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [(reducer.max, np.max), (reducer.min, np.min), (reducer.prod, np.prod), (reducer.sum, np.sum)],
)
def test_standard_reductions(reduction: object, expected: object) -> None:
    a = placeholder((4, 3), name="A")
    r = reduce_axis(3)
    b = compute((4,), lambda i: reduction(a[i, r], axis=r))
    x = integers(4, 3)
    np.testing.assert_array_equal(evaluate([b], {a: x})[0], expected(x, axis=1))


def test_reduction_where_reads_only_what_is_chosen() -> None:
    a = placeholder((4,), name="A")
    r = reduce_axis((-1, 2), "r")
    inside = lambda i: maths.all(i + r >= 0, i + r < 4)  # noqa: E731
    b = compute((4,), lambda i: reducer.sum(a[i + r], axis=r, where=inside(i)))
    x = integers(4)
    expected = np.convolve(x, np.ones(3, np.float32), "same")
    np.testing.assert_array_equal(evaluate([b], {a: x})[0], expected)


def test_tuple_reduction_combines_values_of_before_the_step() -> None:
    def larger(x: tuple[Var, Var], y: tuple[Var, Var]) -> tuple[object, object]:
        return select(x[1] >= y[1], x[0], y[0]), select(x[1] >= y[1], x[1], y[1])

    argmax = comm_reducer(larger, lambda t0, t1: (maths.as_expr(-1), maths.min_value(t1)))
    a = placeholder((5, 6), name="A")
    r = reduce_axis(6)
    where, what = compute((5,), lambda i: argmax((r.var, a[i, r]), axis=r))
    x = floats(5, 6)
    index, value = evaluate([where, what], {a: x})
    np.testing.assert_array_equal(index, x.argmax(axis=1))
    np.testing.assert_array_equal(value, x.max(axis=1))


def test_if_then_else_reads_only_the_chosen_branch() -> None:
    a = placeholder((4,), name="A")
    padded = compute((6,), lambda i: if_then_else(maths.all(i >= 1, i < 5), a[i - 1], 0.0))
    x = floats(4)
    np.testing.assert_array_equal(evaluate([padded], {a: x})[0], np.pad(x, 1))


def test_nested_if_then_else_and_let() -> None:
    a = placeholder((4, 3), name="A")
    t = Var("t", I64)

    def body(i: Var, j: Var) -> object:
        inner = if_then_else(j > 0, a[i, j - 1], 5.0)
        return Let(t, i * 3 + j, if_then_else(t % 2 == 0, inner, t.astype(F32)))

    b = compute((4, 3), body)
    x = floats(4, 3)
    i, j = np.indices((4, 3))
    inner = np.where(j > 0, np.roll(x, 1, 1), np.float32(5))
    expected = np.where((i * 3 + j) % 2 == 0, inner, (i * 3 + j).astype(np.float32))
    np.testing.assert_array_equal(evaluate([b], {a: x})[0], expected)


def test_chain_of_operations_with_gather_and_cast() -> None:
    a, index = placeholder((5,), name="A"), placeholder((3,), "int32", name="I")
    doubled = compute((5,), lambda i: a[i] + a[i], name="doubled")
    taken = compute((3,), lambda i: doubled[index[i]].astype("int8"), name="taken")
    x, at = np.array([0.6, -200, 7, 8, 9], np.float32), np.array([4, 1, 0], np.int32)
    result, kept = evaluate([taken, doubled], {a: x, index: at})
    np.testing.assert_array_equal(result, np.array([18, -128, 1], np.int8))
    np.testing.assert_array_equal(kept, x + x)


def test_scalars_and_intrinsics() -> None:
    alpha = var("alpha", "float32")
    a = placeholder((4,), name="A")
    b = compute((4,), lambda i: maths.exp(a[i] * alpha))
    x = floats(4)
    (result,) = evaluate([b], {a: x}, {alpha: 0.5})
    wide = np.exp((x * np.float32(0.5)).astype(np.float64))
    np.testing.assert_array_equal(result, wide.astype(np.float32))


def test_bfloat16_rounds_every_node() -> None:
    a = placeholder((1,), "bfloat16", name="A")
    b = compute((1,), lambda i: a[i] + 1 - a[i])
    x = np.array([256], a.dtype and np.float32).astype("bfloat16")
    assert float(evaluate([b], {a: x})[0][0]) == 0.0


def test_boolean_results_and_rank_zero() -> None:
    a = placeholder((), "int32", name="A")
    b = compute((), lambda: ~maths.any(a[()] > 3, a[()] == -1))
    assert evaluate([b], {a: np.array(2, np.int32)})[0].dtype == np.bool_
    assert evaluate([b], {a: np.array(2, np.int32)})[0]
    assert not evaluate([b], {a: np.array(-1, np.int32)})[0]


def test_result_is_fresh_memory() -> None:
    a = placeholder((2,), name="A")
    x = floats(2)
    (same,) = evaluate([a], {a: x})
    same[0] = math.pi
    assert x[0] != np.float32(math.pi)


def test_read_out_of_range_is_an_error() -> None:
    a = placeholder((4,), name="A")
    # So many that `compute` does not try each index itself.
    b = compute((5000,), lambda i: a[i % 2 + 3], name="shifted")
    with pytest.raises(EvaluateError, match="shifted reads A at index 4 of dimension 0, which has"):
        evaluate([b], {a: floats(4)})


def test_select_reads_both_values() -> None:
    a = placeholder((4,), name="A")
    b = compute((4,), lambda i: select(i > 0, a[i - 1], 0.0))
    with pytest.raises(EvaluateError, match="at index -1"):
        evaluate([b], {a: floats(4)})


def test_unbound_variable_is_an_error() -> None:
    a = placeholder((4,), name="A")
    b = compute((4,), lambda i: a[i] * var("beta", "float32"), name="scaled")
    with pytest.raises(EvaluateError, match="variable beta has no value in scaled"):
        evaluate([b], {a: floats(4)})


def test_feeds_are_checked() -> None:
    n = var("n")
    a, b = placeholder((n,), name="A"), placeholder((n,), name="B")
    c = compute((n,), lambda i: a[i] + b[i])
    with pytest.raises(UserError, match="no value is given for placeholder B"):
        evaluate([c], {a: floats(3)})
    with pytest.raises(UserError, match=r"B has shape \(3,\), \(4,\) given"):
        evaluate([c], {a: floats(3), b: floats(4)})
    with pytest.raises(UserError, match="B has dtype f32, float64 given"):
        evaluate([c], {a: floats(3), b: np.zeros(3)})
    with pytest.raises(UserError, match="B has rank 1, 2 given"):
        evaluate([c], {a: floats(3), b: floats(3, 1)})


def test_what_an_extern_operation_does_not_write_is_told():
    def all_but_one(_ins, outs):
        ib = refcomp.ir_builder.create()
        with ib.for_range(0, 2, name="y") as y:
            ib.emit(outs[0].vstore(y, 1.0))
        return ib.get()

    e = refcomp.extern((3,), [], all_but_one, name="E", dtype="float32")
    with pytest.raises(EvaluateError, match="E leaves element 2 of E unwritten") as caught:
        evaluate([e], {})
    assert "write all elements" in caught.value.remedy

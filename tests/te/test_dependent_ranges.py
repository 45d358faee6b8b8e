"""Ranges of reductions that depend on other axes, or on elements of tensors."""

import numpy as np
import pytest

import refcomp
from refcomp import oracle
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.ir.rewrite import substitute
from refcomp.oracle.interpreter.interpret import evaluate_expr
from refcomp.te.dependent_ranges import dependent_axes, hulls, ranged_axes, rectangular

M = refcomp.var("m")
X = refcomp.placeholder((8,), name="X")
Y = refcomp.placeholder((M,), name="Y")
P = refcomp.placeholder((9,), "int32", name="P")
BOUNDS = {
    "lower": (lambda i: 0, lambda i: i + 1),
    "strictly lower": (lambda i: 0, lambda i: i),
    "upper": (lambda i: i, lambda i: 8),
    "band": (lambda i: refcomp.maximum(i - 2, 0), lambda i: refcomp.minimum(i + 3, 8)),
    "ends early": (lambda i: 0, lambda i: 3 - i),
    "ends before it begins": (lambda i: 5, lambda i: i),
}


def _sums(low, high, value=lambda i, k: X[k], shape=(8,), **options):
    def row(i):
        k = refcomp.reduce_axis((low(i), high(i)), name="k")
        return refcomp.sum(value(i, k), axis=k, **options)

    return refcomp.compute(shape, row, name="C")


def _expected(low, high, x):
    def number(bound):
        return int(evaluate_expr(refcomp.convert(bound), {}))

    return np.array(
        [x[number(low(i)) : max(number(low(i)), number(high(i)))].sum() for i in range(8)]
    )


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_a_range_that_ends_before_it_begins_is_empty(bounds):
    x = np.arange(1, 9, dtype="float32")
    c = _sums(*bounds)
    (found,) = oracle.evaluate([c], {X: x})
    assert np.array_equal(found, _expected(*bounds, x))
    made = np.full(8, 99, "float32")
    oracle.interpret(refcomp.lower(refcomp.create_schedule(c), [X, c]), [x, made])
    assert np.array_equal(made, found)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_a_rectangle_under_a_condition_has_the_same_value(bounds):
    x = np.arange(1, 9, dtype="float32")
    c = _sums(*bounds)
    plain = rectangular(c.op.reduction, c.op.axis, "C")
    assert not plain.ranges and hulls(c.op.reduction, c.op.axis)
    (k,) = plain.axes
    d = refcomp.compute(
        (8,), lambda i: refcomp.sum(X[k], axis=k, where=_at(plain.condition, c, i)), name="D"
    )
    assert np.array_equal(*oracle.evaluate([c, d], {X: x}))


def _at(condition, c, i):
    return substitute(condition, {c.op.axis[0].var: i})


def test_a_range_that_is_read():
    c = _sums(lambda i: P[i], lambda i: P[i + 1])
    assert c.op.inputs == (X, P)
    (k,) = dependent_axes(c.op.reduction, [c.op.axis[0].var])
    assert k is c.op.reduce_axis[0] and hulls(c.op.reduction, c.op.axis) is None
    (ranged,) = ranged_axes(c.op.reduction)
    assert ranged.var is k.var and ranged.extent is not k.extent  # at least 0
    x = np.arange(8, dtype="float32")
    p = np.array([0, 2, 2, 8, 7, 7, 7, 8, 8], "int32")  # row 3 ends before it begins
    (found,) = oracle.evaluate([c], {X: x, P: p})
    assert found.tolist() == [1, 0, 27, 0, 0, 0, 7, 0]
    with pytest.raises(Unsupported, match="the reduction of C has a range that is read from a te"):
        rectangular(c.op.reduction, c.op.axis, "C")
    with pytest.raises(Unsupported, match="a range that is read"):
        refcomp.te.gradient(c, [X])


def test_a_range_depends_on_an_axis_that_is_listed_before_only():
    def value(first):
        def row(i):
            k = refcomp.reduce_axis((0, 4), name="k")
            j = refcomp.reduce_axis((k, 4), name="j")
            return refcomp.sum(X[k + j], axis=[k, j] if first else [j, k])

        return row

    x = np.arange(8, dtype="float32")
    c = refcomp.compute((1,), value(True), name="C")
    (found,) = oracle.evaluate([c], {X: x})
    assert found[0] == sum(x[k + j] for k in range(4) for j in range(k, 4))
    with pytest.raises(UserError, match="axis j of compute C depends on axis k, which is lis") as e:
        refcomp.compute((1,), value(False), name="C")
    assert "axis=[k, j]" in str(e.value)


def test_a_range_names_no_axis_of_another_compute():
    other = refcomp.compute((8,), lambda i: X[i], name="other")
    c = _sums(lambda i: 0, lambda i: other.op.axis[0] + 1)
    with pytest.raises(UserError, match="the computation uses i, which nothing gives a value"):
        refcomp.lower(refcomp.create_schedule(c), [X, c])


@pytest.mark.parametrize(
    ("high", "value", "beyond"),
    [
        (lambda i: i + 2, lambda i, k: X[k], "index 8 of dimension 0 of X"),
        (lambda i: i + 2, lambda i, k: X[i - k], "index -1 of dimension 0 of X"),
        (lambda i: P[i + 2] - P[i], lambda i, k: X[k], "index 9 of dimension 0 of P"),
    ],
)
def test_a_read_beyond_a_tensor_is_refused(high, value, beyond):
    # A compute that reads earlier rows may belong to a scan, until it has a schedule.
    with pytest.raises(UserError, match=beyond):
        refcomp.create_schedule(_sums(lambda i: 0, high, value))


def test_a_read_that_depends_on_sizes_is_a_condition_of_the_call():
    n = refcomp.var("n")
    c = _sums(lambda i: 0, lambda i: i + 1, lambda i, k: Y[i - k], (n,))
    func = refcomp.lower(refcomp.create_schedule(c), [Y, c])
    assert "requires (n - 1 < m)" in str(func)


def test_gradients_of_a_triangle():
    a = refcomp.placeholder((4, 4), name="A")

    def row(i):
        k = refcomp.reduce_axis((0, i + 1), name="k")
        return refcomp.sum(a[i, k] * a[i, k], axis=k)

    c = refcomp.compute((4,), row, name="C")
    (gradient,) = refcomp.te.gradient(c, [a])
    values = np.arange(16, dtype="float32").reshape(4, 4)
    (found,) = oracle.evaluate([gradient], {a: values})
    expected = np.zeros((4, 4, 4), "float32")
    for i in range(4):
        expected[i, i, : i + 1] = 2 * values[i, : i + 1]
    assert np.array_equal(found, expected)

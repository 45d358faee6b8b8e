"""Expressions of hybrid functions, compiled and refused."""

# ruff: noqa: C416, F821, RUF015

import functools
import re

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.hybrid import script

A = refcomp.placeholder((8,), name="a")
I = refcomp.placeholder((8,), "int32", name="i")  # noqa: E741
PAIR, ARRAY = (1.5, 2), np.arange(3)


def test_what_is_known_is_computed_at_once():
    @script
    def f(a):
        c = output_tensor((a.ndim + 1,), a.dtype)
        c[0] = PAIR[0] * 2 if a.shape[0] > 4 and not False else 0.0
        c[1] = len(PAIR) + 7 // 2 - 2**3
        return c

    body = str(f(A).op.body)
    assert "c[0] = 3.0f32" in body and "c[1] = -3.0f32" in body


def test_conditions_are_lazy():
    @script
    def f(a):
        c = output_tensor((8,), "float32")
        for i in range(8):
            c[i] = a[i + 1] if i < 7 and a[i + 1] > 0.0 else 0.0
        return c

    given = np.arange(8, dtype=np.float32) - 3
    c, got = f(A), np.zeros(8, np.float32)
    refcomp.build(refcomp.create_schedule(c), [A, c], target="interp")(given, got)
    assert np.array_equal(got, f(given))


def test_indices_may_be_given_one_after_the_other():
    @script
    def f(x, y):
        c = output_tensor((2, 4), "float32")
        for i in range(2):
            for j in range(4):
                c[i][j] = x[i][j]
                c[i][j] += (x, y)[1][i][j]
        return c

    x, y = (refcomp.placeholder((2, 4), name=name) for name in "xy")
    given = np.arange(8, dtype=np.float32).reshape(2, 4)
    (found,) = refcomp.oracle.evaluate([f(x, y)], {x: given, y: given + 1})
    np.testing.assert_array_equal(found, 2 * given + 1)


DEEP = functools.reduce(lambda item, _: (item,), range(20), 7.0)


def test_each_index_of_nested_tuples_is_evaluated_once():
    @script
    def f(a):
        c = output_tensor((1,), "float32")
        c[0] = a[0] * DEEP[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]
        return c

    assert "c[0] = a[0] * 7.0f32" in str(f(A).op.body)


def test_an_item_that_a_tuple_lacks():
    @script
    def f(a):
        c = output_tensor((1,), "float32")
        c[0] = a[0] * PAIR[2]
        return c

    with pytest.raises(UserError, match=r"the tuple has no item 2(.|\n)*PAIR\[2\]"):
        f(A)


def test_an_item_of_a_tuple_of_tuples():
    @script
    def f(a, table):
        c = output_tensor((2, 3), "float32")
        for i in const_range(2):
            for j in const_range(3):
                c[i, j] = a[i] + float32(table[i, j]) + float32(table[i][j])
        return c

    rows = [[1, 2, 3], [4, 5, 6]]
    C = f(A, refcomp.convert(rows))
    given = np.arange(8, dtype="float32")
    (values,) = refcomp.oracle.evaluate([C], {A: given})
    np.testing.assert_array_equal(values, given[:2, None] + 2 * np.array(rows))


def test_items_of_tuples_are_known():
    @script
    def f(a, table):
        c = output_tensor((2,), "float32")
        for i in range(2):
            c[i] = a[i] + float32(table[i, 0])
        return c

    with pytest.raises(UserError, match="must be a constant integer") as info:
        f(A, ((1, 2), (3, 4)))
    assert info.value.remedy == "loop over const_range"

    @script
    def g(a, table):
        c = output_tensor((2,), "float32")
        c[0] = float32(table[0, 1, 0])
        return c

    with pytest.raises(UserError, match="table has no elements"):
        g(A, ((1, 2), (3, 4)))


def test_the_remainder_has_the_sign_of_the_divisor():
    @script
    def f(i):
        c = output_tensor((8,), "int32")
        for k in range(8):
            c[k] = i[k] % 3 - i[k] // 3
        return c

    given, got = np.arange(-4, 4, dtype=np.int32), np.zeros(8, np.int32)
    c = f(I)
    refcomp.build(refcomp.create_schedule(c), [I, c], target="interp")(given, got)
    assert got.tolist() == f(given).tolist()


@script
def divides(i):
    c = output_tensor((1,), "float32")
    c[0] = i[0] / 2
    return c


@script
def remainder(a):
    c = output_tensor((1,), "float32")
    c[0] = a[0] % 2.0
    return c


@script
def calls(a):
    c = output_tensor((1,), "float32")
    c[0] = np.sum(a)
    return c


@script
def comprehends(a):
    c = output_tensor((1,), "float32")
    c[0] = [x for x in PAIR][0]
    return c


@script
def captures(a):
    c = output_tensor((1,), "float32")
    c[0] = ARRAY[0]
    return c


@script
def undefined(a):
    c = output_tensor((1,), "float32")
    c[0] = nowhere
    return c


@script
def contains(a):
    c = output_tensor((1,), "float32")
    c[0] = 1.0 if a[0] in PAIR else 0.0
    return c


@script
def whole(a):
    c = output_tensor((1,), "float32")
    c[0] = a
    return c


@script
def slices(a):
    c = output_tensor((1,), "float32")
    c[0] = a[0:2]
    return c


@script
def backwards(a):
    c = output_tensor((1,), "float32")
    c[0] = a[-1]
    return c


@script
def zero(a):
    c = output_tensor((1,), "float32")
    c[0] = 1 // 0
    return c


@script
def words(a):
    c = output_tensor((1,), "float32")
    c[0] = exp(x=a[0])
    return c


@script
def texts(a):
    c = output_tensor((1,), "float32")
    c[0] = a[0] + None
    return c


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (divides, "`/` of i32 gives a float in Python, but no type says which"),
        (remainder, "`%` of f32 is not compiled"),
        (calls, "np.sum cannot be called here"),
        (comprehends, "ListComp is not part of hybrid functions"),
        (captures, "ARRAY is a ndarray from outside"),
        (undefined, "nowhere has no value here"),
        (contains, "`in` and `is` are not part of hybrid functions"),
        (whole, "a is not a number"),
        (slices, "Slice is not part of hybrid functions"),
        (backwards, "an index cannot be negative"),
        (zero, "division"),
        (words, "a call cannot have keyword arguments here"),
        (texts, "None is not a value of hybrid functions"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_not_compiled(function, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        function(I if function is divides else A)
    place = f"test_expressions.py:{function.source.first_line + 3}"
    assert caught.value.at.place.endswith(place), caught.value
    assert caught.value.what.startswith(f"hybrid function {function.__name__}: ")

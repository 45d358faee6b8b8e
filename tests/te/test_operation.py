import functools
import inspect

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.te.operation import broadcast_elements, reachable_operations
from tests.strategies.operands import run_te, tensors


def test_axes_are_named_after_the_functions_parameters():
    a = refcomp.placeholder((4, 8), name="A")
    b = refcomp.compute((4, 8), lambda row, col: a[row, col] + 1.0, name="B")
    assert [axis.name for axis in b.op.axis] == ["row", "col"]
    c = refcomp.compute((4, 8), lambda *at: a(*at) * 2.0, name="C")
    assert [axis.name for axis in c.op.axis] == ["i0", "i1"]


def test_inputs_in_order_of_first_appearance_once_each():
    a, b = (refcomp.placeholder((4,), name=name) for name in "AB")
    c = refcomp.compute((4,), lambda i: b[i] * a[i] + b[i])
    assert c.op.inputs == (b, a)


def test_several_outputs():
    a = refcomp.placeholder((4,), "int32", "A")
    low, high = refcomp.compute((4,), lambda i: (a[i] - 1, a[i].astype("float32")), name="P")
    assert (low.op is high.op, low.name, high.name) == (True, "P", "P.v1")
    assert (str(low.dtype), str(high.dtype)) == ("i32", "f32")


def wrapped(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


class Shifted:
    def element(self, row, column):
        return row + column


def with_keyword(row, column, *, shift=1):
    return row + column + shift


def described(row, column):
    return row + column


described.__signature__ = inspect.signature(lambda y, x: None)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda row, column: row + column, ["row", "column"]),
        (lambda row, column, shift=2: row + column + shift, ["row", "column"]),
        (with_keyword, ["row", "column"]),
        (wrapped(with_keyword), ["row", "column"]),
        (functools.partial(with_keyword, shift=2), ["row", "column"]),
        (Shifted().element, ["row", "column"]),
        (described, ["y", "x"]),
    ],
)
def test_axes_of_any_callable_are_named_after_its_parameters(function, names):
    c = refcomp.compute((4, 8), function, name="C")
    assert [axis.name for axis in c.op.axis] == names


def test_wrong_number_of_parameters():
    with pytest.raises(UserError, match="compute B has 2 dimensions(.|\n)*takes 1 indices"):
        refcomp.compute((4, 8), lambda i: i, name="B")


def test_a_reduction_inside_an_expression_is_refused():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    with pytest.raises(UserError, match="uses a reduction inside a larger expression"):
        refcomp.compute((4,), lambda i: refcomp.sum(a[i, k], axis=k) + 1.0, name="B")


def test_different_reductions_do_not_mix():
    a = refcomp.placeholder((4, 8), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    with pytest.raises(UserError, match="compute B mixes different reductions"):
        refcomp.compute(
            (4,),
            lambda i: (refcomp.sum(a[i, k], axis=k), refcomp.max(a[i, k], axis=k)),
            name="B",
        )


def test_producers_come_before_consumers():
    a = refcomp.placeholder((4,), name="A")
    b = refcomp.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = refcomp.compute((4,), lambda i: a[i] * b[i], name="C")
    assert [op.name for op in reachable_operations([c.op])] == ["A", "B", "C"]


@pytest.mark.search
def test_long_chains_do_not_exhaust_the_stack():
    tensor = refcomp.placeholder((1,), name="A")
    for _ in range(3000):
        tensor = refcomp.compute((1,), lambda i, t=tensor: t[i] + 1.0)
    assert len(reachable_operations([tensor.op])) == 3001


@pytest.mark.parametrize("function", [5, None, max, "A"])
def test_a_computation_is_a_function_of_indices(function):
    with pytest.raises(UserError, match="not a function of its indices"):
        refcomp.compute((4,), function, name="C")


def test_a_computation_returns_values():
    with pytest.raises(UserError, match="compute C returns no value"):
        refcomp.compute((4,), lambda i: (), name="C")


def test_elements_may_be_vectors():
    a = refcomp.placeholder((4,), "float32x4", name="A")
    c = refcomp.compute((4,), lambda i: a[i] + 1.0, name="C")
    assert (a.ndim, str(a.dtype), str(c.dtype)) == (1, "f32x4", "f32x4")
    text = refcomp.print_func(refcomp.lower(refcomp.create_schedule(c), [a, c]))
    assert "A: f32[4, 4], C: f32[4, 4] out" in text and "for lane in range(4) vectorized" in text


def test_all_values_of_a_compute_have_the_same_lanes():
    a = refcomp.placeholder((4,), "float32x4", name="A")
    with pytest.raises(UserError, match="compute C returns values of different lanes: f32x4, i64"):
        refcomp.compute((4,), lambda i: (a[i], i), name="C")


def test_an_index_is_a_single_integer():
    a = refcomp.placeholder((4,), "int32x4", name="A")
    with pytest.raises(UserError, match="must be a single integer, not a vector of i32x4"):
        refcomp.compute((4,), lambda i: a[a[i]], name="C")


def test_any_number_of_operands_broadcast():
    def mixed(*given):
        return broadcast_elements(given, lambda x, y, z: x * 100.0 + y * 10.0 + z, "mix")

    column, row, one = np.float32([[1], [2]]), np.float32([3, 4]), np.float32(5)
    found = run_te(mixed, column, row, one, is_symbolic=False)
    np.testing.assert_array_equal(found, np.float32([[135, 145], [235, 245]]))
    with pytest.raises(UserError, match="mix is applied to a float, not to a tensor"):
        mixed(*tensors((2,), (2,)), 0.5)


def test_a_placeholder_has_no_tag_and_no_attributes() -> None:
    A = refcomp.placeholder((4,), name="A")
    assert (A.op.tag, dict(A.op.attrs)) == ("", {})
    with pytest.raises(TypeError):
        A.op.attrs["k"] = 1

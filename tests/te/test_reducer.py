import math

import numpy as np
import pytest

import refcomp
from refcomp.foundation.errors import UserError
from refcomp.ir.expr import Add, Max, Min, Mul
from refcomp.te.reducer import Reduce


@pytest.mark.parametrize(
    ("reduction", "node", "identity"),
    [
        (refcomp.sum, Add, 0.0),
        (refcomp.prod, Mul, 1.0),
        (refcomp.max, Max, -math.inf),
        (refcomp.min, Min, math.inf),
    ],
)
def test_standard_reducers(reduction, node, identity):
    a = refcomp.placeholder((8,), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    reduce = reduction(a[k], axis=k)
    assert isinstance(reduce, Reduce) and reduce.dtype == a.dtype
    assert isinstance(reduce.reducer.results[0], node)
    assert reduce.reducer.identities[0].value == identity


def test_identities_of_integers_are_the_limits_of_the_type():
    a = refcomp.placeholder((8,), "int8", "A")
    k = refcomp.reduce_axis((0, 8), "k")
    assert refcomp.max(a[k], axis=k).reducer.identities[0].value == -128
    assert refcomp.min(a[k], axis=k).reducer.identities[0].value == 127


def test_bools_are_counted_in_i32():
    a = refcomp.placeholder((8,), "bool", "A")
    k = refcomp.reduce_axis((0, 8), "k")
    assert str(refcomp.sum(a[k], axis=k).dtype) == "i32"


@pytest.mark.parametrize("axis", [None, 3, []])
def test_only_reduction_axes_can_be_reduced_over(axis):
    a = refcomp.placeholder((8,), name="A")
    with pytest.raises(
        UserError, match=r"sum reduces over (.|\n)*reduce_axis\(\(0, extent\), name"
    ):
        refcomp.sum(a[0], axis=axis)


@pytest.mark.parametrize(
    ("reduction", "wanted"),
    [
        (refcomp.sum, "TensorRead(A, 0) + TensorRead(A, 1) + TensorRead(A, 2)"),
        (refcomp.prod, "TensorRead(A, 0) * TensorRead(A, 1) * TensorRead(A, 2)"),
        (refcomp.max, "max(max(TensorRead(A, 0), TensorRead(A, 1)), TensorRead(A, 2))"),
        (refcomp.min, "min(min(TensorRead(A, 0), TensorRead(A, 1)), TensorRead(A, 2))"),
    ],
)
def test_reducers_combine_values_without_axes(reduction, wanted):
    a = refcomp.placeholder((8,), name="A")
    assert str(reduction(a[0], a[1], a[2])) == wanted
    assert str(reduction(reduction(a[0], a[1]), a[2])) == wanted
    two = reduction(a[0] > 1.0, a[1] > 1.0)
    assert str(two.dtype) == "i32"


def test_reducers_of_the_user_combine_values_without_axes():
    a = refcomp.placeholder((8,), name="A")
    longest = refcomp.comm_reducer(lambda x, y: refcomp.hypot(x, y), lambda t: refcomp.const(0, t))
    assert str(longest(a[0], a[1])) == "hypot(TensorRead(A, 0), TensorRead(A, 1))"
    where, value = _argmax()((refcomp.const(0), a[0]), (refcomp.const(1), a[1]))
    found = refcomp.compute((1,), lambda i: where, name="where")
    for given in ([3, 9], [9, 3]):
        array = np.array([*given, 0, 0, 0, 0, 0, 0], "float32")
        (index,) = refcomp.oracle.evaluate([found], {a: array})
        assert index[0] == np.argmax(given)
    assert value.dtype == a.dtype
    with pytest.raises(UserError, match="argmax combines (.|\n)*two tuples of equally many"):
        _argmax()((refcomp.const(0), a[0]), a[1])


def test_numbers_take_the_dtype_of_the_values_that_they_are_combined_with():
    a = refcomp.placeholder((8,), "int8", name="A")
    for reduction in (refcomp.sum, refcomp.prod, refcomp.max, refcomp.min):
        assert reduction(a[0], a[1], 2).dtype == reduction(2, a[0]).dtype == "int8"


def test_tensors_of_rank_0_are_values():
    a, point = refcomp.placeholder((8,), name="A"), refcomp.placeholder((), name="p")
    assert str(refcomp.max(a[0], point)) == "max(TensorRead(A, 0), TensorRead(p))"
    with pytest.raises(UserError, match="tensor A is used as a number"):
        refcomp.max(a[0], a)


@pytest.mark.parametrize(
    "reduction", [refcomp.sum, refcomp.comm_reducer(lambda x, y: x + y, lambda t: 0)]
)
def test_values_have_no_condition_and_none_may_be_missing(reduction):
    a = refcomp.placeholder((8,), name="A")
    with pytest.raises(UserError, match="combines values and is given a condition"):
        reduction(a[0], a[1], where=a[0] > 0)
    for given in ((None, a[1]), (a[0], a[1], None)):
        with pytest.raises(UserError, match="None cannot be used as an expression"):
            reduction(*given)


def test_tuples_of_one_value_are_combined_like_values():
    a = refcomp.placeholder((8,), name="A")
    total = refcomp.comm_reducer(lambda x, y: x + y, lambda t: refcomp.const(0, t))
    (found,) = total((a[0],), (a[1],), (a[2],))
    assert str(found) == "TensorRead(A, 0) + TensorRead(A, 1) + TensorRead(A, 2)"


def test_tuples_may_hold_numbers():
    a = refcomp.placeholder((8,), name="A")
    where, value = _argmax()((0, a[0]), (1, a[1]))
    assert (where.dtype, value.dtype) == ("int32", "float32")


def test_the_condition_may_follow_the_axes_without_its_name():
    a = refcomp.placeholder((8,), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    for reduction in (refcomp.sum, refcomp.comm_reducer(lambda x, y: x + y, lambda t: 0)):
        assert str(reduction(a[k], k, a[k] > 0)) == str(reduction(a[k], k, where=a[k] > 0))
        with pytest.raises(UserError, match="4 arguments with reduction axes"):
            reduction(a[k], k, a[k] > 0, where=a[k] > 1)


def test_axes_and_further_values_do_not_mix():
    a = refcomp.placeholder((8,), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    for reduction in (refcomp.sum, refcomp.comm_reducer(lambda x, y: x + y, lambda t: 0)):
        with pytest.raises(UserError, match="4 arguments with reduction axes"):
            reduction(a[k], k, a[k] > 0, a[0])


@pytest.mark.parametrize("dom", [-1, (3, 2), (refcomp.const(3), 2), refcomp.const(3) - 4])
def test_a_range_that_ends_before_it_begins(dom):
    with pytest.raises(UserError, match="to reduce over ends before it begins"):
        refcomp.reduce_axis(dom)


def test_the_range_of_an_axis_is_one_argument():
    axis = refcomp.reduce_axis((2, 10), "k")
    assert str(axis.extent) == "8"
    assert refcomp.reduce_axis(axis.dom, "j").dom == axis.dom
    with pytest.raises(UserError, match="64 is not a name for an axis"):
        refcomp.reduce_axis(0, 64)
    for dom in ((), (0, 8, 2)):
        with pytest.raises(UserError, match=r"is not a range\n.*pass \(begin, end\)"):
            refcomp.reduce_axis(dom)
    for dom in ((8, 2), -6):
        with pytest.raises(UserError, match="to reduce over ends before it begins"):
            refcomp.reduce_axis(dom)


def test_a_data_parallel_axis_cannot_be_reduced_over():
    a = refcomp.placeholder((8,), name="A")
    b = refcomp.compute((8,), lambda i: a[i], name="B")
    with pytest.raises(UserError, match="data_parallel axis i"):
        refcomp.sum(a[0], axis=b.op.axis[0])


def _argmax():
    return refcomp.comm_reducer(
        lambda x, y: (
            refcomp.select(x[1] >= y[1], x[0], y[0]),
            refcomp.select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda index, value: (refcomp.const(-1, index), refcomp.min_value(value)),
        name="argmax",
    )


def test_reducers_of_tuples():
    a = refcomp.placeholder((8,), "int32", "A")
    k = refcomp.reduce_axis((0, 8), "k")
    index, value = _argmax()((k, a[k]), axis=k)
    assert (str(index.dtype), str(value.dtype)) == ("i64", "i32")
    assert index.sources is value.sources and (index.value_index, value.value_index) == (0, 1)


def test_a_reducer_must_return_as_many_values_as_it_takes():
    a = refcomp.placeholder((8,), name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    broken = refcomp.comm_reducer(lambda x, y: (x[0],), lambda *t: (0, 0), name="broken")
    with pytest.raises(UserError, match="reducer broken of 2 values combines to 1 values"):
        broken((a[k], a[k]), axis=k)


def test_an_axis_is_named_once():
    k = refcomp.reduce_axis((0, 8), "k")
    with pytest.raises(UserError, match="sum names axis k twice"):
        refcomp.sum(1, axis=[k, k])


def test_both_ends_of_a_range_are_numbers():
    with pytest.raises(UserError, match="'a' cannot be used as an expression"):
        refcomp.reduce_axis((1, "a"))


def test_a_reducer_of_several_values_makes_a_tuple_of_at_least_one():
    k = refcomp.reduce_axis((0, 8), "k")
    both = refcomp.comm_reducer(lambda x, y: x[0] + y[0], lambda s, t: (0, 0), name="both")
    with pytest.raises(UserError, match="reducer both of 2 values does not combine to a tuple"):
        both((1.0, 2.0), axis=k)
    with pytest.raises(UserError, match="reducer both is given no values"):
        both((), axis=k)


def test_lanes_are_reduced_each_for_itself():
    a = refcomp.placeholder((8,), "int32x4", name="A")
    k = refcomp.reduce_axis((0, 8), "k")
    assert refcomp.max(a[k], axis=k).reducer.identities[0].dtype == a.dtype
    difference = refcomp.comm_reducer(lambda x, y: x - y, lambda t: refcomp.const(0, t), "minus")
    with pytest.raises(UserError, match="minus is not a reduction"):
        difference(a[k], axis=k)
    with pytest.raises(UserError, match=r"condition of sum is a vector of 4 lanes\n(.|\n)*select"):
        refcomp.sum(a[k], axis=k, where=a[k] > 0)

"""Classic sizes, padding and numbers, as refcomp's operators take them."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.classic.operators.arguments import (
    chosen,
    get_const_int,
    get_const_tuple,
    get_pad_tuple,
    lower_case,
    padding_of,
    pair_of,
    size_of,
    sizes_of,
    tensor_of,
    window_of,
)
from refcomp.foundation.errors import UserError


def test_extents_of_a_shape_become_ints() -> None:
    A = rc.placeholder((2, 3), name="A")
    assert sizes_of(A.shape, "the shape") == get_const_tuple(A.shape) == (2, 3)
    assert all(type(size) is int for size in get_const_tuple([*A.shape, 4]))
    assert get_const_int(A.shape[1]) == 3


def test_symbolic_sizes_are_refused() -> None:
    with pytest.raises(UserError) as info:
        sizes_of([2, rc.var("n")], "the new shape")
    assert info.value.what == "the new shape has the size n, which is not a constant"
    assert info.value.remedy == "write a compute for a symbolic size"
    with pytest.raises(UserError, match="the expression has the size n"):
        get_const_int(rc.var("n"))


def test_one_number_stands_for_both_axes() -> None:
    assert pair_of(3, "the stride") == pair_of([3, 3], "the stride") == (3, 3)
    with pytest.raises(UserError, match=r"the stride is \(1, 2, 3\)") as info:
        pair_of((1, 2, 3), "the stride")
    assert info.value.remedy == "give one number, or two"


@pytest.mark.parametrize(
    ("padding", "meant"),
    [
        (1, (1, 1, 1, 1)),
        ((1, 2), (1, 2, 1, 2)),
        ([1, 2, 3, 4], (1, 2, 3, 4)),
        ("VALID", (0, 0, 0, 0)),
        ("SAME", (1, 2, 1, 1)),
    ],
)
def test_padding_becomes_four_numbers(padding, meant) -> None:
    assert padding_of(padding, (3, 4)) == get_pad_tuple(padding, (3, 4)) == meant


def test_other_padding_is_refused() -> None:
    with pytest.raises(UserError, match="the padding is 'FULL'"):
        padding_of("FULL", (3, 3))
    with pytest.raises(UserError, match=r"the padding is \(1, 2, 3\)") as info:
        padding_of((1, 2, 3), (3, 3))
    assert info.value.remedy == ("give one number, two numbers, or four: top, left, bottom, right")


def test_a_window_grows_by_its_dilation() -> None:
    W = rc.placeholder((3, 5), name="W")
    assert window_of(W.shape, (1, 1)) == (3, 5)
    assert window_of(W.shape, (2, 3)) == (5, 13)


def test_numbers_beside_tensors_take_their_dtype() -> None:
    A = rc.placeholder((2,), "float64", name="A")
    assert tensor_of(A, A) is A
    assert (tensor_of(2, A).dtype, tensor_of(2, A).shape) == ("float64", ())
    assert tensor_of(rc.const(2, "int8"), A).dtype == "int8"
    assert tensor_of(2.5, 1).dtype == "float32"


def test_unknown_words_are_refused_with_the_nearest() -> None:
    assert chosen("max", {"max": 1, "avg": 2}, "the kind of pooling") == 1
    with pytest.raises(UserError, match="the kind of pooling is 'mx'") as info:
        chosen("mx", {"max": 1, "avg": 2}, "the kind of pooling")
    assert info.value.remedy == "did you mean max? use max or avg"


@pytest.mark.parametrize("value", [3, "ab", None])
def test_lists_of_sizes_are_lists(value) -> None:
    with pytest.raises(UserError) as info:
        sizes_of(value, "the new shape")
    assert info.value.what == f"the new shape is {value!r}"
    assert info.value.remedy == "give a tuple of numbers"


@pytest.mark.parametrize("value", ["N", None, 1.5])
def test_sizes_are_whole_numbers(value) -> None:
    with pytest.raises(UserError) as info:
        size_of(value, "the stride")
    assert info.value.what == f"the stride has the size {value!r}"
    assert info.value.remedy == "give whole numbers"
    with pytest.raises(UserError, match="the padding has the size"):
        padding_of((1, value), (3, 3))
    assert (size_of(np.int64(2), "a"), size_of(2.0, "a")) == (2, 2)


def test_words_are_texts() -> None:
    assert lower_case("BILINEAR", "the method") == "bilinear"
    with pytest.raises(UserError, match="the method is 3") as info:
        lower_case(3, "the method")
    assert info.value.remedy == "give a text"

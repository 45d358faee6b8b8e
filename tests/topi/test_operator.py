"""The registry: what each operator takes, and what it refuses."""

import math

import pytest

from refcomp.foundation.errors import UserError
from refcomp.topi.operator import (
    AttributeSpec,
    Operator,
    find_operator,
    operator_names,
    register_operator,
)


def test_every_operator_has_both_meanings_and_sane_arity() -> None:
    for name in operator_names():
        operator = find_operator(name)
        assert callable(operator.compute) and callable(operator.numpy)
        assert 0 <= operator.least_inputs <= len(operator.inputs)


def test_unknown_operator_lists_the_known() -> None:
    with pytest.raises(UserError, match="unknown operator 'conv4d'") as info:
        find_operator("conv4d")
    assert "conv3d" in info.value.remedy


def test_a_name_is_registered_once() -> None:
    with pytest.raises(UserError, match="operator relu is registered already"):
        register_operator(find_operator("relu"))


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("relu", [], "relu cannot be applied to 0 inputs"),
        ("relu", [1, 2], "relu cannot be applied to 2 inputs"),
        ("conv2d", [1, None], "conv2d cannot be applied to 2 inputs, without weight"),
    ],
)
def test_wrong_inputs_are_refused(name, inputs, message) -> None:
    with pytest.raises(UserError, match=message):
        find_operator(name).check_inputs(inputs)


def test_optional_and_repeated_inputs_are_taken() -> None:
    find_operator("conv2d").check_inputs([1, 2])
    find_operator("conv2d").check_inputs([1, 2, None])
    find_operator("concatenate").check_inputs([1] * 9)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "max_pool2d lacks the attribute kernel"),
        ({"kernel": (2, 2), "size": 1}, "max_pool2d has no attribute 'size'"),
        (
            {"kernel": [2, 2]},
            "attribute kernel of max_pool2d is .2, 2.\n  what to do: give a value of type tuple",
        ),
        (
            {"kernel": (2, 2), "layout": 1},
            "attribute layout of max_pool2d is 1\n  what to do: give a value of type str",
        ),
    ],
)
def test_wrong_attributes_are_refused(attributes, message) -> None:
    with pytest.raises(UserError, match=message):
        find_operator("max_pool2d").check_attributes(attributes)


def test_bool_is_no_int() -> None:
    spec = AttributeSpec("count", (int,), 1)
    operator = Operator("x", ("a",), (spec,), compute=lambda a: a, numpy=lambda a: a)
    with pytest.raises(
        UserError, match="attribute count of x is True\n  what to do: give a value of type int"
    ):
        operator.check_attributes({"count": True})
    assert find_operator("clip").attributes[0].default == -math.inf

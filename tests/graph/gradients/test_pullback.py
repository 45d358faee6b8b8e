"""Shorthand of rules: attributes with defaults, constants made once, sums to a shape."""

import pytest

import refcomp as rc
from refcomp.graph.gradients.pullback import (
    Numbers,
    Pullback,
    constant_extents,
    element_count,
)


def _pullback(operator="softmax", attributes=None, shape=(2, 3)):
    builder = rc.graph.GraphBuilder("net")
    x = builder.input("x", "float32", shape)
    output = builder.node(operator, [x], attributes or {}, "y")
    head = builder.input("head", "float32", output.shape)
    (node,) = builder.finish([output]).nodes
    return Pullback(builder, Numbers(builder), node, (head,))


def test_attributes_have_their_defaults() -> None:
    pull = _pullback()
    assert pull.attribute("axis") == -1
    assert pull.given("axis") == {}
    changed = _pullback(attributes={"axis": 0})
    assert changed.integer("axis") == 0
    assert changed.given("axis", "other") == {"axis": 0}


def test_a_constant_is_made_once_for_each_dtype() -> None:
    pull = _pullback()
    first = pull.number(0.5, pull.head)
    assert pull.number(0.5, pull.head) is first
    assert str(first) == "number: f32[]"
    assert pull.number(0.0, pull.head).name == "zero"
    assert pull.number(1.0, pull.head).name == "one"


def test_a_negative_zero_is_another_constant() -> None:
    pull = _pullback()
    assert pull.number(-0.0, pull.head) is not pull.number(0.0, pull.head)


def test_scaling_by_one_adds_no_node() -> None:
    pull = _pullback()
    assert pull.scaled(pull.head, 1.0) is pull.head


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((2, 3), (2, 3)), ((3,), (3,)), ((2, 1), (2, 1)), ((), ()), ((1, 1), (1, 1))],
)
def test_values_are_summed_to_a_shape(shape, expected):
    pull = _pullback()
    assert pull.summed_to(pull.head, shape).shape == expected


def test_counts_need_constant_extents() -> None:
    pull = _pullback(shape=("N", 3))
    assert constant_extents(pull.head.shape) is None
    assert element_count(pull.head, [1]) == 3
    assert element_count(pull.head, [0, 1]) is None
    assert element_count(pull.head, []) == 1

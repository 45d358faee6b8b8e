"""The table of control operators."""

from refcomp.graph.control.operators import CONTROL_OPERATORS, find_control
from refcomp.topi.operator import operator_names


def test_names_are_found_and_are_no_operators_on_tensors() -> None:
    for name, operator in CONTROL_OPERATORS.items():
        assert find_control(name) is operator
        assert operator.name == name
    assert find_control("relu") is None
    assert not set(CONTROL_OPERATORS) & set(operator_names())

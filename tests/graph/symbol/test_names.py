"""Automatic names of nodes."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.names import NameScope, current_names


def test_each_operator_has_numbers_of_its_own() -> None:
    x = rc.sym.Variable("x")
    with NameScope():
        names = [rc.sym.relu(x).name, rc.sym.tanh(x).name, rc.sym.relu(x).name]
    assert names == ["relu0", "tanh0", "relu1"]


def test_scopes_nest_and_end() -> None:
    outside = current_names()
    with NameScope() as first:
        assert first.name_for(None, "relu") == "relu0"
        with NameScope() as second:
            assert current_names() is second
            assert second.name_for(None, "relu") == "relu0"
        assert current_names() is first
        assert first.name_for(None, "relu") == "relu1"
    assert current_names() is outside


def test_prefix_begins_names_of_nodes_and_parameters_but_not_of_variables() -> None:
    with rc.sym.Prefix("stage_"):
        net = rc.sym.dense(rc.sym.Variable("x"), units=2, name="fc")
    assert net.list_input_names() == ["x", "stage_fc_weight", "stage_fc_bias"]


def test_empty_and_other_names_are_refused() -> None:
    x = rc.sym.Variable("x")
    with pytest.raises(UserError, match="a symbol cannot be called ''"):
        rc.sym.relu(x, name="")
    with pytest.raises(UserError, match="3 is not a name for a symbol"):
        rc.sym.relu(x, name=3)
    with pytest.raises(UserError, match="3 is not a name for a prefix"):
        rc.sym.Prefix(3)

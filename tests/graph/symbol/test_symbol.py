"""Symbols: inputs and outputs, attributes, composition, files, refusals."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from tests.graph.symbol.applied import numbers, one

X, Y = rc.sym.Variable("x"), rc.sym.Variable("y")


def test_outputs_are_chosen_by_number_and_by_name() -> None:
    parts = rc.sym.split(X, indices_or_sections=3, name="s")
    assert len(parts) == 3
    assert [part.list_output_names() for part in parts] == [
        *(["s_output0"], ["s_output1"], ["s_output2"])
    ]
    assert parts["s_output1"].list_output_names() == parts[1].list_output_names()
    assert parts[-1].list_output_names() == ["s_output2"]
    assert parts.name == "s"
    assert repr(parts[0]) == "<Symbol s_output0>"


def test_group_has_all_outputs() -> None:
    group = rc.sym.Group([X, rc.sym.exp(X, name="e")])
    assert group.list_output_names() == ["x", "e_output"]
    assert group.name is None
    children = group.get_children()
    assert children is not None
    assert children.list_output_names() == ["x"]
    assert X.get_children() is None


def test_internals_may_become_outputs() -> None:
    net = rc.sym.relu(rc.sym.exp(X, name="e"), name="r")
    data = numbers(3)
    np.testing.assert_array_equal(
        one(net.get_internals()["e_output"], data), one(rc.sym.exp(X), data)
    )


def test_attributes_of_all_nodes() -> None:
    net = rc.sym.softmax(rc.sym.leaky_relu(X, alpha=0.5, name="a"), name="s")
    assert net.attr("axis") == "-1"
    assert net.attr("other") is None
    assert net.list_attr(recursive=True) == {"a$alpha": "0.5", "s$axis": "-1"}
    with pytest.raises(
        UserError, match=r"a group of several nodes has no attributes\n(.|\n)*recurs"
    ):
        rc.sym.Group([X, Y]).list_attr()


def test_network_is_composed_by_name_and_by_place() -> None:
    net = rc.sym.elemwise_sub(rc.sym.exp(X), Y)
    data = numbers(2, 3)
    doubled = net(x=Y * 2)
    assert doubled.list_input_names() == ["y"]
    np.testing.assert_array_equal(
        one(doubled, data), np.exp(data.astype("f8") * 2).astype("f4") - data
    )
    placed = net(rc.sym.Variable("a"), rc.sym.Variable("b"))
    assert placed.list_input_names() == ["a", "b"]
    assert net.list_input_names() == ["x", "y"]
    named = net(name="difference", x=Y)
    assert (named.name, named.list_input_names()) == ("difference", ["y"])
    with pytest.raises(UserError, match="several nodes cannot all be called 'both'"):
        rc.sym.Group([X, Y])(name="both")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rc.sym.exp(X)(z=Y), "the symbol has no variable 'z'"),
        (lambda: rc.sym.exp(X)(Y, Y), "2 symbols cannot replace 1 variables\n(.|\n)*variables: x"),
        (lambda: rc.sym.exp(X)(Y, x=Y), "composed by position and by name at once"),
        (lambda: rc.sym.exp(X)(x=3), "variable 'x' cannot be a int"),
        (
            lambda: rc.sym.exp(rc.sym.split(X, indices_or_sections=2, name="s")),
            r"data of exp node 'exp\d+' cannot be a symbol with 2 outputs\n(.|\n)*s_output0",
        ),
        (lambda: rc.sym.exp(np.ones(2)), "the input data of exp node .* cannot be a ndarray"),
        (lambda: rc.sym.exp(X, Y), "exp is applied to 2 symbols\n(.|\n)*it takes data; attributes"),
        (lambda: rc.sym.exp(X, data=Y), "the input data is given twice"),
        (lambda: rc.sym.exp(X, axis=1), "exp has no attribute 'axis'"),
        (
            lambda: rc.sym.dense(X, bias=Y, units=2, use_bias=False),
            "the input bias is given, but does not exist\n(.|\n)*the inputs are data, weight",
        ),
        (lambda: rc.sym.elemwise_sum(), "elemwise_sum is applied to no symbols"),
        (lambda: rc.sym.elemwise_sum(X, 3), "an input of elemwise_sum node .* cannot be a int"),
        (lambda: X[1], "the symbol has no output 1\n(.|\n)*0 to 0, or a name"),
        (lambda: X[True], "the symbol has no output True"),
        (lambda: X[1.5], "the symbol has no output 1.5"),
        (lambda: X["y"], "the symbol has no output 'y'\n(.|\n)*outputs: x"),
        (lambda: rc.sym.Symbol([]), r"\[\] are not outputs of nodes"),
        (lambda: X.attr(3), "3 is not a name for an attribute"),
    ],
)
def test_wrong_use_is_refused_in_words(call: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()


def test_unnamed_inputs_become_variables() -> None:
    assert rc.sym.relu(name="r").list_input_names() == ["r_data"]
    assert rc.sym.dense(X, bias=Y, units=2, name="fc").list_input_names() == [
        *("x", "fc_weight", "y")
    ]
    assert rc.sym.dense(X, bias=None, units=2, name="f").list_input_names()[-1] == "f_bias"

"""Shapes and dtypes of symbols, and graphs made of them."""

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError

X, Y = rc.sym.Variable("x"), rc.sym.Variable("y")


def layers() -> rc.sym.Symbol:
    """Return a network with a convolution, a batch norm and a dense layer."""
    net = rc.sym.conv2d(X, channels=4, kernel_size=(3, 3), name="conv")
    net = rc.sym.relu(rc.sym.batch_norm(net, name="bn"))
    return rc.sym.dense(rc.sym.flatten(net), units=2, name="fc")


def test_shapes_of_parameters_follow_from_the_data() -> None:
    net = layers()
    variables, outputs = net.infer_shape(x=(1, 3, 8, 8))
    assert dict(zip(net.list_input_names(), variables, strict=True)) == {
        "x": (1, 3, 8, 8),
        "conv_weight": (4, 3, 3, 3),
        "conv_bias": (4,),
        "bn_gamma": (4,),
        "bn_beta": (4,),
        "bn_moving_mean": (4,),
        "bn_moving_var": (4,),
        "fc_weight": (2, 144),
        "fc_bias": (2,),
    }
    assert outputs == [(1, 2)]


def test_shapes_may_be_symbolic() -> None:
    assert layers().infer_shape(x=("N", 3, 8, 8))[1] == [("N", 2)]


def test_shape_of_a_variable_may_stand_at_the_variable() -> None:
    x = rc.sym.Variable("x", shape=("N", 3), dtype="float64")
    net = rc.sym.dense(x, units=2, name="fc")
    assert net.infer_shape() == ([("N", 3), (2, 3), (2,)], [("N", 2)])
    assert net.infer_dtype() == (["float64"] * 3, ["float64"])
    assert net.infer_shape(x=(5, 3))[1] == [(5, 2)]
    again = rc.sym.load_json(net.json())
    assert again.infer_shape() == net.infer_shape()


def test_dtype_of_parameters_is_that_of_the_data() -> None:
    variables, outputs = layers().infer_dtype(x="float16")
    assert set(variables) == {"float16"}
    assert outputs == ["float16"]
    graph = layers().to_graph({"x": (1, 3, 8, 8)}, {"x": "float16"})
    assert {str(value.dtype) for value in graph.values()} == {"f16"}


def test_inputs_of_a_graph_stand_in_the_order_of_the_variables() -> None:
    net = rc.sym.elemwise_add(rc.sym.exp(X), Y)
    graph = net.to_graph({"y": (2,), "x": (2,)}, name="sums")
    assert [value.name for value in graph.inputs] == net.list_input_names() == ["x", "y"]
    assert graph.name == "sums"


def test_parameters_may_be_constants_of_a_graph() -> None:
    weight = np.ones((2, 3), "float32")
    net = rc.sym.dense(X, units=2, use_bias=False, name="fc")
    graph = net.to_graph({"x": (1, 3)}, constants={"fc_weight": weight})
    assert [value.name for value in graph.inputs] == ["x"]
    ((value, array),) = graph.constants.items()
    assert value.name == "fc_weight"
    assert np.shares_memory(array, weight)


def test_node_may_have_the_name_of_a_variable() -> None:
    hidden = rc.sym.relu(X, name="w")
    net = rc.sym.dense(hidden, rc.sym.Variable("w"), units=2, use_bias=False, name="x")
    graph = net.to_graph({"x": (1, 3)})
    assert [value.name for value in graph.inputs] == ["x", "w"]
    assert [node.name for node in graph.nodes] == ["w.1", "x.1"]
    assert net.infer_shape(x=(1, 3)) == ([(1, 3), (2, 3)], [(1, 2)])


def test_outputs_may_be_variables_and_repeat() -> None:
    graph = rc.sym.Group([X, X, rc.sym.exp(X, name="e")]).to_graph({"x": (2,)})
    assert [value.name for value in graph.outputs] == ["x", "x", "e"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: layers().infer_shape(),
            r"the shape of the variable 'x' is unknown\n(.|\n)*conv2d node 'conv' does not "
            r"determine the shape of its data\n(.|\n)*give the shape of 'x'",
        ),
        (
            lambda: layers().infer_shape(data=(1, 3, 8, 8)),
            r"the symbol has no variable 'data'(.|\n)*variables: x, conv_weight",
        ),
        (
            lambda: layers().infer_shape(conv_weigh=(1, 3, 8, 8)),
            r"no variable 'conv_weigh'(.|\n)*did you mean conv_weight",
        ),
        (lambda: layers().infer_dtype(z="int8"), "the symbol has no variable 'z'"),
        (lambda: layers().infer_dtype(x="int9"), r"int9(.|\n)*variable 'x'"),
        (
            lambda: X.infer_shape(),
            r"the shape of the variable 'x' is unknown\n(.|\n)*no operator r",
        ),
        (lambda: X.infer_shape(x=(-1,)), r"\(-1,\) is not a shape for variable 'x'"),
        (lambda: X.infer_shape(x=(2**40,)), r"is not a shape for variable 'x'"),
        (
            lambda: X.infer_shape(x=(1.5,)),
            r"is not a shape for variable 'x'\n(.|\n)*such as \(1, 3",
        ),
        (lambda: X.infer_shape(x=(1,) * 65), r"is not a shape for variable 'x'"),
        (lambda: X.infer_shape(x={}), r"is not a shape for variable 'x'"),
        (lambda: X.infer_shape(x=None), r"the shape of the variable 'x' is unknown"),
        (lambda: X.infer_shape(x=True), r"True is not a shape for variable 'x'"),
        (lambda: X.infer_shape(x="(2, x!)"), r"is not a shape for variable 'x'"),
        (
            lambda: rc.sym.elemwise_add(X, Y, name="sum").infer_shape(),
            r"the shape of the variable 'x' is unknown\n(.|\n)*elemwise_add node 'sum' does not",
        ),
        (lambda: X.to_graph([1]), r"\[1\] does not map names of variables"),
        (
            lambda: layers().infer_shape(x=(1, 3)),
            r"conv2d node 'conv'|unknown",
        ),
        (
            lambda: X.to_graph({"x": (2,)}, constants={"x": np.ones(3, "float32")}),
            r"the parameter x: f32\[2\] cannot be f32\[3\]\n(.|\n)*dtype and shape",
        ),
    ],
)
def test_what_is_unknown_or_wrong_is_refused(call: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        call()


def test_refusal_of_an_operator_names_node_and_inputs() -> None:
    net = rc.sym.softmax(X, axis=3, name="probabilities")
    with pytest.raises(UserError, match=r"softmax node 'probabilities'; inputs: x: f32\[2, 3\]"):
        net.infer_shape(x=(2, 3))


def test_scalar_extent_is_a_shape() -> None:
    assert X.infer_shape(x=4)[1] == [(4,)]
    assert X.infer_shape(x="(2, N)")[1] == [(2, "N")]

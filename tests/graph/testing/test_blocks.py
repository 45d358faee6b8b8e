"""Blocks of layers."""

import refcomp as rc
from refcomp.graph.testing.blocks import classifier, conv_bn, conv_bn_relu, conv_relu

X = rc.sym.Variable("x")
SHAPE = (1, 4, 8, 8)


def test_blocks_have_the_layers_that_they_name() -> None:
    net = conv_bn(X, 6, "a", strides=(2, 2), padding=(1, 1), groups=2, epsilon=1e-3)
    assert net.list_input_names()[1:] == [
        *("a_conv_weight", "a_bn_gamma", "a_bn_beta", "a_bn_moving_mean", "a_bn_moving_var")
    ]
    variables, outputs = net.infer_shape(x=SHAPE)
    assert (variables[1], outputs) == ((6, 2, 3, 3), [(1, 6, 4, 4)])
    assert net.attr("epsilon") == "0.001"
    net = conv_bn_relu(X, 6, "b", kernel=(1, 1))
    assert net.list_output_names() == ["b_relu_output"]
    net = conv_relu(X, 6, "c", kernel=(1, 3))
    assert net.list_input_names() == ["x", "c_weight", "c_bias"]
    assert net.infer_shape(x=SHAPE)[1] == [(1, 6, 8, 6)]


def test_classifier_takes_the_means_of_channels() -> None:
    net = classifier(X, 3, "out")
    assert net.list_input_names() == ["x", "out_weight", "out_bias"]
    assert net.infer_shape(x=SHAPE) == ([SHAPE, (3, 4), (3,)], [(1, 3)])

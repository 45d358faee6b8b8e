import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.converters.windows import NodeWindows, shared_padding


def convert(shape, **attributes):
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    node = helper.make_node("MaxPool", ["x"], ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", [info], [output])
    sets = [helper.make_opsetid("", 22)]
    return from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString())


@pytest.mark.parametrize(
    ("mode", "shape", "padding"),
    [
        ("SAME_UPPER", (1, 1, 5), (0, 1)),
        ("SAME_LOWER", (1, 1, 5), (1, 0)),
        ("SAME_UPPER", (1, 1, 6), (0, 0)),
        ("VALID", (1, 1, 5), (0, 0)),
    ],
)
def test_automatic_padding(mode, shape, padding):
    graph = convert(shape, kernel_shape=[2], strides=[2], auto_pad=mode)
    assert graph.nodes[0].attributes.get("padding", (0, 0)) == padding


def test_pads_do_not_count_beside_automatic_padding():
    graph = convert((1, 1, 5), kernel_shape=[3], pads=[2, 2], auto_pad="VALID")
    assert graph.nodes[0].attributes.get("padding", (0, 0)) == (0, 0)


def test_stride_1_needs_no_extent():
    graph = convert((1, 1, "W"), kernel_shape=[4], auto_pad="SAME_UPPER")
    assert graph.nodes[0].attributes.get("padding", (0, 0)) == (1, 2)


def test_other_strides_need_the_extent():
    graph = convert((1, 1, "W"), kernel_shape=[4], strides=[2], auto_pad="SAME_UPPER")
    assert graph.nodes[0].operator == "onnx.MaxPool"


def test_shared_padding():
    assert shared_padding([3, 4], odd_at_end=True) == (1, 2, 2, 2)
    assert shared_padding([3, 4], odd_at_end=False) == (2, 2, 1, 2)
    # Half of a negative number is rounded down, as in ONNX's evaluator.
    assert shared_padding([-1], odd_at_end=True) == (-1, 0)


def test_windows_with_another_axis():
    windows = NodeWindows((3,), (2,), (4,), (1, 0)).with_axis()
    assert windows == NodeWindows((1, 3), (1, 2), (1, 4), (0, 1, 0, 0))
    assert windows.reach(1) == 9


@pytest.mark.parametrize(
    ("shape", "attributes", "message"),
    [
        ((1, 2), {"kernel_shape": [2]}, "its input x: f32.1, 2. has 2 dimensions"),
        ((1, 2, 5), {"kernel_shape": [2, 2]}, r"its attribute kernel_shape is \[2, 2\]"),
        ((1, 2, 5), {"kernel_shape": [0]}, r"its attribute kernel_shape is \[0\]"),
        ((1, 2, 5), {"kernel_shape": [2], "strides": [0]}, r"its attribute strides is \[0\]"),
        ((1, 2, 5), {"kernel_shape": [2], "pads": [-1, 0]}, r"its attribute pads is \[-1, 0\]"),
        ((1, 2, 5), {"kernel_shape": [2], "dilations": [1, 1]}, "its attribute dilations is"),
        ((1, 2, 5), {"kernel_shape": [2], "auto_pad": "SAME_UPER"}, "auto_pad is 'SAME_UPER'"),
    ],
)
def test_what_is_ill_formed(shape, attributes, message):
    with pytest.raises(UserError, match=message):
        convert(shape, **attributes)


def test_too_many_spatial_axes():
    with pytest.raises(Unsupported, match="its input has 4 spatial axes, more than 3"):
        convert((1, 1, 2, 2, 2, 2), kernel_shape=[1, 1, 1, 1])

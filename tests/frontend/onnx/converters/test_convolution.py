import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check


def floats(*shape, dtype=np.float32):
    count = int(np.prod(shape))
    return (np.arange(count) * 7 % 11 - 5).reshape(shape).astype(dtype) / dtype(4)


def bytes_(*shape, dtype=np.uint8):
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % 251).reshape(shape).astype(dtype)


X1, X2, X3 = floats(2, 4, 7), floats(1, 4, 6, 5), floats(1, 2, 4, 3, 4)
W1, W2, W3 = floats(6, 2, 3), floats(6, 2, 3, 2), floats(3, 2, 2, 2, 2)
B = floats(6)
CONV = [
    NodeCase("Conv", 1, [X2, W2, B], {"group": 2, "pads": [1, 0, 0, 1]}),
    NodeCase("Conv", 11, [X1, W1, B], {"group": 2, "strides": [2]}, label="1-D"),
    NodeCase("Conv", 11, [X2, W2], {"group": 2, "dilations": [2, 1], "strides": [1, 2]}),
    NodeCase("Conv", 11, [X3, W3, floats(3)], {"pads": [0, 1, 0, 1, 0, 1]}, label="3-D"),
    *(
        NodeCase("Conv", 11, [X2, W2], {"group": 2, "auto_pad": mode, "strides": [2, 2]})
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")
    ),
    NodeCase("Conv", 22, [X2, W2, B], {"group": 2, "kernel_shape": [3, 2]}),
    NodeCase("Conv", 22, [X2.astype("f8"), W2.astype("f8")], {"group": 2}, label="f64"),
]
T1, T2, T3 = floats(2, 4, 3), floats(1, 4, 3, 4), floats(1, 2, 2, 3, 2)
V1, V2, V3 = floats(4, 3, 3), floats(4, 3, 3, 2), floats(2, 3, 2, 3, 2)


def spread(data, weight, stride, width):
    """Return a transposed convolution of sequences in as many elements, by definition."""
    result = np.zeros((data.shape[0], weight.shape[1], width), np.float32)
    for i in range(data.shape[2]):
        for k in range(weight.shape[2]):
            result[:, :, i * stride + k] += data[:, :, i] @ weight[:, :, k]
    return result


TRANSPOSED = [
    NodeCase("ConvTranspose", 1, [T2, V2], {"strides": [2, 2], "pads": [1, 0, 0, 1]}),
    NodeCase("ConvTranspose", 11, [T1, V1, floats(3)], {"dilations": [2]}, label="1-D"),
    NodeCase("ConvTranspose", 11, [T2, V2, floats(6)], {"group": 2}, label="groups"),
    NodeCase("ConvTranspose", 11, [T3, V3], {"strides": [1, 2, 1]}, label="3-D"),
    NodeCase("ConvTranspose", 11, [T2, V2], {"output_padding": [1, 0], "strides": [2, 2]}),
    NodeCase("ConvTranspose", 22, [T2, V2], {"output_shape": [5, 7], "strides": [2, 2]}),
    NodeCase(
        "ConvTranspose",
        22,
        [T2, V2],
        {"output_shape": [6, 7], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        label="upper",
    ),
    NodeCase(
        "ConvTranspose",
        22,
        [T2, V2],
        {"auto_pad": "SAME_LOWER", "strides": [2, 1]},
        label="same",
    ),
    NodeCase(
        "ConvTranspose",
        22,
        [T1, V1],
        {"auto_pad": "SAME_LOWER", "strides": [4]},
        expected=[spread(T1, V1, 4, 12)],
        wrong={"ONNX Runtime": "its result has not the extent input * stride, as the text says"},
        label="gaps",
    ),
    NodeCase(
        "ConvTranspose",
        22,
        [T1, V1, B[:3]],
        {"output_shape": [9]},
        expected=[np.pad(spread(T1, V1, 1, 5), ((0, 0), (0, 0), (2, 2))) + B[:3, None]],
        wrong={"ONNX Runtime": "it cuts negative padding to 0, other than the equations"},
        label="extended",
    ),
]
I1, I2, I3 = bytes_(1, 2, 6), bytes_(1, 2, 5, 4), bytes_(1, 2, 3, 3, 4)
J1, J2, J3 = bytes_(3, 2, 2), bytes_(3, 2, 3, 2), bytes_(3, 2, 2, 2, 2)
ZERO = np.uint8(7)
ZEROS = np.array([3, 100, 200], np.uint8)


def integer_sums(data, weight, zero, zeros):
    """Return a convolution of integers without padding, by definition."""
    wide = data.astype(np.int64) - int(zero)
    factors = weight.astype(np.int64) - zeros.reshape(-1, *(1,) * (weight.ndim - 1))
    axes = tuple(range(2, data.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(wide, weight.shape[2:], axes)
    # [n, c, places..., kernel...] and [o, c, kernel...] -> [n, places..., o]
    behind = tuple(range(data.ndim, 2 * data.ndim - 2))
    sums = np.tensordot(windows, factors, ((1, *behind), (1, *axes)))
    return np.moveaxis(sums, -1, 1).astype(np.int32)


INTEGERS = [
    NodeCase(
        "ConvInteger",
        10,
        [x, w, ZERO, ZEROS],
        expected=[integer_sums(x, w, ZERO, ZEROS)],
        label=f"{x.ndim - 2}-D",
        wrong={
            "ONNX's evaluator": "it cannot apply a zero point for each channel",
            "ONNX Runtime": "it takes one zero point of the weights, the text one a channel",
        },
    )
    for x, w in ((I1, J1), (I2, J2), (I3, J3))
]
INTEGERS += [
    NodeCase("ConvInteger", 10, [I2, J2, ZERO], {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    NodeCase("ConvInteger", 10, [I3, J3], expected=[integer_sums(I3, J3, 0, np.zeros(3, int))]),
]
SCALE = np.float32(0.5)
SCALES = np.array([0.25, 0.5, 0.01], np.float32)
SHIFT = np.array([1000, -2000, 5], np.int32)


def quantized(data, weight):
    """Return QLinearConv without padding, by definition."""
    ones = (1,) * (data.ndim - 2)
    sums = integer_sums(data, weight, ZERO, ZEROS) + SHIFT.reshape(1, -1, *ones)
    scaled = sums * (float(SCALE) * SCALES.astype(float) / 100.0).reshape(1, -1, *ones)
    return np.clip(np.round(scaled) + 128, 0, 255).astype(np.uint8)


QUANTIZED = [
    NodeCase(
        "QLinearConv",
        10,
        [x, SCALE, ZERO, w, SCALES, ZEROS, np.float32(100), np.uint8(128), SHIFT],
        expected=[quantized(x, w)],
        label=f"{x.ndim - 2}-D",
        wrong={
            "ONNX's evaluator": "it does not broadcast scales of channels over spatial axes",
            "ONNX Runtime": "it takes one zero point of unsigned weights, the text one a channel",
        },
    )
    for x, w in ((I1, J1), (I2, J2), (I3, J3))
]
OFFSETS = floats(1, 2 * 4, 2, 2)
DEFORMABLE = [
    NodeCase(
        "DeformConv",
        version,
        [floats(1, 2, 3, 3), floats(2, 2, 2, 2), OFFSETS, floats(2), floats(1, 4, 2, 2)],
    )
    for version in (19, 22)
]
LATER, TAPS, PAST = floats(2, 3, 5), floats(3, 1, 3), floats(2, 3, 2)


def causal(past, activate=lambda x: x):
    whole = np.concatenate([past, LATER], axis=2)
    views = np.lib.stride_tricks.sliding_window_view(whole, 3, axis=2)
    result = (views * TAPS[:, 0, None, :]).sum(-1) + B[:3, None]
    return [activate(result).astype(np.float32), whole[:, :, -2:]]


CAUSAL = [
    NodeCase(
        "CausalConvWithState",
        27,
        [LATER, TAPS, B[:3], past],
        {"activation": name},
        expected=causal(np.zeros_like(PAST) if past is None else past, activate),
        outputs=2,
        label=name,
    )
    for name, past, activate in (
        ("none", None, lambda x: x),
        ("swish", PAST, lambda x: x / (1 + np.exp(-x))),
    )
]
CASES = [*CONV, *TRANSPOSED, *INTEGERS, *QUANTIZED, *DEFORMABLE, *CAUSAL]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def model(operator, shapes, opset=22, **attributes):
    infos = [
        helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, shape)
        for k, shape in enumerate(shapes)
    ]
    output = helper.make_empty_tensor_value_info("y")
    made = ["y", "state"] if operator.startswith("Causal") else ["y"]
    node = helper.make_node(operator, [info.name for info in infos], made, **attributes)
    graph = helper.make_graph([node], "net", infos, [output])
    sets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=sets).SerializeToString()


def operators(graph):
    return [node.operator for node in graph.nodes]


def test_symbolic_batch_and_size_need_no_macro():
    graph = from_onnx(model("Conv", [("N", 4, "H", "W"), (6, 4, 3, 3)], auto_pad="SAME_UPPER"))
    assert operators(graph) == ["conv2d"]
    assert graph.outputs[0].shape == ("N", 6, "H", "W")


def test_padding_that_depends_on_a_symbol_is_left_to_the_run():
    shapes = [("N", 4, "H", "W"), (6, 4, 3, 3)]
    graph = from_onnx(model("Conv", shapes, auto_pad="SAME_UPPER", strides=[2, 2]))
    assert operators(graph)[0] == "onnx.Conv"


def test_transposed_convolution_of_symbolic_size():
    shapes = [("N", 4, "H", "W"), (4, 3, 3, 3)]
    graph = from_onnx(model("ConvTranspose", shapes, auto_pad="SAME_LOWER", strides=[2, 2]))
    assert operators(graph) == ["conv2d_transpose"]


@pytest.mark.parametrize(
    ("operator", "shapes", "attributes", "message"),
    [
        ("Conv", [(1, 4, 5, 5), (6, 4, 3)], {}, "its weights are"),
        ("Conv", [(1, 4, 5), (6, 4, 3)], {"kernel_shape": [2]}, "its attribute kernel_shape is"),
        ("Conv", [(1, 4, 5), (6, 3, 3)], {}, "is 4 instead of 3"),
        ("ConvTranspose", [(1, 4, 5), (4, 4, 3)], {"output_padding": [-1]}, "output_padding is"),
        ("ConvTranspose", [(1, 4, 5), (4, 4, 3)], {"output_shape": [-1]}, "output_shape is"),
        (
            "CausalConvWithState",
            [(1, 4, 5), (4, 1, 3)],
            {"activation": "silo"},
            "activation is 'silo'",
        ),
    ],
)
def test_what_does_not_fit(operator, shapes, attributes, message):
    opset = 27 if operator.startswith("Causal") else 22
    with pytest.raises(UserError, match=message):
        from_onnx(model(operator, shapes, opset, **attributes))


def test_deformable_convolution_of_sequences():
    shapes = [(1, 2, 5), (2, 2, 2), (1, 2, 4)]
    with pytest.raises(Unsupported, match="its input has not two spatial axes"):
        from_onnx(model("DeformConv", shapes))


def test_all_versions_have_a_case():
    tested = {case.pair for case in CASES}
    wanted = {case.operator for case in CASES}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.name in wanted:
            assert ("", schema.name, schema.since_version) in tested

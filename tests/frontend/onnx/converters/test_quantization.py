import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from refcomp.graph.evaluate import evaluate_graph
from tests.frontend.onnx.converters.cases import NodeCase, check, versions

X = np.array([[0, 1.25, -3, 100], [2.5, 3.5, -200, 7]], np.float32)
ROWS = np.array([0.5, 2], np.float32)
COLUMNS = np.array([0.5, 1, 2, 4], np.float32)
BF16 = ml_dtypes.bfloat16
INTEGERS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
    "uint2": (0, 3),
}
FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
SMALL_FLOATS = ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")


def kind_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def quantized(data, scale, zero, name):
    """Return round(data / scale) + zero, clamped. Scale and zero broadcast to the data."""
    least, greatest = INTEGERS[name]
    wide = np.rint(data / scale).astype(np.float64) + np.asarray(zero).astype(np.float64)
    return wide.clip(least, greatest).astype(np.int32).astype(kind_of(name))


def quantize():
    scale = np.array(0.5, np.float32)
    for version in versions("QuantizeLinear"):
        zero = np.array(3, np.uint8)
        right = [quantized(X, scale, zero, "uint8")]
        yield NodeCase("QuantizeLinear", version, [X, scale, zero], {}, right)
        right = [quantized(X, scale, 0, "uint8")]
        yield NodeCase("QuantizeLinear", version, [X, scale], {}, right, label="no zero point")
        if version < 13:
            continue
        zero = np.array([1, -2, 3, -4], np.int8)
        right = [quantized(X, COLUMNS, zero, "int8")]
        yield NodeCase("QuantizeLinear", version, [X, COLUMNS, zero], {}, right, label="axis 1")
        given = [X, ROWS, zero[:2]]
        right = [quantized(X, ROWS[:, None], zero[:2, None], "int8")]
        yield NodeCase("QuantizeLinear", version, given, {"axis": -2}, right, label="axis -2")
    yield from quantize_types()
    yield from quantize_blocks()
    yield from quantize_precisions()


def quantize_types():
    scale = np.array(2, np.float32)
    for name in INTEGERS:
        version = 25 if name.endswith("2") else 21
        zero = np.array(1).astype(kind_of(name))
        right = [quantized(X, scale, 1, name)]
        yield NodeCase("QuantizeLinear", version, [X, scale, zero], {}, right, label=name)
        code = onnx.helper.np_dtype_to_tensor_dtype(kind_of(name))
        right = [quantized(X, scale, 0, name)]
        given = {"output_dtype": code}
        yield NodeCase("QuantizeLinear", version, [X, scale], given, right, label=f"{name} named")
    for name in FLOATS:
        zero = np.array(0).astype(kind_of(name))
        right = [onnx.numpy_helper.saturate_cast(X / scale, kind_of(name))]
        yield NodeCase("QuantizeLinear", 19, [X, scale, zero], {}, right, label=name)
        large = X * np.float32(1e5)
        right = [(large / scale).astype(kind_of(name))]
        given = {"saturate": 0}
        yield NodeCase("QuantizeLinear", 19, [large, scale, zero], given, right, label=f"{name} 0")
    for name in SMALL_FLOATS:
        version = 28 if "float6" in name else 23
        zero = np.array(0).astype(kind_of(name))
        right = [(X / scale).astype(kind_of(name))]
        yield NodeCase("QuantizeLinear", version, [X, scale, zero], {}, right, label=name)
    whole = np.array([[7, -9, 100]], np.int32)
    right = [quantized(whole, np.float32(2), 0, "int8")]
    for version in (10, 13, 28):
        given = [whole, scale, np.array(0, np.int8)]
        yield NodeCase("QuantizeLinear", version, given, {}, right, label="of i32")


def quantize_blocks():
    data = np.concatenate([X, X + 1], axis=1)[:, :7]
    scale = np.array([[0.5, 1, 2], [3, 0.25, 1]], np.float32)
    zero = np.array([[1, 2, 3], [4, 5, 6]], np.uint8)
    steps, zeros = (one.repeat(3, axis=1)[:, :7] for one in (scale, zero))
    right = [quantized(data, steps, zeros, "uint8")]
    given = {"axis": 1, "block_size": 3}
    for version in versions("QuantizeLinear", 21):
        yield NodeCase("QuantizeLinear", version, [data, scale, zero], given, right, label="blocks")
        back = [(right[0].astype(np.float32) - zeros) * steps]
        quantities = [right[0], scale, zero]
        yield NodeCase("DequantizeLinear", version, quantities, given, back, label="blocks")
    narrow = data.astype(kind_of("float8_e4m3fn"))
    right = [(data / steps).astype(narrow.dtype)]
    empty = np.zeros_like(zero).astype(narrow.dtype)
    yield NodeCase("QuantizeLinear", 21, [data, scale, empty], given, right, label="float8 blocks")


def quantize_precisions():
    data = np.array([0.3, 1.7, 250, -3.3], np.float16)
    scale = np.array(0.1, np.float16)
    zero = np.array(7, np.uint8)
    right = [quantized(data, scale, 7, "uint8")]
    for version in versions("QuantizeLinear", 19):
        yield NodeCase("QuantizeLinear", version, [data, scale, zero], {}, right, label="f16")
    wide = data.astype(np.float32)
    given = {"precision": TensorProto.FLOAT16}
    for version in versions("QuantizeLinear", 23):
        pair = [wide, scale.astype(np.float32), zero]
        yield NodeCase("QuantizeLinear", version, pair, given, right, label="precision f16")
    brain = data.astype(BF16)
    right = [quantized(brain, scale.astype(BF16), 7, "uint8")]
    yield NodeCase("QuantizeLinear", 21, [brain, scale.astype(BF16), zero], {}, right, label="bf16")
    power = np.array(4, np.float32).astype(ml_dtypes.float8_e8m0fnu)
    right = [quantized(X, 4, 7, "uint8")]
    yield NodeCase("QuantizeLinear", 24, [X, power, zero], {}, right, label="e8m0")
    whole = np.array([[7, -9, 100]], np.int32)
    right = [quantized(whole, 3, 7, "uint8")]
    given = [whole, np.array(3, np.int32), zero]
    yield NodeCase("QuantizeLinear", 21, given, {}, right, label="scale of i32")
    vector = [COLUMNS * 3, COLUMNS, np.arange(4).astype(np.uint8)]
    right = [np.arange(3, 7).astype(np.uint8)]
    yield NodeCase("QuantizeLinear", 21, vector, {"axis": 0}, right, label="vector")


def dequantize():
    data = np.array([[0, 3, 128, 255], [1, 2, 3, 4]], np.uint8)
    scale = np.array(0.5, np.float32)
    for version in versions("DequantizeLinear"):
        zero = np.array(3, np.uint8)
        right = [(data.astype(np.float32) - 3) * scale]
        yield NodeCase("DequantizeLinear", version, [data, scale, zero], {}, right)
        right = [data * scale]
        yield NodeCase("DequantizeLinear", version, [data, scale], {}, right, label="no zero point")
        if version < 13:
            continue
        zeros = np.array([1, 2, 3, 4], np.uint8)
        right = [(data.astype(np.float32) - zeros) * COLUMNS]
        yield NodeCase("DequantizeLinear", version, [data, COLUMNS, zeros], {}, right, label="axis")
    whole = np.array([[2**30, -7]], np.int32)
    right = [whole.astype(np.float32) * scale]
    yield NodeCase("DequantizeLinear", 10, [whole, scale], {}, right, label="i32")
    for name in INTEGERS:
        version = 25 if name.endswith("2") else 21
        codes = np.array([0, 1, 1, 0]).astype(kind_of(name))
        zero = np.array(1).astype(kind_of(name))
        right = [(codes.astype(np.float32) - 1) * scale]
        yield NodeCase("DequantizeLinear", version, [codes, scale, zero], {}, right, label=name)
    for name in (*FLOATS, *SMALL_FLOATS):
        version = 28 if "float6" in name else 23
        codes = np.array([[0.5, 1, -2, 6]], np.float32).astype(kind_of(name))
        right = [codes.astype(np.float32) * COLUMNS]
        yield NodeCase("DequantizeLinear", version, [codes, COLUMNS], {}, right, label=name)
        zero = np.zeros(4, np.float32).astype(kind_of(name))
        quantities = [codes, COLUMNS, zero]
        yield NodeCase(
            "DequantizeLinear", version, quantities, {}, right, label=f"{name} with zero"
        )


def dequantized_types():
    data = np.array([0, 3, 128, 255], np.uint8)
    for kind in (np.float16, BF16):
        scale = np.array(0.5, kind)
        right = [(data.astype(np.float32) * 0.5).astype(kind)]
        name = np.dtype(kind).name
        code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        yield NodeCase("DequantizeLinear", 21, [data, scale], {}, right, label=name)
        wide = scale.astype(np.float32)
        given = {"output_dtype": code}
        yield NodeCase("DequantizeLinear", 23, [data, wide], given, right, label=f"to {name}")
    power = np.array(4, np.float32).astype(ml_dtypes.float8_e8m0fnu)
    given = {"output_dtype": TensorProto.FLOAT}
    right = [data * np.float32(4)]
    yield NodeCase("DequantizeLinear", 24, [data, power], given, right, label="e8m0")


def dynamic():
    data = np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32)
    scale = np.float32((2 + 3) / 255)
    zero = np.uint8(np.rint(3 / scale))
    right = [quantized(data, scale, zero, "uint8"), np.array(scale), np.array(zero)]
    yield NodeCase("DynamicQuantizeLinear", 11, [data], {}, right, outputs=3)


CASES = [*quantize(), *dequantize(), *dequantized_types(), *dynamic()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


UNIT = np.array(1, np.float32)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            NodeCase(
                "QuantizeLinear",
                21,
                [X, UNIT, np.array(0, np.int8)],
                {"output_dtype": TensorProto.UINT8},
            ),
            "output_dtype is not the type of its zero point",
        ),
        (
            NodeCase("QuantizeLinear", 23, [X, UNIT], {"precision": TensorProto.INT32}),
            "its precision is int32",
        ),
        (
            NodeCase("QuantizeLinear", 23, [X, UNIT], {"precision": TensorProto.FLOAT8E5M2}),
            "its precision is float8_e5m2",
        ),
        (
            NodeCase(
                "DequantizeLinear",
                23,
                [X.astype(np.int8), UNIT],
                {"output_dtype": TensorProto.INT8},
            ),
            "its output_dtype is int8",
        ),
        (NodeCase("QuantizeLinear", 21, [X, X], {"block_size": -1}), "block_size is -1"),
        (NodeCase("QuantizeLinear", 21, [X, COLUMNS], {"axis": 2}), "axis 2 is out of range"),
        (NodeCase("QuantizeLinear", 21, [X, X]), "the scale has 2 dimensions"),
        (NodeCase("QuantizeLinear", 21, [X, X], {"block_size": 3}), "extent of the scale"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())


def test_extents_of_scales_that_only_a_run_knows():
    case = NodeCase("QuantizeLinear", 21, [X, COLUMNS])
    model = case.model()
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    graph = from_onnx(model.SerializeToString())
    (made,) = evaluate_graph(graph, case.feeds())
    np.testing.assert_array_equal(made, quantized(X, COLUMNS, 0, "uint8"))

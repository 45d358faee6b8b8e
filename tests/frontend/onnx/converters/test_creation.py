import ml_dtypes
import numpy as np
import onnx
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import RUNTIME, NodeCase, check, versions

X = np.array([[1, 2], [3, 4]], np.float32)
TENSOR = onnx.numpy_helper.from_array(X)
FLOAT8 = onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT8E4M3FN, [2], [1.0, -3.5])
INT4 = onnx.helper.make_tensor("v", onnx.TensorProto.INT4, [3], [-8, 7, 0])
SPARSE = onnx.helper.make_sparse_tensor(
    onnx.numpy_helper.from_array(np.array([5, 6], np.float32)),
    onnx.numpy_helper.from_array(np.array([1, 3], np.int64)),
    [2, 2],
)


def constants():
    for version in (1, 9, 11, 12, 13, 19, 21, 23, 24, 25):
        yield NodeCase("Constant", version, [], {"value": TENSOR}, [X])
    for version in (11, 25):
        dense = np.array([[0, 5], [0, 6]], np.float32)
        other = {RUNTIME: "it returns an object of its own, which is not a dense tensor"}
        given = {"sparse_value": SPARSE}
        yield NodeCase("Constant", version, [], given, [dense], wrong=other, label="sparse")
    for version in (12, 25):
        numbers = {"value_float": np.float32(0.5), "value_int": np.int64(7)}
        numbers["value_floats"] = np.array([0.5, 2], np.float32)
        numbers["value_ints"] = np.array([3, -1], np.int64)
        for name, right in numbers.items():
            given = {name: right.tolist()}
            yield NodeCase("Constant", version, [], given, [right], label=name)
    wide = np.array([-8, 7, 0], np.int8).astype(onnx.helper.tensor_dtype_to_np_dtype(22))
    yield NodeCase("Constant", 21, [], {"value": INT4}, [wide], label="int4")


def shaped():
    shape = np.array([2, 3], np.int64)
    for version in versions("ConstantOfShape"):
        right = [np.zeros((2, 3), np.float32)]
        yield NodeCase("ConstantOfShape", version, [shape], {}, right, constants=[0])
        yield NodeCase("ConstantOfShape", version, [shape], {}, right, label="in the run")
        for kind in ("bool", "int8", "uint64", "float16", "float64"):
            value = np.ones(1, kind)
            given = {"value": onnx.numpy_helper.from_array(value)}
            right = [np.full((2, 3), value[0])]
            yield NodeCase("ConstantOfShape", version, [shape], given, right, label=kind)
    empty = np.array([], np.int64)
    right = [np.zeros((), np.float32)]
    yield NodeCase("ConstantOfShape", 9, [empty], {}, right, label="scalar")
    narrow = {"FLOAT8E5M2": 0.5, "INT4": -3, "UINT4": 9, "FLOAT4E2M1": 6.0, "BFLOAT16": 0.5}
    for name, number in narrow.items():
        code = getattr(onnx.TensorProto, name)
        value = onnx.helper.make_tensor("v", code, [1], [number])
        right = [np.full((2, 3), number, onnx.helper.tensor_dtype_to_np_dtype(code))]
        for stored in ([0], []):
            label = f"{name} {stored}"
            given = {"value": value}
            yield NodeCase(
                "ConstantOfShape", 23, [shape], given, right, constants=stored, label=label
            )


def eyes():
    data = np.zeros((3, 4), np.int32)
    for version in versions("EyeLike"):
        yield NodeCase("EyeLike", version, [data], {}, [np.eye(3, 4, dtype=np.int32)])
        for k in (1, -2):
            given = {"k": k, "dtype": onnx.TensorProto.DOUBLE}
            right = [np.eye(3, 4, k)]
            yield NodeCase("EyeLike", version, [data], given, right, label=f"k {k}")
        given = {"dtype": onnx.TensorProto.BOOL}
        right = [np.eye(3, 4, dtype=bool)]
        yield NodeCase("EyeLike", version, [data], given, right, label="bool")


def ranges():
    bounds = {"up": (3, 9, 3), "down": (10, 4, -2), "none": (5, 5, 1), "wrong way": (1, 5, -1)}
    for version in versions("Range"):
        for label, given in bounds.items():
            for kind in ("int16", "int32", "int64", "float32", "float64"):
                right = [np.arange(*given).astype(kind)]
                inputs = [np.array(one, kind) for one in given]
                for stored in ([], [0, 1, 2]):
                    text = f"{label} {kind} {stored}"
                    yield NodeCase(
                        "Range", version, inputs, {}, right, constants=stored, label=text
                    )
    fractions = [np.array(one, np.float32) for one in (0.5, 2, 0.3)]
    right = [np.array([0.5, 0.8, 1.1, 1.4, 1.7], np.float32)]
    yield NodeCase("Range", 11, fractions, {}, right, label="fractions")
    for kind in (np.float16, ml_dtypes.bfloat16):
        inputs = [np.array(one, kind) for one in (0, 2, 0.3)]
        step = inputs[2].astype(np.float32)
        right = [(np.arange(7, dtype=np.float32) * step).astype(kind)]
        name = np.dtype(kind).name
        yield NodeCase("Range", 27, inputs, {}, right, label=name)
        given = {"stash_type": 0}
        right = [(np.arange(7).astype(kind) * inputs[2]).astype(kind)]
        yield NodeCase("Range", 27, inputs, given, right, label=f"{name} 0", rtol=1e-2)


CASES = [
    *shaped(),
    *eyes(),
    *ranges(),
    *constants(),
    *(NodeCase("Identity", v, [X], {}, [X]) for v in (1, 13, 14, 16, 19, 21, 23, 24, 25)),
    NodeCase("Identity", 14, [[X, X[0]]], {}, [[X, X[0]]], label="of a sequence"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize("attributes", [{}, {"value_int": 1, "value_float": 2.0}])
def test_a_constant_has_one_value(attributes):
    model = NodeCase("Constant", 13, [], attributes).model()
    with pytest.raises(UserError, match=f"it has {len(attributes)} values: "):
        from_onnx(model.SerializeToString())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            NodeCase("ConstantOfShape", 9, [np.array([2, -1])], constants=[0]),
            r"its shape is \[2, -1\]",
        ),
        (
            NodeCase("ConstantOfShape", 9, [np.array([2])], {"value": TENSOR}, constants=[0]),
            "its value has 4 elements",
        ),
        (NodeCase("EyeLike", 9, [X[0]]), "not a matrix"),
        (
            NodeCase("Range", 11, [np.array(k) for k in (1, 2, 0)], constants=[0, 1, 2]),
            "its delta is 0",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(case, message):
    with pytest.raises(UserError, match=message):
        from_onnx(case.model().SerializeToString())


def test_a_known_range_is_a_constant():
    case = NodeCase("Range", 11, [np.array(k) for k in (1, 7, 2)], constants=[0, 1, 2])
    graph = from_onnx(case.model().SerializeToString())
    assert not graph.nodes
    assert [array.tolist() for array in graph.constants.values()] == [[1, 3, 5]]

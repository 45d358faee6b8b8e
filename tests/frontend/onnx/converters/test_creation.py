import numpy as np
import onnx
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import RUNTIME, NodeCase, check

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


CASES = [
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

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check

X = ((np.arange(24) * 7 % 23 - 11) / 4).reshape(2, 3, 4).astype(np.float32)
BY_AXIS = {"ONNX's evaluator": "it does not flatten the axes, as versions before 13 do"}


def flattened(operator, data, axis):
    """Return the operator before version 13, by definition."""
    rows = data.reshape(int(np.prod(data.shape[:axis])), -1).astype(float)
    shares = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    result = {
        "Softmax": lambda: shares,
        "LogSoftmax": lambda: np.log(shares),
        "Hardmax": lambda: np.eye(rows.shape[1])[rows.argmax(1)],
    }[operator]()
    return result.reshape(data.shape).astype(np.float32)


CASES = [
    NodeCase(
        operator,
        version,
        [X],
        {} if axis is None else {"axis": axis},
        expected=[flattened(operator, X, 1 if axis is None else axis)],
        wrong=BY_AXIS,
        label=f"axis-{axis}",
    )
    for operator in ("Softmax", "LogSoftmax", "Hardmax")
    for version, axis in ((1, None), (1, 2), (11, 0), (11, 1))
]
CASES += [
    NodeCase(operator, 13, [X], {"axis": axis})
    for operator in ("Softmax", "LogSoftmax", "Hardmax")
    for axis in (-1, 1)
]
CASES += [
    NodeCase(
        "Softmax",
        1,
        [X[0, 0]],
        expected=[np.ones(4, np.float32)],
        label="vector",
        wrong={
            "ONNX Runtime": "it refuses axis 1 of a vector, which makes a column",
            "ONNX's evaluator": "it does not flatten the axes",
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


def convert(operator, shape, opset, **attributes):
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "net", [info], [output])
    sets = [helper.make_opsetid("", opset)]
    return from_onnx(helper.make_model(graph, opset_imports=sets).SerializeToString())


def test_last_axis_needs_no_reshape():
    graph = convert("Softmax", ("N", "M"), 1)
    assert [node.operator for node in graph.nodes] == ["softmax"]


def test_symbolic_batch_needs_no_macro():
    graph = convert("Softmax", ("N", 3, 4), 11)
    assert [node.operator for node in graph.nodes] == ["reshape", "softmax", "reshape"]
    assert graph.outputs[0].shape == ("N", 3, 4)


def test_symbolic_rest_is_left_to_the_run():
    assert convert("Softmax", ("N", "M", 4), 11).nodes[0].operator == "onnx.Softmax"


def test_axis_out_of_range():
    with pytest.raises(UserError, match="its axis 3 is out of range for 2 dimensions"):
        convert("Softmax", (2, 3), 13, axis=3)


def test_steps_in_f16_are_those_of_the_definition():
    data = (np.arange(120) * 37 % 101 / 50).reshape(3, 40).astype(np.float16)
    case = NodeCase("Softmax", 13, [data])
    (made,) = onnx_backend.prepare(case.model(), "INTERP").run(case.feeds())
    (right,) = ReferenceEvaluator(case.model()).run(None, case.feeds())
    np.testing.assert_array_equal(made, right)
    # A single kernel, which rounds once, would differ.
    powers = np.exp(data.astype(float))
    assert (made != (powers / powers.sum(1, keepdims=True)).astype(np.float16)).any()

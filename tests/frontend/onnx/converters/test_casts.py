import numpy as np
import pytest
from onnx import TensorProto

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx
from tests.frontend.onnx.converters.cases import NodeCase, check

X = np.array([[1.5, -2, 0], [3, -0.5, 4]], np.float32)
CASES = [
    NodeCase("Cast", 1, [X], {"to": "INT32"}, [X.astype(np.int32)]),
    *(
        NodeCase("Cast", v, [X], {"to": TensorProto.INT32}, [X.astype(np.int32)])
        for v in (6, 9, 13, 19, 21, 23, 24, 25, 28)
    ),
    *(
        NodeCase("CastLike", v, [X, np.array([], np.int64)], {}, [X.astype(np.int64)])
        for v in (15, 19, 21, 23, 24, 25)
    ),
    NodeCase("BitCast", 26, [X], {"to": TensorProto.INT32}, [X.view(np.int32)]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize(
    ("operator", "version", "to", "message"),
    [
        ("Cast", 1, "INT33", "'INT33', which is not an element type"),
        ("Cast", 13, 14, "its output has the element type complex64"),
        ("BitCast", 26, TensorProto.DOUBLE, "it cannot view float32 as float64"),
    ],
)
def test_types_that_do_not_fit_are_refused(operator, version, to, message):
    model = NodeCase(operator, version, [X], {"to": to}).model()
    with pytest.raises(UserError, match=message):
        from_onnx(model.SerializeToString())

"""Element types of outputs, from schemas."""

from typing import Any

import numpy as np
import onnx
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.output_types import output_types

FLOAT, UINT8, INT32, INT64, BOOL, F16, F64 = 1, 2, 6, 7, 9, 10, 11
F8 = onnx.TensorProto.FLOAT8E4M3FN


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "expected"),
    [
        ("Relu", [F16], {}, [F16]),
        ("Shape", [F16], {}, [INT64]),
        ("Cast", [FLOAT], {"to": F8}, [F8]),
        ("CastLike", [FLOAT, F8], {}, [F8]),
        ("TopK", [F64, INT64], {}, [F64, INT64]),
        ("Less", [FLOAT, FLOAT], {}, [BOOL]),
        ("EyeLike", [INT32], {}, [INT32]),
        ("EyeLike", [INT32], {"dtype": F64}, [F64]),
        ("ConstantOfShape", [INT64], {}, [FLOAT]),
        ("ConstantOfShape", [INT64], {"value": np.array([1], np.int32)}, [INT32]),
        ("QuantizeLinear", [FLOAT, FLOAT], {"output_dtype": 0}, [UINT8]),
        ("QuantizeLinear", [FLOAT, FLOAT, F8], {}, [F8]),
        ("Multinomial", [FLOAT], {}, [INT32]),
        ("DequantizeLinear", [UINT8, F16], {}, [F16]),
        ("DequantizeLinear", [UINT8], {}, [FLOAT]),
        ("RandomNormalLike", [], {}, [None]),
        ("RandomNormalLike", [0], {}, [None]),
        ("Split", [FLOAT, INT64], {}, [FLOAT, FLOAT, FLOAT]),
        ("OneHot", [INT64, INT64, F16], {}, [F16]),
    ],
)
def test_types(
    operator: str, inputs: list[int], attributes: dict[str, Any], expected: list[int]
) -> None:
    schema = onnx.defs.get_schema(operator, 21)
    assert output_types(schema, inputs, attributes, len(expected)) == expected


def test_an_operator_without_a_schema_has_unknown_types() -> None:
    assert output_types(None, [FLOAT], {}, 2) == [None, None]


def test_a_named_type_that_does_not_exist_is_refused() -> None:
    schema = onnx.defs.get_schema("EyeLike", 21)
    with pytest.raises(UserError, match="its output has the element type 2147483648"):
        output_types(schema, [FLOAT], {"dtype": 2**31}, 1)

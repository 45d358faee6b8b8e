"""Element types of ONNX, and how a graph holds them."""

import ml_dtypes
import numpy as np
import onnx
import pytest

from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import (
    ELEMENT_TYPES,
    FLOAT4E2M1,
    INT2,
    INT4,
    code_of,
    element_type,
    restored,
    stored,
)


def test_the_codes_are_those_of_onnx() -> None:
    codes = onnx.TensorProto.DataType
    for code, one in ELEMENT_TYPES.items():
        if code == onnx.TensorProto.STRING:
            continue
        assert onnx.helper.tensor_dtype_to_np_dtype(code) == one.numpy, codes.Name(code)
    unknown = {"UNDEFINED", "COMPLEX64", "COMPLEX128"}
    assert {name for name, code in codes.items() if code not in ELEMENT_TYPES} == unknown


@pytest.mark.parametrize("code", ELEMENT_TYPES)
def test_arrays_come_back(code: int) -> None:
    one = ELEMENT_TYPES[code]
    array = np.array([1, 1, 1], one.numpy)
    held = stored(array, code)
    assert as_dtype(held.dtype) == one.storage if one.name != "string" else held is array
    back = restored(held, code)
    assert back.dtype == one.numpy
    assert back.tolist() == array.tolist()


def test_integers_are_held_as_integers_and_floats_as_bits() -> None:
    assert stored(np.array([-8, 7], ml_dtypes.int4), INT4).tolist() == [-8, 7]
    assert stored(np.array([-2, 1], ml_dtypes.int2), INT2).tolist() == [-2, 1]
    assert stored(np.array([1.5], ml_dtypes.float4_e2m1fn), FLOAT4E2M1).tolist() == [3]


def test_a_dtype_stands_for_its_usual_type() -> None:
    assert ELEMENT_TYPES[code_of(as_dtype("uint8"))].name == "uint8"
    assert ELEMENT_TYPES[code_of(as_dtype("bfloat16"))].name == "bfloat16"


def test_unknown_types_are_refused() -> None:
    with pytest.raises(UserError, match="(?s)input 'x' has the element type complex64.*float32"):
        element_type(14, "input 'x'")
    with pytest.raises(UserError, match="element type 99"):
        element_type(99, "input 'x'")

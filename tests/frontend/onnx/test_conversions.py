"""All pairs of element types against ml_dtypes, which ONNX's own helpers use."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from refcomp.frontend.onnx import from_onnx
from refcomp.frontend.onnx.conversions import is_narrow_float, is_narrow_integer, width_of
from refcomp.frontend.onnx.element_types import BOOLS, ELEMENT_TYPES, STRINGS, restored, stored
from refcomp.graph.evaluate import evaluate_graph

CODES = [code for code in ELEMENT_TYPES if code != STRINGS]
NUMBERS = np.array([-6.0, -3, -1.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def model_of(source, target):
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=target)
    infos = [
        onnx.helper.make_tensor_value_info(name, code, ["N"])
        for name, code in (("x", source), ("y", target))
    ]
    graph = onnx.helper.make_graph([node], "net", infos[:1], infos[1:])
    opset = [onnx.helper.make_opsetid("", 28)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=10)


def numbers_of(code):
    """Return numbers that both integers and floats of any width can have."""
    if code == BOOLS:
        return np.array([True, False])
    kind = ELEMENT_TYPES[code].numpy
    if kind.name == "float8_e8m0fnu":
        return np.array([0.25, 0.5, 1, 2, 4], kind)
    bits = width_of(code)
    if is_narrow_integer(code) or kind.kind in "iu":
        is_signed = "u" not in kind.name
        least = -(2 ** (bits - 1)) if is_signed else 0
        return np.array([max(least, -5), 0, 1, min(2 ** (bits - 1) - 1, 5)]).astype(kind)
    return NUMBERS.astype(kind)


def right(array, source, target):
    wanted = ELEMENT_TYPES[target].numpy
    if target == BOOLS:
        return array.astype(np.float32) != 0
    numbers = array.astype(np.float32)
    if wanted.name == "float8_e8m0fnu":
        return numbers.astype(wanted)
    if is_narrow_integer(target) or wanted.kind in "iu":
        return np.trunc(numbers).astype(np.int32).astype(wanted)
    return numbers.astype(wanted)


@pytest.mark.parametrize("target", CODES)
@pytest.mark.parametrize("source", CODES)
def test_cast(source, target):
    array = numbers_of(source)
    if target == TensorProto.FLOAT8E8M0:
        values = array.astype(np.float32)
        array = array[np.isin(values, [0.25, 0.5, 1, 2, 4])]
    elif "u" in ELEMENT_TYPES[target].numpy.name[:1]:
        array = array[array.astype(np.float32) >= 0]
    graph = from_onnx(model_of(source, target).SerializeToString())
    (made,) = evaluate_graph(graph, {"x": stored(array, source)})
    expected = right(array, source, target)
    assert made.dtype == ELEMENT_TYPES[target].storage.dtype or target == TensorProto.BFLOAT16
    shown = restored(made, target)
    np.testing.assert_array_equal(shown.astype(np.float32), expected.astype(np.float32))


def test_kinds_of_narrow_types():
    narrow = {code for code in CODES if ELEMENT_TYPES[code].is_narrow}
    assert narrow == {c for c in CODES if is_narrow_float(c) or is_narrow_integer(c)}
    assert [width_of(c) for c in (BOOLS, TensorProto.INT4, TensorProto.DOUBLE)] == [8, 4, 64]
    assert width_of(TensorProto.FLOAT4E2M1) == 4

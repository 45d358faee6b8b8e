"""Attributes: each kind is read, defaults are added, and nothing is ignored."""

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx.attributes import read_attributes
from refcomp.frontend.onnx.tensors import TensorReader

READER = TensorReader(None, 1000)


def read(operator: str, version: int = 21, *, domain: str = "", known: bool = True, **attributes):
    node = helper.make_node(operator, ["x"], ["y"], domain=domain, **attributes)
    schema = onnx.defs.get_schema(operator, version, domain) if known else None
    return read_attributes(node, schema, READER.read, READER.read_sparse)


def test_every_kind_of_an_unknown_operator_is_read() -> None:
    tensor = numpy_helper.from_array(np.array([3, 4]))
    sparse = helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.array([0, 2])), [3])
    graph = helper.make_graph([], "g", [], [])
    kind = helper.make_tensor_type_proto(1, None)
    given = {"f": 0.5, "i": 3, "s": "a\nb", "fs": [1.0, 2.0], "is": [1, 2], "ss": ["a", "b"]}
    made = read("Any", known=False, **given, t=tensor, ts=[tensor], sp=sparse, g=graph, tp=kind)
    assert made.pop("t").tolist() == [3, 4]
    assert [one.tolist() for one in made.pop("ts")] == [[3, 4]]
    assert made.pop("sp").tolist() == [3, 0, 4]
    assert (made.pop("g"), made.pop("tp")) == (graph, kind)
    assert made == {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    assert read("Any", known=False) == {}


def test_defaults_are_those_of_the_version() -> None:
    assert read("Softmax", 11)["axis"] == 1
    assert read("Softmax", 13)["axis"] == -1
    assert read("Softmax", axis=0)["axis"] == 0
    assert "perm" not in read("Transpose")  # it has no default


def test_a_tensor_of_a_narrow_type_is_noted() -> None:
    tensor = helper.make_tensor("t", TensorProto.FLOAT8E5M2, [1], [1.0])
    made = read("ConstantOfShape", value=tensor)
    assert made["value"].dtype == np.uint8
    assert made["value_element_type"] == TensorProto.FLOAT8E5M2


def test_unknown_and_ill_typed_attributes_are_refused() -> None:
    with pytest.raises(Unsupported, match="its attribute 'axes' is unknown.*did you mean"):
        read("Softmax", axes=1)
    with pytest.raises(UserError, match="attribute 'axis' is not of type int"):
        read("Softmax", axis=0.5)
    with pytest.raises(UserError, match="its attribute axis is missing"):
        read("Concat")
    with pytest.raises(UserError, match="attribute 'alpha' is NaN"):
        read("LeakyRelu", alpha=math.nan)
    assert math.isnan(read("Constant", value_float=math.nan)["value_float"])


def test_an_attribute_without_a_type_is_refused() -> None:
    node = helper.make_node("Any", ["x"], ["y"], a=1)
    node.attribute[0].type = 0
    with pytest.raises(UserError, match="attribute 'a' has no known type"):
        read_attributes(node, None, READER.read, READER.read_sparse)


def test_text_that_is_no_utf8_is_read() -> None:
    assert "\ufffd" in read("Any", known=False, s=b"\xff\xfe")["s"]

"""Nodes against the schemas of their operators."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import from_onnx, register_converter
from refcomp.frontend.onnx.element_types import ELEMENT_TYPES, FLOAT, INT64, STRINGS
from refcomp.frontend.onnx.signatures import check_signature
from refcomp.graph.builder import GraphBuilder
from tests.frontend.models import make_model, single

BUILDER = GraphBuilder("g")
X = BUILDER.input("x", "float32", (2,))
N = BUILDER.input("n", "int64", (2,))
SEQUENCE = BUILDER.input("s", "float32", kind="sequence")


def check(operator, version, inputs, codes, outputs=1):
    check_signature(onnx.defs.get_schema(operator, version), outputs, inputs, codes)


def test_what_a_schema_allows_is_taken() -> None:
    check("Add", 14, [X, X], [FLOAT, FLOAT])
    check("Clip", 13, [X, None, X], [FLOAT, 0, FLOAT])
    check("Clip", 13, [X], [FLOAT])
    check("Concat", 13, [X] * 9, [FLOAT] * 9)
    check("Loop", 21, [None, None, X, N], [0, 0, FLOAT, INT64])
    check("SequenceAt", 11, [SEQUENCE, N], [FLOAT, INT64])
    check("OptionalHasElement", 18, [SEQUENCE], [FLOAT])
    check("TopK", 11, [X, N], [FLOAT, INT64], outputs=2)


def test_every_element_type_is_spelled_as_in_schemas() -> None:
    for code, kind in ELEMENT_TYPES.items():
        value = GraphBuilder("g").input("x", kind.storage, (), "unshaped tensor")
        schema = onnx.defs.get_schema("Identity")
        if any(kind.name.startswith(name) for name in ("float6", "uint2", "int2")):
            schema = onnx.defs.get_schema("Cast")
        check_signature(schema, 1, [value], [code])


@pytest.mark.parametrize(
    ("operator", "version", "inputs", "codes", "outputs", "message"),
    [
        ("Relu", 14, [X, X], [FLOAT, FLOAT], 1, "it has 2 inputs.*Relu-14 takes at most 1"),
        ("Relu", 14, [X], [FLOAT], 2, "it has 2 outputs, not 1"),
        ("Relu", 14, [], [], 1, "its input 0 is missing"),
        ("Clip", 13, [None, X], [0, FLOAT], 1, "its input 0 is missing"),
        (
            "Relu",
            6,
            [N],
            [INT64],
            1,
            r"its input 0 is n: i64\[2\], a tensor\(int64\).*Relu-6 takes",
        ),
        ("Add", 14, [X, N], [FLOAT, INT64], 1, "element types float32 and int64.*Add-14 takes one"),
        ("SequenceAt", 11, [X, N], [FLOAT, INT64], 1, r"a tensor\(float\).*takes seq"),
        ("Relu", 14, [SEQUENCE], [FLOAT], 1, r"a seq\(tensor\(float\)\).*Relu-14 takes"),
    ],
)
def test_what_a_schema_does_not_allow_is_refused(
    operator, version, inputs, codes, outputs, message
) -> None:
    with pytest.raises(UserError, match=f"(?s){message}"):
        check(operator, version, inputs, codes, outputs)


def test_an_operator_of_a_later_version_is_refused() -> None:
    model = make_model([single("Gelu", "x")], {"x": (2,)}, ["y"], opset=17)
    message = "version 17 of the operator set lacks Gelu"
    with pytest.raises(UserError, match=message) as caught:
        from_onnx(model.SerializeToString())
    assert "that of version 20" in str(caught.value)


def test_a_converter_of_the_user_may_have_any_name() -> None:
    register_converter("Twice", lambda node: node.make("add", node.all_inputs() * 2))
    model = make_model([single("Twice", "x")], {"x": (2,)}, ["y"])
    (node,) = from_onnx(model.SerializeToString()).nodes
    assert node.operator == "add"


def test_strings_and_numbers_do_not_mix() -> None:
    model = make_model([single("Concat", "x", "w", axis=0)], {"x": (2,)}, ["y"])
    tensor = helper.make_tensor("w", TensorProto.STRING, [1], ["a"])
    model.graph.initializer.append(tensor)
    with pytest.raises(UserError, match="element types float32 and string"):
        from_onnx(model.SerializeToString())
    assert STRINGS == TensorProto.STRING
    assert np.dtype(object) == ELEMENT_TYPES[STRINGS].numpy

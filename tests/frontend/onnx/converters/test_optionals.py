import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from tests.frontend.models import make_model, single
from tests.frontend.onnx.converters.cases import EVALUATOR, NodeCase, check

X = np.array([1, 2], np.float32)
TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
CASES = [
    *(
        NodeCase("Optional", version, [X], expected=[X], wrong={EVALUATOR: "it makes a list"})
        for version in (15, 28)
    ),
    *(NodeCase("OptionalGetElement", version, [X], expected=[X]) for version in (18, 28)),
    *(
        NodeCase("OptionalHasElement", version, [X], expected=[np.array(True)])
        for version in (18, 28)
    ),
    *(
        NodeCase("OptionalGetElement", version, [X], expected=[X], optionals=[0], label="optional")
        for version in (15, 18, 28)
    ),
    *(
        NodeCase(
            "OptionalHasElement",
            version,
            [[X]],
            expected=[np.array(True)],
            optionals=[0],
            label="optional",
        )
        for version in (15, 18, 28)
    ),
    NodeCase("OptionalHasElement", 18, [], expected=[np.array(False)], label="no-input"),
    NodeCase("OptionalGetElement", 18, [[X]], expected=[[X]], label="sequence"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_node(case):
    check(case)


@pytest.mark.parametrize("kind", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
@pytest.mark.parametrize("version", [15, 18, 28])
def test_an_optional_of_a_model_may_be_absent(version: int, kind: onnx.TypeProto) -> None:
    """Both operators in each version, on an input that is there or not."""
    nodes = [
        single("OptionalHasElement", "o", outputs=["has"]),
        single("OptionalGetElement", "o", outputs=["y"]),
    ]
    optional = helper.make_value_info("o", helper.make_optional_type_proto(kind))
    outputs = [
        helper.make_tensor_value_info("has", TensorProto.BOOL, []),
        helper.make_value_info("y", kind),
    ]
    value = X if kind is TENSOR else [X, X]
    for used, given in ((1, None), (2, value)):
        graph = helper.make_graph(nodes[:used], "g", [optional], outputs[:used])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
        made = onnx_backend.run_model(model, [given], "INTERP")
        assert made[0].item() is (given is not None)
        if used == 2:
            assert np.array_equal(made[1], value)


@pytest.mark.parametrize("kind", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
def test_an_optional_of_a_type_is_absent(kind: onnx.TypeProto) -> None:
    nodes = [
        single("Optional", outputs=["o"], type=kind),
        single("OptionalHasElement", "o"),
    ]
    graph = helper.make_graph(
        nodes, "g", [], [helper.make_tensor_value_info("y", TensorProto.BOOL, [])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    assert onnx_backend.run_model(model, [], "INTERP")[0].item() is False


def test_an_absent_element_is_refused_in_a_run() -> None:
    nodes = [single("Optional", outputs=["o"], type=TENSOR), single("OptionalGetElement", "o")]
    model = make_model(nodes, {}, ["y"], opset=18)
    with pytest.raises(UserError, match="takes the element of an optional without one"):
        onnx_backend.run_model(model, [], "INTERP")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "it has neither an input nor the attribute type"),
        ({"type": onnx.TypeProto()}, "its attribute type is a value without a type"),
        (
            {"type": helper.make_sequence_type_proto(SEQUENCE)},
            "its attribute type is a sequence_type, not a tensor or a sequence",
        ),
        (
            {"type": helper.make_tensor_type_proto(15, None)},
            "its element has the element type complex128",
        ),
    ],
)
def test_what_is_ill_formed(attributes, message) -> None:
    model = make_model([single("Optional", **attributes)], {}, ["y"], opset=18)
    with pytest.raises(UserError, match=message):
        onnx_backend.prepare(model, "INTERP")

"""Functions of models and of ONNX: attributes, overloads, nesting, and versions of their own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import Unsupported, UserError
from refcomp.frontend.onnx import from_onnx, nodes
from refcomp.frontend.onnx.functions import bound_node, schema_function
from refcomp.graph.folding import FoldingBuilder
from tests.frontend.models import single

DOMAIN = "own"
FLOAT = TensorProto.FLOAT


def function(
    name: str,
    nodes: Sequence[Any],
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("b",),
    attributes: Sequence[str] = (),
    version: int = 17,
    **options: Any,
) -> onnx.FunctionProto:
    sets = [helper.make_opsetid("", version), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_function(DOMAIN, name, inputs, outputs, nodes, sets, attributes, **options)


def call(name: str, *inputs: str, outputs: Sequence[str] = ("y",), **attributes: Any) -> Any:
    return helper.make_node(name, inputs, outputs, domain=DOMAIN, **attributes)


def model_of(
    nodes: Sequence[Any], functions: Sequence[Any], outputs: Sequence[str] = ("y",)
) -> onnx.ModelProto:
    info = helper.make_tensor_value_info("x", FLOAT, [3])
    made = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    return helper.make_model(
        helper.make_graph(nodes, "g", [info], made),
        functions=functions,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)],
        ir_version=10,
    )


X = np.array([-1, 0.5, 2], np.float32)


def run(model: onnx.ModelProto) -> list[list[float]]:
    """The outputs, which are those of ONNX Runtime."""
    made = onnx_backend.run_model(model, [X], "INTERP")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for one, right in zip(made, session.run(None, {"x": X}), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-6)
    return [one.tolist() for one in made]


def ref(node: onnx.NodeProto, name: str, source: str, kind: int) -> onnx.NodeProto:
    """Let an attribute of a node refer to one of the function."""
    node.attribute.add(name=name, ref_attr_name=source, type=kind)
    return node


def leaky(default: float | None = None) -> onnx.FunctionProto:
    node = ref(single("LeakyRelu", "a", outputs=["b"]), "alpha", "slope", 1)
    protos = [] if default is None else [helper.make_attribute("slope", default)]
    names = ["slope"] if default is None else []
    return function("Leaky", [node], attributes=names, attribute_protos=protos)


def test_attributes_of_a_call_reach_the_nodes_of_its_function() -> None:
    for model in (
        model_of([call("Leaky", "x", slope=0.5)], [leaky()]),
        model_of([call("Leaky", "x", slope=0.5)], [leaky(0.25)]),
    ):
        assert run(model) == [[-0.5, 0.5, 2]]
    assert run(model_of([call("Leaky", "x")], [leaky(0.25)])) == [[-0.25, 0.5, 2]]


def test_an_attribute_that_a_call_leaves_out_has_the_default_of_the_node() -> None:
    model = model_of([call("Leaky", "x")], [leaky()])
    (made,) = onnx_backend.run_model(model, [X], "INTERP")
    np.testing.assert_allclose(made, [-0.01, 0.5, 2])


def test_functions_call_each_other_and_keep_their_names_apart() -> None:
    twice = function(
        "Twice", [single("Add", "a", "a", outputs=["t"]), call("Pass", "t", outputs=["b"])]
    )
    passes = function(
        "Pass", [single("Relu", "a", outputs=["t"]), single("Neg", "t", outputs=["b"])]
    )
    calls = [call("Twice", "x", outputs=["t"]), call("Twice", "t", outputs=["y"])]
    model = model_of(calls, [twice, passes], ["t", "y"])
    assert run(model) == [[0, -1, -4], [0, 0, 0]]
    names = [node.name for node in from_onnx(model.SerializeToString()).nodes]
    assert len(set(names)) == len(names)
    assert {"t", "y"} <= set(names)


def test_an_overload_is_chosen_by_its_name() -> None:
    functions = [
        function("F", [single("Neg", "a", outputs=["b"])], overload="neg"),
        function("F", [single("Abs", "a", outputs=["b"])], overload="abs"),
    ]
    for overload, right in (("neg", [1, -0.5, -2]), ("abs", [1, 0.5, 2])):
        node = call("F", "x")
        node.overload = overload
        model = model_of([node], functions)
        assert onnx_backend.run_model(model, [X], "INTERP")[0].tolist() == right


def test_a_function_has_versions_of_its_own() -> None:
    """Squeeze-11 takes its axes as an attribute, Squeeze-13 as an input."""
    body = [
        single("Unsqueeze", "a", outputs=["t"], axes=[0]),
        single("Squeeze", "t", outputs=["b"], axes=[0]),
    ]
    model = model_of([call("F", "x")], [function("F", body, version=11)])
    assert onnx_backend.run_model(model, [X], "INTERP")[0].tolist() == X.tolist()


def test_subgraphs_in_functions_see_values_of_the_function() -> None:
    def branch(operator: str, name: str) -> onnx.GraphProto:
        node = ref(single(operator, "t", outputs=[name]), "alpha", "slope", 1)
        return helper.make_graph(
            [node], name, [], [helper.make_tensor_value_info(name, FLOAT, None)]
        )

    body = [
        single("Neg", "a", outputs=["t"]),
        single("ReduceSum", "a", outputs=["sum"], keepdims=0),
        single("Constant", outputs=["zero"], value_float=0.0),
        single("Less", "zero", "sum", outputs=["c"]),
        single(
            "If",
            "c",
            outputs=["b"],
            then_branch=branch("LeakyRelu", "then"),
            else_branch=branch("Elu", "else"),
        ),
    ]
    model = model_of([call("F", "x", slope=0.5)], [function("F", body, attributes=["slope"])])
    assert run(model) == [[1, -0.25, -1]]


def test_optional_inputs_and_outputs_of_a_function_may_be_left_out() -> None:
    body = [single("Clip", "a", "low", "high", outputs=["b"]), single("Neg", "a", outputs=["c"])]
    made = function("F", body, ["a", "low", "high"], ["b", "c"])
    zero = single("Constant", outputs=["zero"], value_float=0.0)
    model = model_of([zero, call("F", "x", "zero", outputs=["y", ""])], [made])
    assert onnx_backend.run_model(model, [X], "INTERP")[0].tolist() == [0, 0.5, 2]
    model = model_of([zero, call("F", "x", "", "zero", outputs=["", "y"])], [made])
    assert onnx_backend.run_model(model, [X], "INTERP")[0].tolist() == [1, -0.5, -2]


def test_a_function_of_the_model_comes_before_onnx_itself() -> None:
    own = helper.make_function(
        "", "Relu", ["a"], ["b"], [single("Abs", "a", outputs=["b"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    model = model_of([single("Relu", "x")], [own])
    assert onnx_backend.run_model(model, [X], "INTERP")[0].tolist() == [1, 0.5, 2]


def test_a_function_that_calls_itself_is_refused() -> None:
    again = function("F", [call("F", "a", outputs=["b"])])
    with pytest.raises(UserError, match="nested too deeply") as caught:
        from_onnx(model_of([call("F", "x")], [again]).SerializeToString())
    assert caught.value.where == "node 'F' (own.F)"


def test_functions_that_double_each_other_are_refused(monkeypatch) -> None:
    """30 functions, of which each calls the next one twice, mean 2 to the 30 nodes."""
    functions = [
        function(
            f"F{k}",
            [call(f"F{k + 1}", "a", outputs=["t"]), call(f"F{k + 1}", "t", outputs=["b"])],
        )
        for k in range(29)
    ]
    functions.append(function("F29", [single("Relu", "a", outputs=["b"])]))
    monkeypatch.setattr(nodes, "MAX_INNER_NODES", 1000)
    with pytest.raises(UserError, match="more than 1000 nodes in functions and subgraphs"):
        from_onnx(model_of([call("F0", "x")], functions).SerializeToString())


@pytest.mark.parametrize(
    ("made", "node", "message"),
    [
        (function("F", [], outputs=["b"]), call("F", "x"), "its function does not make 'b'"),
        (
            function("F", [single("Relu", "q", outputs=["b"])]),
            call("F", "x"),
            "reads 'q', which nothing before it makes",
        ),
        (
            function("F", [single("Relu", "a", outputs=["b"])], ["a", "a"]),
            call("F", "x", "x"),
            "two values of the model are named 'a'",
        ),
        (
            function("F", [single("Relu", "a", outputs=["b"])], ["a", "c"]),
            call("F"),
            "its input 0 is missing",
        ),
        (
            function("F", [single("Relu", "a", outputs=["b"])]),
            call("F", "x", "x"),
            "takes 1 inputs, not 2",
        ),
        (
            function("F", [single("Relu", "a", outputs=["b"])]),
            call("F", "x", outputs=["y", "z"]),
            "returns 1 values, not 2",
        ),
    ],
)
def test_calls_and_functions_that_do_not_fit_are_refused(made, node, message) -> None:
    with pytest.raises(UserError, match=message):
        from_onnx(model_of([node], [made]).SerializeToString())


def test_a_call_without_outputs_computes_nothing() -> None:
    made = function("F", [single("Relu", "a", outputs=["b"])])
    nodes = [call("F", "x", outputs=[]), single("Neg", "x")]
    assert onnx_backend.run_model(model_of(nodes, [made]), [X], "INTERP")[0].tolist() == [
        1,
        -0.5,
        -2,
    ]


def test_hostile_titles_are_quoted() -> None:
    node = helper.make_node("A\nB", [], ["y"], domain="d\0")
    with pytest.raises(UserError, match="names no version") as caught:
        from_onnx(model_of([node], []).SerializeToString())
    assert "\0" not in str(caught.value)
    assert "A\nB" not in str(caught.value)


def test_a_function_with_an_unknown_operator_is_not_supported() -> None:
    made = function("F", [helper.make_node("Gelu", ["a"], ["b"], domain="other")])
    made.opset_import.append(helper.make_opsetid("other", 1))
    with pytest.raises(Unsupported, match="'other.Gelu'"):
        from_onnx(model_of([call("F", "x")], [made]).SerializeToString())


def test_bound_nodes_do_not_change_the_function() -> None:
    made = leaky()
    before = made.SerializeToString()
    bound = bound_node(made.node[0], call("Leaky", "x", slope=0.5), made)
    assert bound.attribute[0].f == 0.5
    assert bound.attribute[0].name == "alpha"
    assert not bound.attribute[0].ref_attr_name
    assert made.SerializeToString() == before


def test_onnx_defines_functions_by_version_and_types() -> None:
    builder = FoldingBuilder("g")
    x = builder.input("x", "float32", (2, 3))
    node = single("LayerNormalization", "x", "s")
    schema = onnx.defs.get_schema("LayerNormalization", 17)
    made = schema_function(schema, node, 17, [x, x], [FLOAT, FLOAT])
    assert len(made.node) > 5
    elu = onnx.defs.get_schema("Elu", 22)
    assert {one.op_type for one in schema_function(elu, single("Elu"), 22, [x], [FLOAT]).node} >= {
        "Where"
    }
    assert schema_function(None, node, 17, [x], [FLOAT]) is None
    relu = onnx.defs.get_schema("MatMul", 13)
    assert schema_function(relu, single("MatMul"), 13, [x], [FLOAT]) is None

"""Converters by version, and those that users register."""

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto, helper

from refcomp import onnx_backend
from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx import registry
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.registry import converted_operators, find_converter, register_converter
from refcomp.graph.graph import Value


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_CONVERTERS", dict(registry._CONVERTERS))
    yield


def doubled(node: OnnxNode) -> Value:
    x = node.required(0)
    return node.make("add", [x, x])


def test_the_newest_converter_that_is_not_too_new_is_taken() -> None:
    others = [lambda node: doubled(node) for _ in range(2)]
    register_converter("Thing", others[0], domain="test")
    register_converter("Thing", others[1], domain="test", since=5)
    found = [find_converter("test", "Thing", version) for version in (1, 4, 5, 9)]
    assert [others.index(one.convert) for one in found if one] == [0, 0, 1, 1]
    assert find_converter("test", "Other", 1) is None
    register_converter("Thing", doubled, domain="test", since=5)
    replaced = find_converter("test", "Thing", 6)
    assert replaced is not None and replaced.convert is doubled
    assert ("test", "Thing") in converted_operators()


def test_two_names_of_the_standard_domain() -> None:
    assert find_converter("ai.onnx", "Relu", 14) is find_converter("", "Relu", 14) is not None


def test_a_registered_operator_runs() -> None:
    register_converter("Twice", doubled, domain="com.example")
    node = helper.make_node("Twice", ["x"], ["y"], domain="com.example")
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in "xy"]
    graph = helper.make_graph([node], "net", infos[:1], infos[1:])
    sets = [helper.make_opsetid("com.example", 1)]
    model = helper.make_model(graph, opset_imports=sets)
    (y,) = onnx_backend.run_model(model, [np.array([1, 2], np.float32)], "INTERP")
    assert y.tolist() == [2, 4]


def test_wrong_registrations_are_refused() -> None:
    with pytest.raises(UserError, match="cannot be registered for 1 of ''"):
        register_converter(1, doubled)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="converter of Add is 3, which cannot be called"):
        register_converter("Add", 3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="converter of Add begins with version 0"):
        register_converter("Add", doubled, since=0)

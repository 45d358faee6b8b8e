"""What a converter asks a node for."""

from typing import Any

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import INT4, STRINGS
from refcomp.frontend.onnx.node import OnnxNode
from refcomp.frontend.onnx.scope import ValueScope
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.macros import NotKnownError


class Around:
    """The model around a node of these tests."""

    def __init__(self, scope: ValueScope) -> None:
        self.element_type = scope.element_type
        self.set_element_type = scope.set_element_type

    def subgraph(self, proto: Any, inputs: Any) -> Any:
        return (proto, inputs)


@pytest.fixture
def node() -> OnnxNode:
    builder = FoldingBuilder("g")
    scope = ValueScope(builder, {"": 21}, None)
    inputs = (
        builder.input("x", "float32", ("N", 3)),
        None,
        builder.constant("k", np.array([2, -1])),
        builder.constant("one", np.array([0.5], np.float32)),
    )
    outputs = ("y", "", "z")
    given = {"body": "graph"}
    return OnnxNode(builder, "Op", 7, inputs, outputs, given, Around(scope), scope.elements)


def test_inputs_and_outputs(node: OnnxNode) -> None:
    assert node.required(0).name == "x"
    assert node.input(1) is None
    assert node.input(9) is None
    assert [node.is_used(place) for place in range(4)] == [True, False, True, False]
    for place in (1, 9):
        with pytest.raises(UserError, match=f"its input {place} is missing"):
            node.required(place)
    with pytest.raises(UserError, match="input 1 is missing"):
        node.all_inputs()


def test_known_elements(node: OnnxNode) -> None:
    x, _, k, one = node.inputs
    assert x and k and one
    assert node.integers(k, "axes") == (2, -1)
    assert node.number(one, "alpha") == 0.5
    with pytest.raises(NotKnownError):
        node.known(x)
    with pytest.raises(UserError, match=r"its axes is x: f32\[N, 3\], not a list of integers"):
        node.integers(x, "axes")
    with pytest.raises(UserError, match="its k is one: f32.*not an integer"):
        node.integer(one, "k")
    with pytest.raises(UserError, match="its k has 2 elements, not one"):
        node.integer(k, "k")


def test_extents_and_axes(node: OnnxNode) -> None:
    x, _, k, _ = node.inputs
    assert x and k
    assert node.extents(k) == (2,)
    assert node.size(k) == 2
    with pytest.raises(NotKnownError):
        node.extents(x)
    assert [node.axis(axis, 2) for axis in (-2, 0, 1)] == [0, 0, 1]
    assert node.axis(2, 2, ends=True) == 2
    with pytest.raises(UserError, match="its axis 2 is out of range for 2 dimensions"):
        node.axis(2, 2)


def test_truncated_numbers(node: OnnxNode) -> None:
    assert node.truncated(node.required(3), "depth") == 0
    assert node.truncated(node.constant([-2.7], np.float32), "depth") == -2
    assert node.truncated(node.constant(2**60 + 1, np.int64), "depth") == 2**60 + 1
    with pytest.raises(UserError, match="its depth is nan, not an integer"):
        node.truncated(node.constant(np.nan, np.float32), "depth")


def test_one_extent(node: OnnxNode) -> None:
    x = node.required(0)
    assert node.extent(x, -1) == 3
    with pytest.raises(NotKnownError):
        node.extent(x, 0)
    with pytest.raises(UserError, match="its axis 2 is out of range for 2 dimensions"):
        node.extent(x, 2)


def test_optional_integers(node: OnnxNode) -> None:
    assert node.optional_integers(2, "axes") == (2, -1)
    assert node.optional_integers(1, "axes") is None
    assert node.optional_integers(9, "axes") is None


def test_what_may_fit_in_a_run_is_not_known(node: OnnxNode) -> None:
    x = node.required(0)
    assert node.make_fitting("reshape", [x], shape=(-1, 1)).shape == (("mul", "N", 3), 1)
    with pytest.raises(NotKnownError):
        node.make_fitting("reshape", [x], shape=(2, 6))
    one = node.required(3)
    with pytest.raises(UserError, match="reshape cannot make 6 elements of 1"):
        node.make_fitting("reshape", [one], shape=(6,))


def test_nodes_and_constants(node: OnnxNode) -> None:
    x = node.required(0)
    assert node.cast(x, "f32") is x
    assert node.cast(x, "float32") is x
    assert str(node.cast(x, "float64").dtype) == "f64"
    first, last = node.make_all("split", [x], axis=1, sizes=(1, 2))
    assert (first.shape, last.shape) == (("N", 1), ("N", 2))
    assert node.known(node.constant(3, np.int64)).tolist() == 3


def test_element_types(node: OnnxNode) -> None:
    held = node.typed(node.constant([1], np.int8), INT4)
    assert node.element_type(held) == INT4
    assert not node.is_string(held)
    assert not node.is_string(None)
    text = node.make("string_constant", [], elements='["a"]', shape=(1,))
    assert node.is_string(text)
    assert node.element_type(text) == STRINGS


def test_subgraphs(node: OnnxNode) -> None:
    assert node.subgraph("body") == ("graph", ())
    with pytest.raises(UserError, match="its attribute other is missing"):
        node.subgraph("other")

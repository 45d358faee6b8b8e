"""Names of values: what a graph, a subgraph and a function see."""

import numpy as np
import pytest

from refcomp.foundation.errors import UserError
from refcomp.frontend.onnx.element_types import FLOAT, INT32, STRINGS, UINT8
from refcomp.frontend.onnx.scope import ValueScope
from refcomp.graph.folding import FoldingBuilder
from refcomp.graph.macros import NotKnownError

FLOAT8 = 17


def scope_of(name: str, parent: ValueScope | None = None, prefix: str = "") -> ValueScope:
    return ValueScope(FoldingBuilder(name), {"": 21}, parent, prefix)


def test_a_subgraph_captures_what_it_reads_once() -> None:
    outer = scope_of("outer")
    x = outer.builder.input("x", "uint8", ("N",))
    outer.add("x", x)
    outer.set_element_type(x, FLOAT8)
    inner = scope_of("inner", outer)
    inmost = scope_of("inmost", inner)
    assert inmost.knows("x") and not inmost.defines("x")
    value = inmost.value("x")
    assert value is inmost.value("x")
    assert (value.name, value.shape) == ("x", ("N",))
    assert inmost.element_type(value) == FLOAT8
    assert list(inner.captured) == [x]
    assert list(inmost.captured) == [inner.value("x")]
    assert [one.name for one in inmost.builder.finish([value]).inputs] == ["x"]


def test_a_value_of_two_names_is_captured_once() -> None:
    outer = scope_of("outer")
    x = outer.builder.input("x", "float32", ())
    outer.add("x", x)
    outer.add("also", x)
    inner = scope_of("inner", outer)
    assert inner.value("x") is inner.value("also")
    assert len(inner.captured) == 1


def test_a_constant_is_a_constant_in_subgraphs_too() -> None:
    outer = scope_of("outer")
    outer.add_constant("w", np.array([1, 2], np.int32), INT32)
    inner = scope_of("inner", outer)
    value = inner.value("w")
    assert not inner.captured
    assert inner.elements(value).tolist() == [1, 2]


def test_strings_are_made_by_a_node() -> None:
    outer = scope_of("outer", prefix="f/")
    value = outer.add_constant("w", np.array(["a"], object), STRINGS)
    assert (value.name, outer.element_type(value)) == ("f/w", STRINGS)
    inner = scope_of("inner", outer)
    assert inner.value("w").name == "f/w"
    assert list(inner.captured) == [value]
    with pytest.raises(NotKnownError):
        outer.elements(value)


def test_an_inner_name_hides_an_outer_one() -> None:
    outer, inner = scope_of("outer"), None
    outer.add("x", outer.builder.input("x", "float32", ()))
    inner = scope_of("inner", outer)
    own = inner.builder.input("x", "int32", ())
    inner.add("x", own)
    assert inner.value("x") is own
    assert not inner.captured


def test_a_name_has_one_value() -> None:
    scope = scope_of("g")
    scope.add("x", scope.builder.input("x", "float32", ()))
    with pytest.raises(UserError, match="two values of the model are named 'x'"):
        scope.add("x", None)


def test_an_absent_input_of_a_function_has_no_value() -> None:
    scope = scope_of("g")
    scope.add("x", None)
    assert scope.knows("x")
    assert scope.value("x") is None
    inner = scope_of("inner", scope)
    assert inner.value("x") is None


def test_lost_values_are_lost_in_subgraphs_too() -> None:
    outer = scope_of("outer")
    outer.lost.add("x")
    inner = scope_of("inner", outer)
    assert inner.knows("x") and inner.is_lost("x") and not inner.is_lost("y")
    inner.add("x", inner.builder.input("x", "float32", ()))
    assert not inner.is_lost("x")


def test_an_output_has_its_name_in_the_graph() -> None:
    scope = scope_of("g")
    x = scope.builder.input("x", "uint8", (2,))
    scope.add("x", x)
    scope.add("y", x)
    scope.set_element_type(x, FLOAT8)
    assert scope.output("x") is x
    named = scope.output("y")
    assert (named.name, scope.element_type(named)) == ("y", FLOAT8)
    sequence = scope.builder.input("s", "float32", kind="sequence")
    scope.add("t", sequence)
    assert scope.output("t") is sequence
    with pytest.raises(UserError, match="nothing makes the output 'z'"):
        scope.output("z")


def test_the_element_type_is_that_of_the_dtype_unless_noted() -> None:
    scope = scope_of("g")
    assert scope.element_type(scope.builder.input("x", "float32", ())) == FLOAT
    value = scope.builder.input("y", "uint8", ())
    assert scope.element_type(value) == UINT8
    scope.set_element_type(value, FLOAT8)
    assert scope.element_type(value) == FLOAT8
    with pytest.raises(NotKnownError):
        scope.elements(value)

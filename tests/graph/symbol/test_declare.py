"""Declarations of classic operators."""

import inspect

import pytest

import refcomp as rc
from refcomp.foundation.dtype import as_dtype
from refcomp.foundation.errors import CompilerBug
from refcomp.graph.graph import Value
from refcomp.graph.symbol import operator
from refcomp.graph.symbol.declare import (
    classic,
    dtype_of_attribute,
    no_shapes,
    one_output,
    same_dtype,
    same_shapes,
)
from refcomp.graph.symbol.operator import NodeMaker


def test_signature_declares_inputs_and_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "_KNOWN", dict(operator._KNOWN))

    @classic(given_if={"b": "both"}, texts={"a": "a.", "b": "b.", "both": "true."}, aliases=["pq"])
    def pair(make: NodeMaker, a: Value, b: Value | None = None, *, both: bool = True) -> Value:
        """Return a pair."""
        return make.last("add", [a, a if b is None else b])

    assert str(inspect.signature(pair)) == "(a=None, b=None, *, both=True, name=None)"
    assert pair.__name__ == "pair"
    x = rc.sym.Variable("x")
    assert pair(x, name="p").list_input_names() == ["x", "p_b"]
    assert pair(x, both="0").list_input_names() == ["x"]
    assert operator.find_symbol_operator("pq").name == "pair"


def test_variadic_operator_takes_any_number() -> None:
    assert str(inspect.signature(rc.sym.concatenate)) == "(*data, axis=1, name=None)"


def test_declaration_needs_a_docstring() -> None:
    def bare(make: NodeMaker, data: Value) -> Value:
        return make.last("relu", [data])

    with pytest.raises(CompilerBug, match="the classic operator bare has no docstring"):
        classic()(bare)


def test_rules_of_shapes_and_dtypes() -> None:
    known = {"lhs": (2, 3)}
    found = same_shapes(known, {})
    assert "rhs" in found
    assert found["rhs"] == (2, 3)
    assert no_shapes(known, {}) == {}
    f32, i8 = as_dtype("float32"), as_dtype("int8")
    assert same_dtype([f32, i8], {}) == [f32]
    assert dtype_of_attribute([f32], {"dtype": "int8"}) == [i8]
    assert one_output({}) == 1

"""Types of nodes: symbolic extents are kept, and every operator infers what its meaning gives."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from refcomp.foundation.artifacts import evaluate_dim
from refcomp.foundation.dtype import F32, F64
from refcomp.foundation.errors import UserError
from refcomp.graph import infer
from refcomp.graph.control.types import NodeType
from refcomp.graph.dims import Symbols
from refcomp.graph.evaluate import evaluate_graph
from refcomp.graph.feeds import check_feeds
from refcomp.graph.graph import Value
from refcomp.graph.infer import infer_types, node_to_te, value_to_placeholder
from refcomp.oracle.tensors.evaluate import evaluate
from refcomp.topi import operator as operators
from refcomp.topi.elementwise.activations import relu, relu_numpy
from refcomp.topi.movement.transform import flatten
from refcomp.topi.operator import AttributeSpec, Operator
from tests.strategies.graphs import make_graph, networks
from tests.strategies.operands import floats


def value(*shape) -> Value:
    return Value("x", F32, shape)


def test_symbolic_batch_passes_through() -> None:
    assert infer_types("softmax", [value("N", 10)], {}) == [NodeType(F32, ("N", 10))]
    assert infer_types("flatten", [value("N", 4, 2)], {}) == [NodeType(F32, ("N", 8))]
    pooled = infer_types(
        "max_pool2d", [value("N", 2, "H", 6)], {"kernel": (2, 2), "strides": (2, 2)}
    )
    extent = ("add", ("floordiv", ("add", "H", -2), 2), 1)
    assert pooled == [NodeType(F32, ("N", 2, extent, 3))]


def test_several_outputs() -> None:
    types = infer_types("split", [value("N", 5)], {"axis": 1, "sizes": (2, 3)})
    assert types == [NodeType(F32, ("N", 2)), NodeType(F32, ("N", 3))]


def test_symbols_of_one_name_are_one_extent() -> None:
    assert infer_types("add", [value("N", 2), value("N", 2)], {}) == [NodeType(F32, ("N", 2))]
    with pytest.raises(UserError, match="is M instead of N"):
        infer_types("add", [value("N"), value("M")], {}, where="here")


def test_errors_name_the_node() -> None:
    with pytest.raises(UserError, match="axis 5 is out of range") as info:
        infer_types("softmax", [value(2, 3)], {"axis": 5}, where="node 'q'")
    assert info.value.where == "node 'q'"


def test_placeholders_have_plain_names() -> None:
    tensor = value_to_placeholder(Value("a b\n;" + "x" * 99, F32, (2,)), Symbols())
    assert tensor.name == "a_b__" + "x" * 35


@pytest.fixture
def computed(monkeypatch) -> list[tuple[Any, ...]]:
    """The shapes and attributes that the operator `tested` computes, one for each inference."""
    calls: list[tuple[Any, ...]] = []

    def compute(*inputs, **attributes):
        shapes = (None if tensor is None else tensor.shape for tensor in inputs)
        calls.append((*shapes, *attributes.values()))
        return relu(inputs[0])

    specs = (AttributeSpec("count", (int,), 0), AttributeSpec("sizes", (tuple,), ()))
    tested = Operator(
        "tested", ("data", "more"), specs, required=1, compute=compute, numpy=relu_numpy
    )
    monkeypatch.setattr(operators, "_OPERATORS", {"tested": tested})
    monkeypatch.setattr(infer, "_APPLICATIONS", {})
    return calls


def test_equal_applications_are_inferred_once(computed) -> None:
    made = [infer_types("tested", [Value(name, F32, ("N", 2))], {}) for name in ("x", "y")]
    made[0].clear()  # what a caller does to its list changes no other result
    assert made[1] == infer_types("tested", [value("N", 2)], {}) == [NodeType(F32, ("N", 2))]
    assert len(computed) == 1


def test_what_decides_a_type_is_told_apart(computed) -> None:
    wide = Value("x", F64, (2,))
    cases: list[tuple[list[Value | None], dict[str, Any]]] = [
        ([value(2)], {}),
        ([wide], {}),
        ([value(2), None], {}),
        ([value(2), value(2)], {}),
        ([value(2, 2)], {}),
        ([value("N")], {}),
        ([value("M")], {}),
        ([value(("add", "N", 2))], {}),
        ([value(2)], {"count": 1}),
        ([value(2)], {"sizes": (1, 2)}),
        ([value(2)], {"sizes": ((1,), 2)}),
        ([value(2)], {"sizes": ((1, 2),)}),
        ([value(2)], {"sizes": (True, 2)}),
        ([value(2)], {"sizes": (1.0, 2)}),
    ]
    for inputs, attributes in cases * 2:
        infer_types("tested", inputs, attributes)
    assert len(computed) == len(cases)
    # Equal to 1 in Python, but not an int: it is refused after a 1, too.
    with pytest.raises(UserError, match="the attribute count of tested is True"):
        infer_types("tested", [value(2)], {"count": True})


def test_an_operator_that_is_registered_anew_is_inferred_anew(computed, monkeypatch) -> None:
    assert infer_types("tested", [value(2, 3)], {}) == [NodeType(F32, (2, 3))]
    tested = operators.find_operator("tested")
    monkeypatch.setattr(operators, "_OPERATORS", {})
    operators.register_operator(replace(tested, compute=lambda data: flatten(data, axis=0)))
    assert infer_types("tested", [value(2, 3)], {}) == [NodeType(F32, (1, 6))]


def test_errors_are_found_anew_for_each_node(computed) -> None:
    del computed
    for where in ("first", "second"):
        with pytest.raises(UserError) as info:
            infer_types("tested", [None], {}, where=where)
        assert info.value.where == where


def test_memo_of_types_is_bounded(computed, monkeypatch) -> None:
    monkeypatch.setattr(infer, "_MAX_APPLICATIONS", 3)
    for extent in range(10):
        infer_types("tested", [value(extent)], {})
        assert len(infer._APPLICATIONS) <= 3
    infer._APPLICATIONS.clear()
    # Long shapes, attributes and names of symbols are not kept.
    infer_types("tested", [value(2)], {"sizes": (1,) * 1000})
    infer_types("tested", [value("N" * 1000)], {})
    infer_types("tested", [value(2)], {"sizes": (np.int64(1),)})
    assert not infer._APPLICATIONS


def test_threads_may_infer_types_at_once(computed, monkeypatch) -> None:
    monkeypatch.setattr(infer, "_MAX_APPLICATIONS", 2)
    extents = [1, 2, 3, 4, 5] * 20
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: infer_types("tested", [value(n)], {}), extents))
    assert made == [[NodeType(F32, (n,))] for n in extents]


@pytest.mark.search
@given(networks())
def test_inferred_types_are_those_of_the_meaning(graph):
    x = floats(1, 2, *graph.inputs[0].shape[1:])
    symbols = check_feeds(graph, {"x": (x.dtype, x.shape)})
    (result,) = evaluate_graph(graph, {"x": x})
    (output,) = graph.outputs
    assert result.shape == tuple(evaluate_dim(dim, symbols) for dim in output.shape)


def test_te_of_a_node_with_several_outputs() -> None:
    graph = make_graph(
        lambda b, x: b.nodes("split", [x], {"axis": 1, "sizes": (1, 2)}), shape=("N", 3)
    )
    tensor = value_to_placeholder(graph.inputs[0], Symbols())
    made = node_to_te(graph.nodes[0], {graph.inputs[0]: tensor})
    x = floats(0, 4, 3)
    parts = evaluate([made[output] for output in graph.outputs], {tensor: x})
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), x)

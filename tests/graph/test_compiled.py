"""Compiled graphs as JSON: the same after reading, and refusal of hostile texts."""

import json
from dataclasses import replace

import numpy as np
import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.compile import compile_graph
from refcomp.graph.compiled import CompiledGraph, without_weights
from tests.strategies.graphs import digits_graph

X = rc.sym.Variable("x")
NET = rc.sym.softmax(rc.sym.dense(X, units=3, name="fc"), name="p")
WEIGHTS = {"fc_weight": np.ones((3, 4), "float32"), "fc_bias": np.zeros(3, "float32")}
GRAPH, LIB, PARAMS = rc.graph.build(NET, "interp", {"x": (1, 4)}, params=WEIGHTS)
TEXT = GRAPH.json()


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(TEXT), **fields})


def with_kernel(**fields: object) -> str:
    document = json.loads(TEXT)
    document["kernels"][0].update(fields)
    return json.dumps(document)


def test_graph_is_the_same_after_reading() -> None:
    again = CompiledGraph.from_json(TEXT)
    assert again.json() == TEXT
    assert str(again) == str(GRAPH)
    assert again.symbol is None
    assert GRAPH.symbol is NET
    assert [value.name for value in again.module.parameters] == ["fc_weight"]


def test_network_with_workspaces_and_symbols_is_the_same_after_reading() -> None:
    module = compile_graph(digits_graph(), "interp")
    compiled, weights = without_weights(module, None)
    again = CompiledGraph.from_json(compiled.json())
    assert again.json() == compiled.json()
    assert any(kernel.workspaces for kernel in again.module.kernels) == any(
        kernel.workspaces for kernel in module.kernels
    )
    sizes = {value.name: value.shape for value in again.module.parameters}
    assert sizes == {name: array.shape for name, array in weights.items()}


def test_weights_take_no_memory_in_the_graph() -> None:
    by_name = {value.name: array for value, array in GRAPH.graph.constants.items()}
    assert by_name["fc_weight"].strides == (0, 0)
    np.testing.assert_array_equal(by_name["fc_bias"], WEIGHTS["fc_bias"])
    assert list(PARAMS) == ["fc_weight"]


HUGE = changed(parameters=[["fc_weight", "f32", [2**40, 2**40]]])
HOSTILE = {
    "truncated": (TEXT[:-9], "it is not JSON"),
    "other format": (changed(format="x"), "its format is not 'refcomp compiled graph 1'"),
    "number as graph": (changed(graph=3), "its graph is not a str"),
    "wrong graph": (changed(graph="graph"), "expected"),
    "unknown target": (changed(target="llmv"), "llmv"),
    "no kernels": (changed(kernels=[]), "it has 0 kernels for 2 nodes"),
    "number as kernel": (changed(kernels=[1, 2]), "the kernel of node 'fc' is malformed"),
    "function of another type": (with_kernel(function=3), "the kernel of node 'fc' is malformed"),
    "unknown input": (with_kernel(inputs=["p"]), "the inputs of the kernel of node 'fc' are not"),
    "input twice": (with_kernel(inputs=["x", "x"]), "the inputs of the kernel of node 'fc' are"),
    "list as input": (with_kernel(inputs=[[]]), "the inputs of the kernel of node 'fc' are not"),
    "wrong workspaces": (with_kernel(workspaces="x"), "workspaces:1"),
    "parameter of another type": (changed(parameters=[3]), r"a parameter is 3 instead of \[name"),
    "negative extent": (
        changed(parameters=[["fc_weight", "f32", [-3, 4]]]),
        r"a parameter is \['fc_weight', 'f32', \[-3, 4\]\] instead",
    ),
    "huge parameter": (HUGE, "the parameter 'fc_weight' has 4835703278458516698824704 bytes"),
    "other parameter": (changed(parameters=[]), "no array is given for constant 'fc_weight'"),
    "one parameter more": (
        changed(parameters=[*json.loads(TEXT)["parameters"], ["other", "f32", [1]]]),
        "a parameter is not a constant of the graph",
    ),
    "parameter twice": (
        changed(parameters=json.loads(TEXT)["parameters"] * 2),
        "two parameters are named 'fc_weight'",
    ),
    "other dtype": (changed(parameters=[["fc_weight", "f99", [3, 4]]]), "unknown dtype 'f99'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_in_words(name: str) -> None:
    text, message = HOSTILE[name]
    with pytest.raises(UserError, match=message):
        CompiledGraph.from_json(text)


def test_module_must_belong_to_the_graph() -> None:
    assert GRAPH.with_code(LIB).module is LIB
    other = rc.graph.build(rc.sym.relu(X), "interp", {"x": (2,)})
    with pytest.raises(UserError, match=r"the module has no function 'kernel0_\w+' of 4 arrays"):
        GRAPH.with_code(other[1])
    with pytest.raises(UserError, match="a int is not the module of a compiled graph"):
        GRAPH.with_code(3)
    with pytest.raises(UserError, match="a NoneType is not the module of a compiled graph"):
        GRAPH.with_code(None)
    moved = replace(GRAPH, module=replace(GRAPH.module, target=rc.as_target("llvm")))
    with pytest.raises(UserError, match="the module is for 'interp', but the graph for 'llvm'"):
        moved.with_code(LIB)


def test_graph_without_nodes_needs_no_module() -> None:
    graph, lib, params = rc.graph.build(X, "interp", {"x": (2,)})
    assert (lib, params) == (None, {})
    assert graph.with_code(None).module is None

"""Order and replacement of nodes."""

import pytest

import refcomp as rc
from refcomp.foundation.errors import UserError
from refcomp.graph.symbol.nodes import (
    SymbolEntry,
    SymbolNode,
    ordered_nodes,
    substituted,
    variables_of,
)


def test_each_node_comes_after_its_inputs_and_once() -> None:
    x, y = rc.sym.Variable("x"), rc.sym.Variable("y")
    total = rc.sym.elemwise_add(x, y, name="total")
    net = rc.sym.elemwise_mul(total, rc.sym.elemwise_sub(y, x, name="d"), name="net")
    names = [node.name for node in ordered_nodes(net.entries)]
    assert names == ["x", "y", "total", "d", "net"]
    both = ordered_nodes((*total.entries, *net.entries))
    assert [node.name for node in both] == names


def test_a_hundred_thousand_layers_are_walked() -> None:
    node = SymbolNode("x")
    operator = rc.sym.relu(rc.sym.Variable("x")).entries[0].node.operator
    for _ in range(10**5):
        node = SymbolNode("layer", operator=operator, inputs=(SymbolEntry(node),))
    assert len(ordered_nodes([SymbolEntry(node)])) == 10**5 + 1
    assert len(variables_of([SymbolEntry(node)])) == 1


def test_nodes_that_stay_are_shared() -> None:
    x, y = rc.sym.Variable("x"), rc.sym.Variable("y")
    kept = rc.sym.exp(x)
    net = rc.sym.elemwise_add(kept, rc.sym.exp(y))

    def replace(node: SymbolNode) -> SymbolEntry | SymbolNode:
        return kept.entries[0] if node.name == "y" else node

    (entry,) = substituted(net.entries, replace)
    assert entry.node is not net.entries[0].node
    first, second = entry.node.inputs
    assert first == kept.entries[0]
    assert second.node.inputs == kept.entries
    assert substituted(net.entries, lambda node: node) == net.entries


def test_nodes_are_described_in_words() -> None:
    node = rc.sym.clip(rc.sym.Variable("x"), a_min=0, a_max=1, name="c").entries[0].node
    assert node.place == "clip node 'c'"
    assert node.inputs[0].node.place == "variable 'x'"
    assert SymbolNode("n" * 100).place == f"variable '{'n' * 60}...'"


def test_two_variables_of_one_name_are_refused() -> None:
    net = rc.sym.elemwise_add(rc.sym.Variable("x"), rc.sym.Variable("x"))
    with pytest.raises(UserError, match=r"two variables are named 'x'\n(.|\n)*rename one of them"):
        net.list_input_names()

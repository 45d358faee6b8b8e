"""remove_identities: what goes, what stays, and that nothing else changes."""

from importlib import import_module

import pytest
from hypothesis import given

from refcomp.graph.passes.remove_identities import remove_identities
from refcomp.graph.verify import verify_graph
from tests.graph.passes.docstring_examples import assert_docstring_holds
from tests.strategies.graphs import assert_equivalent, make_graph, networks, operators_of


def test_identities_between_nodes_go() -> None:
    def build(builder, x):
        activated = builder.node("relu", [x])
        same = builder.node("identity", [builder.node("identity", [activated])])
        return builder.node("add", [same, activated])

    graph = make_graph(build)
    changed = remove_identities(graph)
    assert operators_of(changed) == ["relu", "add"]
    assert_equivalent(graph, changed)


def test_an_input_does_not_become_an_output() -> None:
    graph = make_graph(lambda b, x: b.node("identity", [x]))
    assert remove_identities(graph) is graph


@pytest.mark.search
@given(networks())
def test_meaning_is_kept(graph):
    changed = remove_identities(graph)
    verify_graph(changed)
    assert_equivalent(graph, changed)


def test_the_docstring_holds() -> None:
    passing = import_module("refcomp.graph.passes.remove_identities")
    assert_docstring_holds(passing, remove_identities)


def test_casts_and_reshapes_that_change_nothing_go() -> None:
    def build(builder, x):
        y = builder.node("relu", [x])
        y = builder.node("reshape", [y], {"shape": (2, 3)})
        y = builder.node("cast", [y], {"dtype": "float32"})
        y = builder.node("cast", [y], {"dtype": "float64"})
        return builder.node("exp", [y])

    graph = make_graph(build, (2, 3))
    changed = remove_identities(graph)
    assert operators_of(changed) == ["relu", "cast", "exp"]
